"""From a path to a Table: picks the format by the file's ending and reads the file in the guarded process."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from trueup.core.errors import TrueupError
from trueup.core.guarded import GuardedProcess, GuardLimits
from trueup.data.tables.table import MIB, Table, allowed_bytes

SUFFIXES = {
    ".csv": "csv",
    ".csv.gz": "csv",
    ".tsv": "csv",
    ".tsv.gz": "csv",
    ".npz": "npz",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".h5": "hdf5",
    ".hdf5": "hdf5",
}
_LIBRARY = {"csv": "pyarrow", "parquet": "pyarrow", "hdf5": "h5py", "npz": "numpy"}
_CPU_S, _BYTES_PER_S, _SPARE_BYTES = 0.8, 20e6, 160 * MIB

# a server for each library: importing one takes longer than reading a file
GUARDS = {
    library: GuardedProcess(
        "trueup.data.tables.read:load",
        preload=[f"trueup.data.tables.load_{kind}" for kind, used in _LIBRARY.items() if used == library],
    )
    for library in ("pyarrow", "h5py", "numpy")
}


def table_format(path: Path) -> str | None:
    """Return `csv`, `npz`, `parquet` or `hdf5` by the file's ending, None for any other."""
    name = path.name.lower()
    return next((SUFFIXES[suffix] for suffix in SUFFIXES if name.endswith(suffix)), None)


def read_table(
    path: str | Path, wanted: Sequence[str] | None = None, *, delimiter: str | None = None, header: bool = True
) -> Table:
    """Read the wanted columns (all that are numbers when None) of a CSV, NPZ, Parquet or HDF5 file.

    `delimiter` and `header` belong to CSV; without a header the columns are called "0", "1", ...
    """
    file = Path(path)
    kind = table_format(file)
    if kind is None:
        raise TrueupError(f"is no table file that can be read (endings: {', '.join(SUFFIXES)})", file=file)
    try:
        if not file.is_file():  # also refuses pipes and devices, which never end
            raise TrueupError("is no regular file" if file.exists() else "does not exist", file=file)
    except (OSError, ValueError) as error:
        raise TrueupError(f"cannot be opened: {error}", file=file) from None
    library = _LIBRARY[kind]
    if importlib.util.find_spec(library) is None:
        raise TrueupError(f"{kind} files need the package {library}: pip install 'trueup[data]'", file=file)
    tabs = file.name.lower().endswith((".tsv", ".tsv.gz"))
    size = file.stat().st_size
    allowed = allowed_bytes(size)
    request = {
        "kind": kind,
        "file": str(file.absolute()),
        "wanted": None if wanted is None else list(wanted),
        "allowed": allowed,
        "options": {"delimiter": delimiter or ("\t" if tabs else ","), "header": header} if kind == "csv" else {},
    }
    limits = GuardLimits(
        cpu_s=_CPU_S + size / _BYTES_PER_S,
        memory_bytes=4 * allowed + _SPARE_BYTES,  # columns of the library, columns in NumPy, the answer twice
        answer_bytes=allowed + MIB,
    )
    answer = GUARDS[library].call(request, limits, file)
    columns = {name: np.frombuffer(data).reshape(shape).copy() for name, shape, data in answer["columns"]}
    names, timestamps = tuple(answer["names"]), tuple(answer["timestamps"])
    return Table(file=file, columns=columns, names=names, timestamps=timestamps, note=answer["note"])


def load(request: dict[str, Any]) -> dict[str, Any]:
    """In the guarded process: read a file with the loader of its kind; what the library raises is a TrueupError."""
    kind, allowed = request["kind"], request["allowed"]
    try:
        loader = getattr(importlib.import_module(f"trueup.data.tables.load_{kind}"), f"load_{kind}")
        table: Table = loader(Path(request["file"]), request["wanted"], **request["options"])
    except (TrueupError, MemoryError):
        raise
    except Exception as error:  # the libraries raise a dozen kinds of errors on damaged files
        text = " ".join(str(error).split())[:300]
        raise TrueupError(f"is not a readable {kind} file: {text or type(error).__name__}") from error
    values = sum(column.size for column in table.columns.values())
    if values * 8 > allowed:
        text = f"holds {values} numbers ({values * 8 // MIB} MiB); a file of this size may hold {allowed // MIB} MiB"
        raise TrueupError(f"{text}. If it is genuine, cut it into shorter recordings or pack it less")
    columns = [(name, column.shape, column.tobytes()) for name, column in table.columns.items()]
    return {"columns": columns, "names": table.names, "timestamps": table.timestamps, "note": table.note}
