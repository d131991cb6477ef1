"""From a path to a Table: picks the format by the file's ending and reads the file in the guarded process."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path

from trueup.core.errors import TrueupError
from trueup.core.guarded import GuardedProcess, GuardLimits
from trueup.data.tables.load import unpack
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
        "trueup.data.tables.load:load",
        preload=[f"trueup.data.tables.load_{kind}" for kind, used in _LIBRARY.items() if used == library],
        environment={"ARROW_DEFAULT_MEMORY_POOL": "system"},  # others reserve address space: it counts as memory
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
    return unpack(GUARDS[library].call(request, limits, file), file)
