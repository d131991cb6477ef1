"""Table: named columns of numbers out of one file, and how much a file may ask for before it is read."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from trueup.core.arrays import FloatArray
from trueup.core.errors import TrueupError

MIB = 1 << 20
MAX_COLUMNS = 10_000
# What may come out of a file: a small file gets the floor, a large one a multiple of its own size. Recordings
# shrink 3 to 30 times when packed; a bomb shrinks 1000 times and more.
FLOOR_BYTES = 64 * MIB
RATIO = 64
TEXT_FLOOR = 10 * MIB  # of packed text, read in half a second
CEILING_BYTES = 2048 * MIB
# Where `trueup` writes the description of a log beside the numbers.
NOTE_MARK, NOTE_KEY = "# trueup-log ", b"trueup-log"


@dataclass(frozen=True, kw_only=True)
class Table:
    """Columns of one file.

    columns     name -> (T,) or (T, k) float64, only those that were asked for
    names       every column of the file
    timestamps  columns whose file type is a date: they arrive as nanoseconds since 1970
    note        what `trueup` itself wrote beside the numbers ("" in files of others)
    """

    file: Path
    columns: dict[str, FloatArray]
    names: tuple[str, ...]
    timestamps: tuple[str, ...] = ()
    note: str = ""

    def __len__(self) -> int:
        return next((len(values) for values in self.columns.values()), 0)

    def check_lengths(self) -> None:
        """Refuse columns of different lengths: they cannot share one time base."""
        if len({len(values) for values in self.columns.values()}) > 1:
            text = ", ".join(f"{name}: {len(values)}" for name, values in list(self.columns.items())[:8])
            hint = "map each rate as a [[file]] of its own"
            raise TrueupError(f"columns differ in length ({text}); {hint}", file=self.file)


def not_numbers(array: Any) -> str:
    """Why an array of NumPy or h5py is no column of numbers, "" if it is one."""
    kind = getattr(array, "dtype", None)
    if kind is None or kind.kind not in "iufb" or kind.subdtype is not None:
        return f"holds {str(kind or 'bytes')[:80]} instead of numbers"
    if array.shape is None or len(array.shape) not in (1, 2):
        return f"has shape {array.shape}; a column has one axis (rows) or two (rows, values)"
    return ""


def as_float(array: Any) -> FloatArray:
    """An array of numbers of any kind as float64."""
    with np.errstate(all="ignore"):
        return np.ascontiguousarray(array, np.float64)


def allowed_bytes(file_bytes: int, floor: int = FLOOR_BYTES) -> int:
    """Return how many bytes of numbers may come out of a file of this size."""
    return min(max(floor, RATIO * file_bytes), CEILING_BYTES)


def unpacked_bytes(file_bytes: int) -> int:
    """Return how many bytes of text may come out of a gzip file of this size."""
    return allowed_bytes(file_bytes, TEXT_FLOOR)


def check_names(names: Sequence[str], wanted: Iterable[str] | None, file: Path) -> None:
    """Refuse too many columns, a wanted column that is absent, and one whose name is there twice."""
    if len(names) > MAX_COLUMNS:
        raise TrueupError(f"has {len(names)} columns; at most {MAX_COLUMNS} are read", file=file)
    for name in wanted or ():
        found, place = names.count(name), f"column {name!r}"
        if found == 0:
            raise TrueupError(f"has no column {name!r}{_near(name, names)}", file=file, place=place)
        if found > 1:
            raise TrueupError(f"has {found} columns named {name!r}; rename them", file=file, place=place)


def _near(name: str, names: Sequence[str]) -> str:
    known = [known[:100] for known in names[:2000]]  # bounded: comparing is quadratic in length
    close = difflib.get_close_matches(name[:100], known, n=4, cutoff=0.5)
    if close:
        return f" (near: {', '.join(close)})"
    more = f" and {len(names) - 12} more" if len(names) > 12 else ""
    return f" (it has: {', '.join(known[:12])}{more})" if known else " (it has none)"
