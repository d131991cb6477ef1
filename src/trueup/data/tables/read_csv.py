"""CSV and gzipped CSV, line by line: numbers in cells, or lists of numbers such as `[0.1, 0.2]`."""

from __future__ import annotations

import csv
import gzip
import zlib
from array import array
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import BinaryIO, NamedTuple, NoReturn

import numpy as np

from trueup.core.errors import TrueupError
from trueup.data.tables.table import MIB, FloatArray, Table, allowed_bytes, check_names, check_size

MAX_LINE = MIB
# What a packed file may unfold to. Recordings of an arm at rest shrink 16 times; the floors are read in half a second.
TEXT_FLOOR = 10 * MIB
CELL_FLOOR = 1_000_000
CELLS_PER_BYTE = 4
NOTE_MARK = "# trueup-log "
_BATCH = 2048
_BLOCK = 1 << 16


def read_csv(file: Path, wanted: Sequence[str] | None, *, delimiter: str = ",", header: bool = True) -> Table:
    """Read the wanted columns of a CSV file; failures name the line and the column."""
    try:
        size = file.stat().st_size
        packed = file.name.lower().endswith(".gz")
        with file.open("rb") as raw:
            stream: BinaryIO = gzip.GzipFile(fileobj=raw) if packed else raw  # type: ignore[assignment]
            lines = _lines(stream, file, allowed_bytes(size, TEXT_FLOOR) if packed else size)
            reader = _Reader(file, lines, delimiter, allowed_cells(size) if packed else size + 1)
            return reader.read(wanted, header, allowed_bytes(size))
    except (OSError, EOFError, zlib.error) as error:  # gzip: wrong magic, wrong checksum, cut short
        raise TrueupError(f"cannot be read: {error}", file=file) from None
    except MemoryError:
        raise TrueupError("does not fit into memory", file=file) from None


def allowed_cells(size: int) -> int:
    """Return how many cells and list entries a gzip file of this size may unfold to."""
    return max(CELL_FLOOR, CELLS_PER_BYTE * size)


def fits_packed(text: int, cells: int, size: int) -> bool:
    """Whether this much text would be read again out of a gzip file of `size` bytes."""
    return text <= allowed_bytes(size, TEXT_FLOOR) and cells <= allowed_cells(size)


def _fail(message: str, file: Path, line: int, column: str | None = None) -> NoReturn:
    raise TrueupError(message, file=file, place=f"line {line}" + (f", column {column!r}" if column else ""))


def _lines(stream: BinaryIO, file: Path, allowed: int) -> Iterator[str]:
    """Yield the lines of a file, a block at a time: each line and all together are bounded."""
    number, rest = 1, b""  # number of the line that `rest` begins
    while block := stream.read(_BLOCK):
        allowed -= len(block)
        if allowed < 0:
            _fail(
                "unfolds to far more text than its size allows; unpack it first if it is genuine",
                file,
                number,
            )
        whole, newline, tail = block.rpartition(b"\n")
        if newline:
            yield from (lines := _decode(rest + whole, file, number))
            number, rest = number + len(lines), tail
        else:
            rest += block
        if len(rest) > MAX_LINE:
            _fail(f"a line is longer than {MAX_LINE} bytes", file, number)
    if rest:
        yield from _decode(rest, file, number)


def _decode(raw: bytes, file: Path, number: int) -> list[str]:
    if number == 1 and raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        _fail("is UTF-16 text; save it as UTF-8", file, 1)
    nul = raw.find(b"\0")
    if nul >= 0:
        _fail("holds a NUL byte: not a text file, or damaged", file, number + raw.count(b"\n", 0, nul))
    try:
        return raw.decode("utf-8-sig" if number == 1 else "utf-8").split("\n")
    except UnicodeDecodeError as error:
        line = number + raw.count(b"\n", 0, error.start)
        _fail(f"is not UTF-8 text ({error.reason}); save it as UTF-8", file, line)


class _Batch(NamedTuple):
    """Rows without the blank ones, and the line each one is on (exact unless cells hold line breaks)."""

    rows: list[list[str]]
    lines: Sequence[int]


class _Reader:
    """Rows of one file, a batch at a time."""

    def __init__(self, file: Path, lines: Iterator[str], delimiter: str, cells: int) -> None:
        first = next(lines, "")
        self.note = first.removeprefix(NOTE_MARK).strip() if first.startswith(NOTE_MARK) else ""
        self.offset = 2 if self.note else 1  # line number of the first row
        source = lines if self.note else chain([first], lines)
        self.rows = csv.reader(source, delimiter=delimiter, skipinitialspace=True, strict=True)
        self.file, self.cells = file, cells

    def read(self, wanted: Sequence[str] | None, header: bool, allowed: int) -> Table:
        batches = self.batches()
        batch = next(batches, None)
        if batch is None:
            raise TrueupError("is empty", file=self.file)
        top = batch.rows[0]
        names = tuple(cell.strip() for cell in top) if header else tuple(str(k) for k in range(len(top)))
        check_names(names, wanted, self.file)
        if header:
            batch = _Batch(batch.rows[1:], batch.lines[1:])
        columns = _pick(names, wanted, batch.rows)
        for more in chain([batch], batches):
            self.spend(len(more.rows) * sum(column.width for column in columns), more.lines)
            _add(columns, more, self.file)
            check_size(sum(len(column.values) for column in columns), allowed, self.file)
        done = {column.name: column.done() for column in columns}
        return Table(file=self.file, columns=done, names=names, note=self.note)

    def batches(self) -> Iterator[_Batch]:
        """Yield batches of rows that all have as many cells as the first row."""
        line, width = self.offset, 0
        lines: Sequence[int]
        while found := self.take():
            rows, lines = found, range(line, line + len(found))
            if not all(found):
                rows = [row for row in found if row]
                lines = [line + k for k, row in enumerate(found) if row]
            line = self.offset + self.rows.line_num
            width = width or (len(rows[0]) if rows else 0)
            if not {len(row) for row in rows} <= {width}:
                k = next(k for k, row in enumerate(rows) if len(row) != width)
                _fail(f"has {len(rows[k])} cells where the first line has {width}", self.file, lines[k])
            self.spend(len(found) * max(width, 1), [line])
            if rows:
                yield _Batch(rows, lines)

    def take(self) -> list[list[str]]:
        try:
            return list(islice(self.rows, _BATCH))
        except csv.Error as error:
            _fail(f"is not valid CSV: {error}", self.file, self.rows.line_num + self.offset - 1)

    def spend(self, cells: int, lines: Sequence[int]) -> None:
        self.cells -= cells
        if self.cells < 0 and lines:
            _fail("unfolds to far more cells than its size allows; unpack it first", self.file, lines[0])


