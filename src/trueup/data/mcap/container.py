"""The MCAP container, written: chunks with their index, summary, checksums. Format: mcap.dev/spec.

The records are those of the `mcap` package. Its own `Writer` is not used while recording: it costs several
microseconds for each message, puts the definitions into the first chunk, where damage to one row takes them along, and
writes a chunk and its index in separate calls, between which a kill leaves half of them.
Every byte of a finished file is under a checksum (chunks, data section, summary), so that `scan` finds any change.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Sequence

import zstandard
from mcap.data_stream import RecordBuilder
from mcap.opcode import Opcode
from mcap.records import (
    Channel,
    Chunk,
    ChunkIndex,
    DataEnd,
    Footer,
    Header,
    McapRecord,
    MessageIndex,
    Metadata,
    MetadataIndex,
    Schema,
    Statistics,
    SummaryOffset,
)

from trueup._version import __version__

MAGIC = b"\x89MCAP0\r\n"


def _bytes(records: Sequence[McapRecord]) -> bytes:
    builder = RecordBuilder()
    for record in records:
        record.write(builder)
    return bytes(builder.end())  # type: ignore[no-untyped-call]


class McapFile:
    """Gathers message records into chunks and appends them through `write`, one call for each chunk."""

    def __init__(self, write: Callable[[bytes], None], *, level: int) -> None:
        self._write_out, self._compress = write, zstandard.ZstdCompressor(level=level).compress
        self.offset = 0
        self._crc = 0
        self._schemas: list[Schema] = []
        self._channels: list[Channel] = []
        self._chunks: list[ChunkIndex] = []
        self._metadata: list[MetadataIndex] = []
        self._counts: dict[int, int] = {}
        self._records = bytearray()
        self._index: dict[int, list[tuple[int, int]]] = {}
        self._write(MAGIC + _bytes([Header("ros2", f"trueup {__version__}")]))

    @property
    def pending_bytes(self) -> int:
        """Bytes gathered since the last chunk."""
        return len(self._records)

    def _write(self, data: bytes) -> None:
        self._write_out(data)  # first: if it fails nothing here has changed
        self._crc = zlib.crc32(data, self._crc)
        self.offset += len(data)

    def define(self, record: Schema | Channel | Metadata) -> None:
        """Write a message definition, a topic or a named table of strings, outside of any chunk."""
        data = _bytes([record])
        start = self.offset
        self._write(data)
        if isinstance(record, Schema):
            self._schemas.append(record)
        elif isinstance(record, Channel):
            self._channels.append(record)
            self._counts[record.id] = 0
        else:
            self._metadata.append(MetadataIndex(offset=start, length=len(data), name=record.name))

    def add(self, records: bytes | bytearray, time_ns: int, places: Sequence[tuple[int, int]]) -> None:
        """Gather message records of one time; `places` are (channel, where its record begins in `records`)."""
        start = len(self._records)
        for channel, offset in places:
            self._index.setdefault(channel, []).append((time_ns, start + offset))
        self._records += records

    def flush(self) -> None:
        """Write what was gathered as one chunk with its index, in one call; what cannot be written is dropped."""
        if not self._index:
            return
        records, index = bytes(self._records), self._index
        self._records, self._index = bytearray(), {}
        times = [time for entries in index.values() for time, _ in entries]
        stored = self._compress(records)
        chunk = Chunk(
            compression="zstd",
            data=stored,
            message_start_time=min(times),
            message_end_time=max(times),
            uncompressed_crc=zlib.crc32(records),
            uncompressed_size=len(records),
        )
        data, offsets = _bytes([chunk]), {}
        length = len(data)
        for channel, entries in index.items():
            offsets[channel] = self.offset + len(data)
            data += _bytes([MessageIndex(channel, entries)])
        entry = ChunkIndex(
            chunk_start_offset=self.offset,
            chunk_length=length,
            message_start_time=chunk.message_start_time,
            message_end_time=chunk.message_end_time,
            message_index_offsets=offsets,
            message_index_length=len(data) - length,
            compression=chunk.compression,
            compressed_size=len(stored),
            uncompressed_size=len(records),
        )
        self._write(data)
        self._chunks.append(entry)
        for channel, entries in index.items():
            self._counts[channel] += len(entries)

    def finish(self) -> None:
        """Write what is left, the end of the data, the summary and the footer."""
        self.flush()
        self._write(_bytes([DataEnd(self._crc)]))
        groups: dict[Opcode, Sequence[McapRecord]] = {
            Opcode.SCHEMA: self._schemas,
            Opcode.CHANNEL: self._channels,
            Opcode.STATISTICS: [self._statistics()],
            Opcode.CHUNK_INDEX: self._chunks,
            Opcode.METADATA_INDEX: self._metadata,
        }
        start, summary, offsets = self.offset, b"", []
        for opcode, records in groups.items():
            if records:
                data = _bytes(records)
                offsets.append(SummaryOffset(opcode, start + len(summary), len(data)))
                summary += data
        body = summary + _bytes(offsets)
        head = struct.pack("<BQQQ", Opcode.FOOTER, 20, start, start + len(summary))
        footer = Footer(start, start + len(summary), zlib.crc32(body + head))
        self._write(body + _bytes([footer]) + MAGIC)

    def _statistics(self) -> Statistics:
        return Statistics(
            message_count=sum(self._counts.values()),
            schema_count=len(self._schemas),
            channel_count=len(self._channels),
            attachment_count=0,
            metadata_count=len(self._metadata),
            chunk_count=len(self._chunks),
            message_start_time=min((chunk.message_start_time for chunk in self._chunks), default=0),
            message_end_time=max((chunk.message_end_time for chunk in self._chunks), default=0),
            channel_message_counts=self._counts,
        )
