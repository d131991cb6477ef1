"""CSV and gzipped CSV through pyarrow, in the guarded process: numbers in cells, or lists such as `[0.1, 0.2]`."""

from __future__ import annotations

import csv
import gzip
import io
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv

from trueup.core.arrays import FloatArray
from trueup.core.errors import TrueupError
from trueup.data.tables.table import NOTE_MARK, Table, check_names, unpacked_bytes

_BLOCK = 1 << 30
_LIST = r"^[\[(][^\[\]()]*[\])]$"


def load_csv(file: Path, wanted: Sequence[str] | None, *, delimiter: str = ",", header: bool = True) -> Table:
    """Read the wanted columns of a CSV file; failures name the line and the column."""
    text = _Text(file, _unpack(file), delimiter)
    rows = text.rows()
    _, first = next(rows, (0, []))
    if not first:
        raise TrueupError("is empty", file=file)
    names = tuple(cell.strip() for cell in first) if header else tuple(str(k) for k in range(len(first)))
    check_names(names, wanted, file)
    body = text.stream.tell() if header else 0
    sample = next(rows, (0, []))[1] if header else first
    cells = {name: sample[names.index(name)] if sample else "" for name in names}
    # column -> (its place in a row, how many numbers a cell lists; 0: one number that is no list)
    chosen = {
        name: (names.index(name), len(_words(cells[name])) if _is_list(cells[name]) else 0)
        for name in (names if wanted is None else wanted)
        if wanted is not None or _is_numeric(cells[name])
    }
    try:
        columns = text.columns(body, chosen, len(names))
    except (pa.ArrowInvalid, ValueError):
        columns = text.columns_slowly(chosen, header)
    return Table(file=file, columns=columns, names=names, note=text.note)


def _unpack(file: Path) -> bytes:
    if not file.name.lower().endswith(".gz"):
        return file.read_bytes()
    allowed = unpacked_bytes(file.stat().st_size)
    try:
        with gzip.open(file) as stream:
            data = stream.read(allowed + 1)
    except (OSError, EOFError, zlib.error) as error:  # wrong magic, wrong checksum, cut short
        raise TrueupError(f"cannot be read: {error}", file=file) from None
    if len(data) > allowed:
        raise TrueupError("unfolds to far more text than its size allows; unpack it first if it is genuine", file=file)
    return data