class _Column:
    """One column while it is read: a number a cell, or a list of `width` numbers a cell."""

    def __init__(self, name: str, index: int, sample: str) -> None:
        self.name, self.index = name, index
        self.width = len(_split(sample)) if sample.startswith(("[", "(")) else 0
        self.values = array("d")

    def add(self, cell: str) -> None:
        """Add one cell; an empty one is a missing value. ValueError says what is wrong."""
        cell = cell.strip()
        if self.width:
            parts = _split(cell)
            if len(parts) != self.width:
                raise ValueError(f"lists {len(parts)} numbers where the first row lists {self.width}")
            self.values.extend([_number(part) for part in parts])
        else:
            self.values.append(_number(cell) if cell else float("nan"))

    def extend(self, words: list[str]) -> bool:
        """Add numbers at full speed, all or none; say whether all were numbers."""
        kept = len(self.values)
        try:
            self.values.extend(map(float, words))
        except ValueError:
            del self.values[kept:]
            return False
        return True

    def done(self) -> FloatArray:
        values = np.frombuffer(self.values, np.float64) if self.values else np.empty(0)
        return values.reshape(-1, self.width) if self.width else values


def _split(cell: str) -> list[str]:
    if cell[-1:] not in ("]", ")") or cell[:1] not in ("[", "("):
        raise ValueError(f"{cell[:40]!r} is no list of numbers")
    return cell[1:-1].replace(",", " ").split()


def _number(text: str) -> float:
    if "_" in text:  # Python reads 1_0 as ten; no logger writes it
        raise ValueError(f"{text[:40]!r} is no number")
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{text[:40]!r} is no number") from None


def _pick(names: Sequence[str], wanted: Sequence[str] | None, rows: list[list[str]]) -> list[_Column]:
    sample = [cell.strip() for cell in rows[0]] if rows else [""] * len(names)
    if wanted is not None:
        return [_start(name, names.index(name), sample[names.index(name)]) for name in dict.fromkeys(wanted)]
    numbers = [name for name in dict.fromkeys(names) if not _is_text(sample[names.index(name)])]
    return _pick(names, numbers, rows)


def _start(name: str, index: int, sample: str) -> _Column:
    return _Column(name, index, "" if _is_text(sample) else sample)  # text is refused later, with its line


def _is_text(cell: str) -> bool:
    try:
        for part in _split(cell) if cell.startswith(("[", "(")) else [cell or "0"]:
            _number(part)
    except ValueError:
        return True
    return False


def _add(columns: list[_Column], batch: _Batch, file: Path) -> None:
    """Convert a batch of rows, a column at a time; cell by cell only where something is unusual."""
    for column in columns:
        cells = [row[column.index] for row in batch.rows]
        add = _extend_lists if column.width else _extend
        if not add(column, cells):
            _add_cells(column, cells, batch.lines, file)


def _extend(column: _Column, cells: list[str]) -> bool:
    """Add numbers at full speed, first as they are, then with empty cells as NaN; say whether it went."""
    if "_" in "".join(cells):
        return False
    return column.extend(cells) or column.extend([cell.strip() or "nan" for cell in cells])


def _extend_lists(column: _Column, cells: list[str]) -> bool:
    """Add `[1, 2]` cells at full speed, all as one text; say whether it went.

    As many brackets as cells, each pair around a whole cell, and a mark after every `width` words: then every cell is
    a list of `width` words.
    """
    text, n = "\n".join(cells).replace("(", "[").replace(")", "]"), len(cells)
    if not (text.startswith("[") and text.endswith("]") and text.count("]\n[") == n - 1):
        return False
    if text.count("[") != n or text.count("]") != n or "_" in text or ";" in text:
        return False
    words = text[1:-1].replace("]\n[", " ; ").replace(",", " ").split()
    each = column.width + 1
    if len(words) != n * each - 1 or words[column.width :: each].count(";") != n - 1:
        return False
    del words[column.width :: each]
    return column.extend(words)


def _add_cells(column: _Column, cells: list[str], lines: Sequence[int], file: Path) -> None:
    for line, cell in zip(lines, cells, strict=True):
        try:
            column.add(cell)
        except ValueError as error:
            _fail(str(error), file, line, column.name)
