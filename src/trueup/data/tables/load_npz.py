"""NPZ through `numpy.load`, in the guarded process: nothing is unpickled."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from trueup.core.errors import TrueupError
from trueup.data.tables.table import NOTE_KEY, Table, as_float, check_names, not_numbers


def load_npz(file: Path, wanted: Sequence[str] | None) -> Table:
    """Read the wanted arrays of an NPZ file."""
    warnings.simplefilter("ignore")  # NumPy's remarks on headers that it mends
    columns = {}
    with np.load(file, allow_pickle=False) as arrays:
        names = tuple(arrays)
        check_names(names, wanted, file)
        note = arrays[NOTE_KEY.decode()].tobytes().decode(errors="replace") if NOTE_KEY.decode() in names else ""
        for name in names if wanted is None else dict.fromkeys(wanted):
            try:
                array = arrays[name]
                fault = not_numbers(array)
            except MemoryError:
                raise
            except Exception as error:  # zipfile, zlib and the parser of array headers raise a dozen kinds
                is_pickle = "allow_pickle" in str(error)
                fault = "holds objects, which are never read" if is_pickle else f"cannot be read: {str(error)[:200]}"
            if not fault:
                columns[name] = as_float(array)
            elif wanted is not None or fault.startswith("cannot"):
                raise TrueupError(fault, file=file, place=f"array {name!r}")
    return Table(file=file, columns=columns, names=names, note=note)
