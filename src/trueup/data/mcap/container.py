"""The MCAP container, written: records, chunks with their index, summary, checksums.

Every byte of a finished file is under a checksum (chunks, data section, summary), so that `mcap_scan` finds
any change. Format: mcap.dev/spec. What the messages hold is none of this module's business.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trueup._version import __version__

MAGIC = b"\x89MCAP0\r\n"
HEADER, FOOTER, SCHEMA, CHANNEL, MESSAGE, CHUNK, MESSAGE_INDEX, CHUNK_INDEX = range(1, 9)
STATISTICS, METADATA, METADATA_INDEX, SUMMARY_OFFSET, DATA_END = 0x0B, 0x0C, 0x0D, 0x0E, 0x0F


class Indexed(NamedTuple):
    """Messages of one channel inside a chunk: log times (ns) and offsets in the uncompressed chunk."""

    channel_id: int
    times: NDArray[np.uint64]
    offsets: NDArray[np.uint64]


def _string(text: str) -> bytes:
    raw = text.encode()
    return struct.pack("<I", len(raw)) + raw


def _mapping(values: dict[str, str]) -> bytes:
    body = b"".join(_string(key) + _string(value) for key, value in values.items())
    return struct.pack("<I", len(body)) + body


def _record(opcode: int, *parts: bytes) -> bytes:
    body = b"".join(parts)
    return struct.pack("<BQ", opcode, len(body)) + body


class McapFile:
    """Appends records through `write` (one call per record group) and remembers what the summary needs.

    compress turns the bytes of a chunk into those stored; `compression` is its MCAP name ("zstd", "lz4", "").
    """

    def __init__(
        self, write: Callable[[bytes], None], *, compression: str, compress: Callable[[bytes], bytes]
    ) -> None:
        self._write_out = write
        self._compression, self._compress = compression, compress
        self.offset = 0
        self._crc = 0
        self._schemas: list[bytes] = []
        self._channels: list[bytes] = []
        self._chunk_indexes: list[bytes] = []
        self._metadata_indexes: list[bytes] = []
        self._counts: dict[int, int] = {}
        self._span = (2**64 - 1, 0)
        self._write(MAGIC + _record(HEADER, _string("ros2"), _string(f"trueup {__version__}")))

    def _write(self, data: bytes) -> None:
        self._write_out(data)  # first: if it fails nothing here has changed
        self._crc = zlib.crc32(data, self._crc)
        self.offset += len(data)

    def schema(self, schema_id: int, name: str, data: bytes, encoding: str = "ros2msg") -> None:
        """Declare a message definition."""
        head = struct.pack("<H", schema_id) + _string(name) + _string(encoding)
        record = _record(SCHEMA, head, struct.pack("<I", len(data)), data)
        self._write(record)
        self._schemas.append(record)

    def channel(
        self, channel_id: int, schema_id: int, topic: str, metadata: dict[str, str], encoding: str = "cdr"
    ) -> None:
        """Declare a topic."""
        ids = struct.pack("<HH", channel_id, schema_id)
        record = _record(CHANNEL, ids, _string(topic), _string(encoding), _mapping(metadata))
        self._write(record)
        self._channels.append(record)
        self._counts[channel_id] = 0

    def metadata(self, name: str, values: dict[str, str]) -> None:
        """Write a named table of strings."""
        record = _record(METADATA, _string(name), _mapping(values))
        place = struct.pack("<QQ", self.offset, len(record))
        self._write(record)
        self._metadata_indexes.append(_record(METADATA_INDEX, place, _string(name)))

    def chunk(self, records: bytes, indexed: Sequence[Indexed]) -> None:
        """Write message records as one chunk and its index, in one call of `write`."""
        first = min(int(entry.times.min()) for entry in indexed)
        last = max(int(entry.times.max()) for entry in indexed)
        stored = self._compress(records)
        chunk = _record(
            CHUNK,
            struct.pack("<QQQI", first, last, len(records), zlib.crc32(records)),
            _string(self._compression),
            struct.pack("<Q", len(stored)),
            stored,
        )
        index, offsets = bytearray(), bytearray()
        for entry in indexed:
            offsets += struct.pack("<HQ", entry.channel_id, self.offset + len(chunk) + len(index))
            pairs = np.column_stack([entry.times, entry.offsets]).astype("<u8", copy=False).tobytes()
            index += struct.pack("<BQHI", MESSAGE_INDEX, 6 + len(pairs), entry.channel_id, len(pairs)) + pairs
        place = struct.pack("<QQQQI", first, last, self.offset, len(chunk), len(offsets))
        sizes = struct.pack("<QQ", len(stored), len(records))
        summary = _record(
            CHUNK_INDEX,
            place,
            bytes(offsets),
            struct.pack("<Q", len(index)),
            _string(self._compression),
            sizes,
        )
        self._write(chunk + index)
        self._chunk_indexes.append(summary)
        self._span = (min(self._span[0], first), max(self._span[1], last))
        for entry in indexed:
            self._counts[entry.channel_id] += len(entry.times)

    def finish(self) -> None:
        """Write the end of the data, the summary and the footer."""
        self._write(_record(DATA_END, struct.pack("<I", self._crc)))
        groups = {
            SCHEMA: self._schemas,
            CHANNEL: self._channels,
            STATISTICS: [self._statistics()],
            CHUNK_INDEX: self._chunk_indexes,
            METADATA_INDEX: self._metadata_indexes,
        }
        start, summary, offsets = self.offset, bytearray(), bytearray()
        for opcode, records in groups.items():
            if records:
                begin = len(summary)
                summary += b"".join(records)
                place = struct.pack("<BQQ", opcode, start + begin, len(summary) - begin)
                offsets += _record(SUMMARY_OFFSET, place)
        footer = struct.pack("<BQQQ", FOOTER, 20, start, start + len(summary))
        body = bytes(summary + offsets) + footer
        self._write(body + struct.pack("<I", zlib.crc32(body)) + MAGIC)

    def _statistics(self) -> bytes:
        total = sum(self._counts.values())
        first, last = self._span if total else (0, 0)
        numbers = (total, len(self._schemas), len(self._channels), 0, len(self._metadata_indexes))
        counts = b"".join(struct.pack("<HQ", *item) for item in self._counts.items())
        head = struct.pack("<QHIIIIQQ", *numbers, len(self._chunk_indexes), first, last)
        return _record(STATISTICS, head, struct.pack("<I", len(counts)), counts)
