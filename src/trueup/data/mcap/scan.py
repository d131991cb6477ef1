"""Reads MCAP files from front to end: every size is checked before use, every checksum verified.

What a record holds is read by the `mcap` package. The walk from record to record is here: the package's stream parses
every entry of the index in Python, which takes longer than reading the messages, and ends at the first flaw. The index
is never relied on, so files that were cut short are read too. Damage is noted and stepped over: a chunk whose checksum
fails is left out, and where the framing is lost the next chunk that proves itself by its checksum is searched for.
"""

from __future__ import annotations

import contextlib
import io
import mmap
import re
import struct
import zlib
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from mcap.data_stream import ReadDataStream
from mcap.exceptions import McapError
from mcap.opcode import Opcode
from mcap.records import Channel, Chunk, DataEnd, Footer, Metadata, Schema

from trueup.core.errors import TrueupError
from trueup.data.mcap import records
from trueup.data.mcap.records import MAGIC, Damage, Item, MalformedError, Messages, decompress, open_input

_HEAD = struct.Struct("<BQ")
_MESSAGE_HEAD = 22
_DEFINITIONS: dict[int, Any] = {Opcode.SCHEMA: Schema, Opcode.CHANNEL: Channel, Opcode.METADATA: Metadata}
# a chunk's fixed fields, then its compression: what the search for the next chunk looks for
_CHUNK_PATTERN = re.compile(
    rb"\x06[\s\S]{4}\x00{4}[\s\S]{20}\x00{4}[\s\S]{4}(?:\x04\x00\x00\x00zstd|\x03\x00\x00\x00lz4|\x00\x00\x00\x00)"
)
_CANDIDATES = 20_000  # places that look like a chunk and are none, before the search gives up


def scan(path: str | Path, damage: list[Damage]) -> Iterator[Item]:
    """Yield definitions (again from the summary), metadata and messages in the order of the file; note its damage."""
    with open_input(path) as file:
        if not file.seek(0, 2):
            damage.append(Damage(0, "the file is empty", 0, False))
            return
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as view:
            yield from _Scan(view, path, damage).items()