class _Text:
    """The text of one file behind its note, and its rows as Python and as Arrow see them."""

    def __init__(self, file: Path, data: bytes, delimiter: str) -> None:
        self.file, self.delimiter = file, delimiter
        if data.startswith((b"\xff\xfe", b"\xfe\xff")):
            self.fail("is UTF-16 text; save it as UTF-8", 1)
        nul = data.find(b"\0")
        if nul >= 0:
            self.fail("holds a NUL byte: not a text file, or damaged", 1 + data.count(b"\n", 0, nul))
        try:
            data.decode()
        except UnicodeDecodeError as error:
            line = 1 + data.count(b"\n", 0, error.start)
            self.fail(f"is not UTF-8 text ({error.reason}); save it as UTF-8", line)
        data = data.removeprefix(b"\xef\xbb\xbf")
        self.note, self.skipped = "", 0
        if data.startswith(NOTE_MARK.encode()):
            first, _, data = data.partition(b"\n")
            self.note, self.skipped = first.decode().removeprefix(NOTE_MARK).strip(), 1
        self.data, self.stream = data, io.BytesIO(data)

    def fail(self, message: str, line: int, column: str | None = None) -> NoReturn:
        place = f"line {line}" + (f", column {column!r}" if column else "")
        raise TrueupError(message, file=self.file, place=place)

    def rows(self) -> Iterator[tuple[int, list[str]]]:
        """Yield (line, cells) of every row that is not blank, all as wide as the first: exact, and slow."""
        self.stream.seek(0)
        lines = (line.decode() for line in self.stream)
        reader = csv.reader(lines, delimiter=self.delimiter, skipinitialspace=True, strict=True)
        width = 0
        try:
            for row in reader:
                line = reader.line_num + self.skipped
                width = width or len(row)
                if row and len(row) != width:
                    self.fail(f"has {len(row)} cells where the first line has {width}", line)
                if row:
                    yield line, row
        except csv.Error as error:
            self.fail(f"is not valid CSV: {error}", reader.line_num + self.skipped)

    def columns(self, body: int, chosen: Mapping[str, tuple[int, int]], width: int) -> dict[str, FloatArray]:
        """The chosen columns from byte `body` on, by Arrow; fails on whatever is not plain."""
        data = memoryview(self.data)[body:]
        if not self.data[body:].strip():
            return {name: np.zeros((0, count) if count else 0) for name, (_, count) in chosen.items()}
        if self.data.count(b'"') % 2:
            raise ValueError("a quote is not closed")
        keys = [str(k) for k in range(width)]
        options = arrow_csv.ReadOptions(use_threads=False, block_size=min(len(data) + 1, _BLOCK), column_names=keys)
        table = arrow_csv.read_csv(
            pa.BufferReader(data),
            read_options=options,
            parse_options=arrow_csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True),
            convert_options=arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(keys, pa.string()),
                include_columns=[keys[k] for k, _ in chosen.values()],
                check_utf8=False,
            ),
        )
        return {
            name: _list_values(cells, count) if count else _values(cells)
            for (name, (_, count)), cells in zip(chosen.items(), table.columns, strict=True)
        }

    def columns_slowly(self, chosen: Mapping[str, tuple[int, int]], header: bool) -> dict[str, FloatArray]:
        """The chosen columns by Python's parser: it names the line of a fault, and takes spaces before a quote."""
        found: dict[str, list[Any]] = {name: [] for name in chosen}
        for k, (line, row) in enumerate(self.rows()):
            for name, (index, count) in chosen.items() if k or not header else ():
                try:
                    found[name].append(_numbers(row[index].strip(), count))
                except ValueError as error:
                    self.fail(str(error), line, name)
        return {name: np.array(values, np.float64) for name, values in found.items()}


def _is_list(cell: str) -> bool:
    return re.match(_LIST, cell.strip()) is not None


def _words(cell: str) -> list[str]:
    return cell.strip()[1:-1].replace(",", " ").split()


def _is_numeric(cell: str) -> bool:
    """Whether a cell holds a number, a list of numbers or nothing."""
    try:
        _numbers(cell.strip(), len(_words(cell)) if _is_list(cell) else 0)
    except ValueError:
        return False
    return True


def _numbers(cell: str, count: int) -> float | list[float]:
    """The number in a cell, or the `count` numbers of the list in it."""
    if not count:
        return _number(cell or "nan")
    if not _is_list(cell):
        raise ValueError(f"{cell[:40]!r} is no list of numbers")
    words = _words(cell)
    if len(words) != count:
        raise ValueError(f"lists {len(words)} numbers where the first row lists {count}")
    return [_number(word) for word in words]


def _number(word: str) -> float:
    try:
        return float(word.replace("_", "?"))  # Python reads 1_0 as ten; no logger writes it
    except ValueError:
        raise ValueError(f"{word[:40]!r} is no number") from None


def _values(cells: Any) -> FloatArray:
    """Numbers; an empty cell is a missing value (NaN)."""
    text = pc.utf8_trim_whitespace(cells)
    numbers = pc.cast(pc.if_else(pc.equal(text, ""), pa.scalar(None, pa.string()), text), pa.float64())
    return np.array(numbers.to_numpy(), np.float64)


def _list_values(cells: Any, width: int) -> FloatArray:
    """(rows, width) numbers out of cells that all list as many."""
    text = pc.utf8_trim_whitespace(cells)
    if not pc.all(pc.match_substring_regex(text, _LIST)).as_py():
        raise ValueError("not a list")
    inside = pc.replace_substring(pc.utf8_slice_codeunits(text, 1, -1), ",", " ")
    words = pc.ascii_split_whitespace(pc.utf8_trim_whitespace(inside))
    if not pc.all(pc.equal(pc.list_value_length(words), width)).as_py():
        raise ValueError("a list of another length")
    return np.array(pc.cast(pc.list_flatten(words), pa.float64()).to_numpy(), np.float64).reshape(-1, width)
