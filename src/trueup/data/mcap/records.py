"""Limits on MCAP files, records read from them, and decompression of chunks within the limits."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO, NamedTuple

import lz4.frame  # type: ignore[import-untyped]
import zstandard
from mcap.records import Channel, Metadata, Schema

from trueup.core.errors import TrueupError

MAGIC = b"\x89MCAP0\r\n"
# What a file may ask for; totals grow with the file, so that a small file cannot ask for much.
CHUNK_BYTES = 64 << 20
SPARE_BYTES, EXPANSION = 16 << 20, 24  # uncompressed bytes, and how many more for each byte of the file
SPARE_MESSAGES, BYTES_PER_MESSAGE = 20_000, 16  # an indexed message takes 16 bytes of index alone
DEFINITION_BYTES, MOST_DEFINITIONS = 1 << 20, 8192  # the summary repeats definitions
NAME_BYTES, MOST_JOINTS = 1024, 1024


class Messages(NamedTuple):
    """Message records as stored in `data`: where each begins, and the byte of the file that they came from."""

    data: bytes
    starts: list[int]
    place: int


Item = Schema | Channel | Metadata | Messages


class Damage(NamedTuple):
    """A part of a file that could not be read; `is_cut` says that the file ended too early."""

    offset: int
    text: str
    skipped_bytes: int
    is_cut: bool


class MalformedError(TrueupError):
    """Bytes that break the format; callers in this folder add file and place."""

    def __init__(self, text: str, *, is_cut: bool = False) -> None:
        super().__init__(text)
        self.is_cut = is_cut


def open_input(path: str | Path) -> BinaryIO:
    """Open an existing ordinary file to read."""
    try:
        if not Path(path).is_file():
            raise TrueupError("there is no such file", file=path)
        return open(path, "rb", buffering=1 << 20)
    except (OSError, ValueError) as error:
        raise TrueupError(f"cannot be opened: {error}", file=path) from None


def decompress(data: bytes, compression: str, size: int, *, partial: bool = False) -> bytes:
    """Undo a chunk's compression, making at most `size` bytes; `partial` takes what a cut chunk yields.

    The library's own function believes the size that the compressed data claims.
    """
    try:
        if compression == "":
            out = data[:size]
        elif compression == "zstd":
            out = zstandard.ZstdDecompressor(max_window_size=1 << 26).stream_reader(data).read(size)
        elif compression == "lz4":
            out = lz4.frame.LZ4FrameDecompressor().decompress(data, max_length=size) if size else b""
        else:
            raise MalformedError(f"compression {compression[:20]!r} is not known (zstd, lz4 or none)")
    except (zstandard.ZstdError, RuntimeError, EOFError, ValueError) as error:
        raise MalformedError(f"compressed data is damaged ({error})") from None
    if len(out) != size and not partial:
        raise MalformedError(f"a chunk should hold {size} bytes, {len(out)} came out")
    return bytes(out)