class _Scan:
    def __init__(self, view: mmap.mmap, path: str | Path, damage: list[Damage]) -> None:
        self._view, self._path, self._damage = view, path, damage
        self._size, self._at = len(view), 0
        self._summary = 0  # where it begins; 0 while the data goes on
        self._bytes_left = records.SPARE_BYTES + records.EXPANSION * self._size
        self._messages_left = records.SPARE_MESSAGES + self._size // records.BYTES_PER_MESSAGE
        self._definitions_left = records.MOST_DEFINITIONS

    def items(self) -> Iterator[Item]:
        end = len(MAGIC)
        if self._view[:end] != MAGIC:
            self._damage.append(Damage(0, "this is not an MCAP file (its first bytes are others)", 0, False))
            end = self._next_chunk(0)
        while end < self._size:
            self._at = start = end
            try:
                opcode, end = self._head(start)
            except MalformedError as flaw:  # the framing is lost
                end = self._next_chunk(start)
                self._note(start, end, flaw)
                if end == self._size and not self._summary:
                    yield from self._rest_of_chunk(start)
                continue
            try:
                yield from self._record(opcode, start, end)
            except MalformedError as flaw:
                self._note(start, end, flaw)
            if opcode == Opcode.FOOTER and self._summary:
                return
        if not self._summary and not (self._damage and self._damage[-1].is_cut):
            self._damage.append(Damage(self._size, "the file ends before its data does", 0, True))

    def _head(self, start: int) -> tuple[int, int]:
        """Kind of a record, and where it ends."""
        if self._size - start < _HEAD.size:
            raise MalformedError("the file ends inside the head of a record", is_cut=True)
        opcode, length = _HEAD.unpack_from(self._view, start)
        left = self._size - start - _HEAD.size
        if length > left:
            raise MalformedError(f"a record claims {length} bytes, {left} are left in the file", is_cut=True)
        if opcode == 0:
            raise MalformedError("a record of kind 0, which does not exist")
        return opcode, start + _HEAD.size + length

    def _record(self, opcode: int, start: int, end: int) -> Iterator[Item]:
        if opcode == Opcode.FOOTER:
            self._end_file(start, end)
        elif self._summary and opcode not in (Opcode.SCHEMA, Opcode.CHANNEL):
            return
        elif opcode == Opcode.DATA_END:
            self._end_data(start, end)
        elif opcode == Opcode.CHUNK:
            yield from self._chunk(self._view[start + _HEAD.size : end], start)
        elif opcode == Opcode.MESSAGE:
            yield from self._inside(self._view[start:end], start, False)
        elif opcode in _DEFINITIONS:
            yield self._definition(opcode, self._view[start + _HEAD.size : end])

    # Records

    def _definition(self, opcode: int, body: bytes) -> Item:
        self._definitions_left -= 1
        if self._definitions_left < 0:
            raise self._refusal(f"more than {records.MOST_DEFINITIONS} definitions and topics")
        if len(body) > records.DEFINITION_BYTES:
            raise MalformedError(f"a definition of {len(body)} bytes, at most {records.DEFINITION_BYTES} are read")
        item: Schema | Channel | Metadata = _parse(_DEFINITIONS[opcode], body)
        longest = max(len(getattr(item, field, "")) for field in ("name", "encoding", "topic", "message_encoding"))
        if longest > records.NAME_BYTES:
            raise MalformedError(f"a name of {longest} letters, at most {records.NAME_BYTES} are read")
        return item

    def _chunk(self, body: bytes, start: int, *, partial: bool = False) -> Iterator[Item]:
        chunk = _parse(Chunk, body)
        size = chunk.uncompressed_size
        if size > records.CHUNK_BYTES:
            raise MalformedError(f"a chunk claims {size} bytes uncompressed, at most {records.CHUNK_BYTES} are read")
        self._bytes_left -= size
        if self._bytes_left < 0:
            raise self._refusal(f"it unpacks to more than {records.EXPANSION} times its {self._size} bytes")
        data = decompress(chunk.data, chunk.compression, size, partial=partial)
        if chunk.uncompressed_crc and not partial and zlib.crc32(data) != chunk.uncompressed_crc:
            raise MalformedError("the checksum of a chunk differs")
        yield from self._inside(data, start, partial)

    def _inside(self, data: bytes, start: int, partial: bool) -> Iterator[Item]:
        """The records of a chunk (or a single message): definitions one by one, then all messages together."""
        starts: list[int] = []
        pos, end = 0, len(data)
        unpack = _HEAD.unpack_from
        while pos < end:
            opcode, length = unpack(data, pos) if end - pos >= 9 else (0, 0)
            after = pos + 9 + length
            if opcode == 0 or after > end or (opcode == Opcode.MESSAGE and length < _MESSAGE_HEAD):
                if partial:
                    break
                raise MalformedError(f"a record inside a chunk is damaged, {pos} bytes into it")
            if opcode == Opcode.MESSAGE:
                starts.append(pos)
            elif opcode in (Opcode.SCHEMA, Opcode.CHANNEL):
                yield self._definition(opcode, data[pos + 9 : after])
            pos = after
        self._messages_left -= len(starts)
        if self._messages_left < 0:
            raise self._refusal(f"more messages than a file of {self._size} bytes can honestly hold")
        if starts:
            yield Messages(data, starts, start)

    # The end

    def _crc(self, start: int, stop: int) -> int:
        with memoryview(self._view)[start:stop] as part:
            return zlib.crc32(part)

    def _end_data(self, start: int, end: int) -> None:
        expected = _parse(DataEnd, self._view[start + _HEAD.size : end]).data_section_crc
        self._summary = end
        if expected and not self._damage and self._crc(0, start) != expected:
            raise MalformedError("the checksum of the data differs")

    def _end_file(self, start: int, end: int) -> None:
        """Check the footer, the summary before it by its checksum, and the magic."""
        if not self._summary or end - start != _HEAD.size + 20:
            raise MalformedError("a footer where the data should go on, or a damaged one")
        footer = _parse(Footer, self._view[start + _HEAD.size : end])
        if self._view[end:] != MAGIC:
            raise MalformedError("the file does not end as MCAP files do", is_cut=True)
        is_whole = footer.summary_crc in (0, self._crc(self._summary, end - 4))
        if not self._damage and not (is_whole and footer.summary_start in (0, self._summary)):
            raise MalformedError("the checksum or the place of the summary differs")

    # Damage

    def _refusal(self, text: str) -> TrueupError:
        """A limit was exceeded: an error, in recovery too."""
        return TrueupError(text, file=self._path, place=f"byte {self._at}")

    def _note(self, start: int, end: int, flaw: MalformedError) -> None:
        self._damage.append(Damage(start, str(flaw), 0 if self._summary else end - start, flaw.is_cut))

    def _rest_of_chunk(self, start: int) -> Iterator[Item]:
        """Records of a chunk truncated by the end of the file."""
        if self._view[start] == Opcode.CHUNK:
            body = self._view[start + _HEAD.size : start + _HEAD.size + records.CHUNK_BYTES]
            with contextlib.suppress(MalformedError):
                yield from self._chunk(body, start, partial=True)

    def _next_chunk(self, start: int) -> int:
        """Where the next chunk begins that is whole by its checksum; the end of the file if there is none."""
        for found in islice(_CHUNK_PATTERN.finditer(self._view, start + 1), _CANDIDATES):
            if self._is_whole(found.start()):
                return found.start()
        return self._size

    def _is_whole(self, start: int) -> bool:
        """Whether a chunk that proves itself begins here; nothing large is read unless its sizes agree."""
        _, length = _HEAD.unpack_from(self._view, start)
        size, crc, named = struct.unpack_from("<QII", self._view, start + 25)
        if self._size - start < 49 + named:
            return False
        (stored,) = struct.unpack_from("<Q", self._view, start + 41 + named)
        if not (size and crc and stored) or length != 28 + 4 + named + 8 + stored:
            return False
        if stored > min(self._size - start, records.CHUNK_BYTES):
            return False
        self._bytes_left -= stored
        try:
            return any(True for _ in self._chunk(self._view[start + _HEAD.size : start + _HEAD.size + length], start))
        except MalformedError:
            return False


def _parse(kind: Any, body: bytes) -> Any:
    """Read a record's fields with the library; whatever it raises is a flaw of the file."""
    try:
        return kind.read(ReadDataStream(io.BytesIO(body)))
    except (McapError, struct.error, UnicodeDecodeError, ValueError, OverflowError) as error:
        name = kind.__name__.lower()
        raise MalformedError(f"a {name} is damaged ({error or type(error).__name__})") from None
