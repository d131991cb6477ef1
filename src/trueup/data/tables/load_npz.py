"""NPZ through `numpy.load`, in the guarded process: nothing is unpickled."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from trueup.core.errors import TrueupError
from trueup.data.tables.table import FloatArray, Table, check_names


class _NotNumbersError(Exception):
    """An array that can be read and is no column of numbers."""


def load_npz(file: Path, wanted: Sequence[str] | None) -> Table:
    """Read the wanted arrays of an NPZ file."""
    warnings.simplefilter("ignore")  # NumPy's remarks on headers that it mends
    columns = {}
    with np.load(file, allow_pickle=False) as arrays:
        names = tuple(arrays)
        check_names(names, wanted, file)
        for name in names if wanted is None else dict.fromkeys(wanted):
            try:
                columns[name] = _values(arrays, name)
            except _NotNumbersError as error:
                if wanted is not None:
                    raise TrueupError(str(error), file=file, place=f"array {name!r}") from None
            except (MemoryError, TrueupError):
                raise
            except Exception as error:  # zipfile, zlib and the parser of array headers raise a dozen kinds
                message = f"cannot be read: {str(error)[:200] or type(error).__name__}"
                raise TrueupError(message, file=file, place=f"array {name!r}") from None
    return Table(file=file, columns=columns, names=names)


def _values(arrays: Mapping[str, object], name: str) -> FloatArray:
    try:
        array = arrays[name]
    except ValueError as error:
        if "allow_pickle" in str(error):
            raise _NotNumbersError("holds objects, which are never read") from None
        raise
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "iufb":
        raise _NotNumbersError(f"holds {getattr(array, 'dtype', 'bytes')} instead of numbers")
    if array.ndim not in (1, 2):
        raise _NotNumbersError(f"has shape {array.shape}; a column has one axis (rows) or two (rows, values)")
    with np.errstate(all="ignore"):
        return np.ascontiguousarray(array, np.float64)
