"""From a path to a Table: picks the reader by the file's ending."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path

from trueup.core.errors import TrueupError
from trueup.data.tables.guarded import read_guarded
from trueup.data.tables.read_csv import read_csv
from trueup.data.tables.read_npz import read_npz
from trueup.data.tables.table import Table

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
_NEEDS = {"parquet": "pyarrow", "hdf5": "h5py"}


def table_format(path: Path) -> str | None:
    """Return `csv`, `npz`, `parquet` or `hdf5` by the file's ending, None for any other."""
    name = path.name.lower()
    return next((SUFFIXES[suffix] for suffix in SUFFIXES if name.endswith(suffix)), None)


def read_table(
    path: str | Path,
    wanted: Sequence[str] | None = None,
    *,
    delimiter: str | None = None,
    header: bool = True,
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
    if kind == "csv":
        tabs = file.name.lower().endswith((".tsv", ".tsv.gz"))
        return read_csv(file, wanted, delimiter=delimiter or ("\t" if tabs else ","), header=header)
    if kind == "npz":
        return read_npz(file, wanted)
    package = _NEEDS[kind]
    if importlib.util.find_spec(package) is None:
        raise TrueupError(f"{kind} files need the package {package}: pip install 'trueup[data]'", file=file)
    return read_guarded(kind, file, wanted)
