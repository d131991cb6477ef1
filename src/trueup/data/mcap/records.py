"""What an MCAP file consists of, and how its fields are read: within their bounds and within limits.

Walking through a file is in `mcap_scan`.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NamedTuple

import lz4.frame  # type: ignore[import-untyped]
import zstandard

from trueup.core.errors import TrueupError


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What a file may ask for. Totals grow with the file, so that a small file cannot ask for much.

    An indexed message takes 16 bytes of index alone: hardly an honest file has fewer `bytes_per_message`.
    """

    chunk_bytes: int = 64 << 20
    spare_bytes: int = 16 << 20
    expansion: int = 24  # uncompressed bytes per byte of the file, beyond the spare ones
    spare_messages: int = 20_000
    bytes_per_message: int = 16
    definition_bytes: int = 1 << 20
    definitions: int = 4096
    name_bytes: int = 1024
    joints: int = 1024


class Schema(NamedTuple):
    """A message definition."""

    id: int
    name: str
    encoding: str
    data: bytes


class Channel(NamedTuple):
    """A topic."""

    id: int
    schema_id: int
    topic: str
    encoding: str
    metadata: dict[str, str]


class Message(NamedTuple):
    """A message as it is stored; `place` is the byte in the file where its record, or its chunk, begins."""

    channel_id: int
    sequence: int
    log_time: int
    publish_time: int
    data: bytes
    place: int


class Metadata(NamedTuple):
    """A named table of strings."""

    name: str
    values: dict[str, str]


Item = Schema | Channel | Message | Metadata


class Damage(NamedTuple):
    """A part of a file that could not be read; `is_cut` says that the file ended too early."""

    offset: int
    text: str
    skipped_bytes: int
    is_cut: bool


class MalformedError(Exception):
    """Bytes that break the format; for the callers in this folder, which know file and place."""

    def __init__(self, text: str, *, resume: int | None = None, is_cut: bool = False) -> None:
        super().__init__(text)
        self.resume, self.is_cut = resume, is_cut


class Cursor:
    """Reads fields from bytes and refuses to read past their end."""

    def __init__(self, data: bytes, *, endian: str = "<", base: int = 0) -> None:
        self.data, self.pos, self._endian, self._base = data, base, endian, base

    def skip(self, size: int) -> int:
        """Step over `size` bytes; returns where they begin."""
        start = self.pos
        if size > len(self.data) - start:
            raise MalformedError(
                f"{size} bytes expected at {start}, {max(len(self.data) - start, 0)} are left"
            )
        self.pos = start + size
        return start

    def align(self, size: int) -> None:
        """Step to the next multiple of `size`, counted from the base."""
        self.pos += -(self.pos - self._base) % size

    def number(self, code: str, size: int) -> int:
        """One integer of a struct code."""
        start = self.skip(size)
        return int(struct.unpack_from(self._endian + code, self.data, start)[0])

    def text(self, limit: int) -> str:
        """A length (u32) and as many bytes of UTF-8."""
        size = self.number("I", 4)
        if size > limit:
            raise MalformedError(f"a name of {size} bytes, at most {limit} are read")
        start = self.skip(size)
        try:
            return self.data[start : start + size].decode()
        except UnicodeDecodeError:
            raise MalformedError("a name that is not UTF-8") from None

    def table(self, limit: int) -> dict[str, str]:
        """A map of strings."""
        end = self.number("I", 4) + self.pos
        if end > len(self.data):
            raise MalformedError("a table that runs past its record")
        values: dict[str, str] = {}
        while self.pos < end:
            key = self.text(limit)
            values[key] = self.text(limit)
        return values


def open_input(path: str | Path) -> BinaryIO:
    """Open an existing ordinary file to read."""
    try:
        if not Path(path).is_file():
            raise TrueupError("there is no such file", file=path)
        return open(path, "rb")
    except (OSError, ValueError) as error:
        raise TrueupError(f"cannot be opened: {error}", file=path) from None


def decompress(data: bytes, compression: str, size: int, *, partial: bool = False) -> bytes:
    """Undo a chunk's compression, making at most `size` bytes; `partial` takes what a cut chunk yields."""
    try:
        if compression == "":
            out = data[:size]
        elif compression == "zstd":
            stream = zstandard.ZstdDecompressor(max_window_size=1 << 26).stream_reader(data)
            out = _all_of(stream, size, partial)
        elif compression == "lz4":
            out = lz4.frame.LZ4FrameDecompressor().decompress(data, max_length=size) if size else b""
        else:
            raise MalformedError(f"compression {compression[:20]!r} is not known (zstd, lz4 or none)")
    except (zstandard.ZstdError, RuntimeError, EOFError, ValueError) as error:
        raise MalformedError(f"compressed data is damaged ({error})") from None
    if len(out) != size and not partial:
        raise MalformedError(f"a chunk should hold {size} bytes, {len(out)} came out")
    return bytes(out)


def _all_of(stream: zstandard.ZstdDecompressionReader, size: int, partial: bool) -> bytes:
    """Read up to `size` bytes in pieces: memory grows with what is there, not with what is claimed."""
    pieces: list[bytes] = []
    left = size
    try:
        while left > 0 and (piece := stream.read(min(left, 1 << 20))):
            pieces.append(piece)
            left -= len(piece)
    except zstandard.ZstdError:
        if not partial:
            raise
    return b"".join(pieces)
