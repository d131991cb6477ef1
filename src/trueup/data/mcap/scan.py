"""MCAP files read from front to end: every size checked before it is believed, every checksum verified.

The index is never relied on, so files that were cut short are read too. Damage is an error, or, with a list
to note it in, stepped over: a chunk whose checksum fails is left out, and where the framing is lost the next
chunk that proves itself by its checksum is searched for.
"""

from __future__ import annotations

import mmap
import re
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from trueup.core.errors import TrueupError
from trueup.data.mcap.container import CHANNEL, CHUNK, DATA_END, FOOTER, MAGIC, MESSAGE, METADATA, SCHEMA
from trueup.data.mcap.records import (
    Channel,
    Cursor,
    Damage,
    Item,
    Limits,
    MalformedError,
    Message,
    Metadata,
    Schema,
    decompress,
    open_input,
)

_HEAD = struct.Struct("<BQ")
_MESSAGE = struct.Struct("<HIQQ")
_CHUNK = struct.Struct("<QQQI")
_FOOTER_SIZE = 9 + 20 + len(MAGIC)
# a chunk's fixed fields, then its compression: what the search for the next chunk looks for
_CHUNK_PATTERN = re.compile(
    rb"\x06[\s\S]{4}\x00{4}[\s\S]{20}\x00{4}[\s\S]{4}(?:\x04\x00\x00\x00zstd|\x03\x00\x00\x00lz4|\x00\x00\x00\x00)"
)
_CANDIDATES = 20_000  # places that look like a chunk and are none, before the search gives up


def scan(
    path: str | Path, limits: Limits | None = None, damage: list[Damage] | None = None
) -> Iterator[Item]:
    """Yield definitions, metadata and messages in the order of the file.

    Without `damage` the first flaw raises a TrueupError that names the byte. With it, flaws are noted there
    and stepped over, and the definitions repeated in the summary are yielded too.
    """
    with open_input(path) as file:
        yield from _Scan(file, path, limits or Limits(), damage).items()


class _Scan:
    def __init__(self, file: BinaryIO, path: str | Path, limits: Limits, damage: list[Damage] | None) -> None:
        self._file, self._path, self._limits, self._damage = file, path, limits, damage
        self._size = file.seek(0, 2)
        self._pos = file.seek(0)
        self._crc = 0
        self._is_data = True
        self._bytes_left = limits.spare_bytes + limits.expansion * self._size
        self._messages_left = limits.spare_messages + self._size // limits.bytes_per_message
        self._definitions_left = limits.definitions

    def items(self) -> Iterator[Item]:
        if self._read(len(MAGIC)) != MAGIC:
            self._note(0, MalformedError("this is not an MCAP file (its first bytes are others)"))
            self._seek(self._next_chunk(0))
        while self._pos < self._size:
            start = self._pos
            try:
                yield from self._record(start)
            except MalformedError as flaw:
                yield from self._step_over(start, flaw)
        if self._is_data and not (self._damage and self._damage[-1].is_cut):
            self._note(self._size, MalformedError("the file ends before its data does", is_cut=True))

    # Reading

    def _seek(self, offset: int) -> None:
        self._pos = self._file.seek(offset)

    def _read(self, size: int) -> bytes:
        data = self._file.read(size)
        self._pos += len(data)
        self._crc = zlib.crc32(data, self._crc)
        return data

    def _record(self, start: int) -> Iterator[Item]:
        crc = self._crc
        head = self._read(_HEAD.size)
        if len(head) < _HEAD.size:
            raise MalformedError("the file ends inside the head of a record", resume=self._size, is_cut=True)
        opcode, length = _HEAD.unpack(head)
        end = self._pos + length
        if end > self._size:
            left = self._size - self._pos
            raise MalformedError(f"a record claims {length} bytes, {left} are left in the file", is_cut=True)
        if opcode == 0:
            raise MalformedError("a record of kind 0, which does not exist")
        try:
            if opcode == DATA_END and self._is_data:
                self._end_data(self._read(length), crc)
            elif opcode == FOOTER:
                self._end_file(end)
            elif opcode == CHUNK and self._is_data:
                yield from self._chunk(self._read(length), start)
            elif opcode == MESSAGE and self._is_data:
                yield self._message(self._read(length), start)
            elif opcode in (SCHEMA, CHANNEL) or (opcode == METADATA and self._is_data):
                yield self._definition(opcode, self._body(length))
            else:
                self._pass(length)
        except MalformedError as flaw:
            raise MalformedError(
                str(flaw), resume=end if flaw.resume is None else flaw.resume, is_cut=flaw.is_cut
            ) from None

    def _body(self, length: int) -> bytes:
        if length > self._limits.definition_bytes:
            raise MalformedError(
                f"a definition of {length} bytes, at most {self._limits.definition_bytes} are read"
            )
        return self._read(length)

    def _pass(self, length: int) -> None:
        while length > 0:
            length -= len(self._read(min(length, 1 << 20)))

    # Records

    def _definition(self, opcode: int, body: bytes) -> Item:
        self._definitions_left -= 1
        if self._definitions_left < 0:
            raise self._refusal(f"more than {self._limits.definitions} definitions and topics")
        cursor, limit = Cursor(body), self._limits.name_bytes
        if opcode == SCHEMA:
            schema_id, name, encoding = cursor.number("H", 2), cursor.text(limit), cursor.text(limit)
            size = cursor.number("I", 4)
            start = cursor.skip(size)
            return Schema(schema_id, name, encoding, body[start : start + size])
        if opcode == METADATA:
            return Metadata(cursor.text(limit), cursor.table(self._limits.definition_bytes))
        ids = cursor.number("H", 2), cursor.number("H", 2)
        return Channel(
            *ids, cursor.text(limit), cursor.text(limit), cursor.table(self._limits.definition_bytes)
        )

    def _message(self, body: bytes, start: int) -> Message:
        if len(body) < _MESSAGE.size:
            raise MalformedError("a message shorter than its head")
        self._count_message()
        return Message._make((*_MESSAGE.unpack_from(body), body[_MESSAGE.size :], start))

    def _count_message(self) -> None:
        self._messages_left -= 1
        if self._messages_left < 0:
            raise self._refusal(f"more messages than a file of {self._size} bytes can honestly hold")

    def _chunk(self, body: bytes, start: int, *, partial: bool = False) -> Iterator[Item]:
        cursor = Cursor(body)
        _, _, size, crc = _CHUNK.unpack_from(body, cursor.skip(_CHUNK.size))
        compression = cursor.text(self._limits.name_bytes)
        stored = cursor.number("Q", 8)
        if size > self._limits.chunk_bytes:
            raise MalformedError(
                f"a chunk claims {size} bytes uncompressed, at most {self._limits.chunk_bytes} are read"
            )
        self._bytes_left -= size
        if self._bytes_left < 0:
            raise self._refusal(
                f"it unpacks to more than {self._limits.expansion} times its {self._size} bytes"
            )
        begin = cursor.pos if partial else cursor.skip(stored)
        data = decompress(body[begin : begin + stored], compression, size, partial=partial)
        if crc and not partial and zlib.crc32(data) != crc:
            raise MalformedError("the checksum of a chunk differs")
        yield from self._inside(data, start, partial)

    def _inside(self, data: bytes, start: int, partial: bool) -> Iterator[Item]:
        pos, end = 0, len(data)
        while pos < end:
            opcode, length = _HEAD.unpack_from(data, pos) if end - pos >= _HEAD.size else (0, 0)
            pos += _HEAD.size
            if pos + length > end or opcode == 0:
                if partial:
                    return
                raise MalformedError(f"a record inside a chunk is damaged, {pos} bytes into it")
            if opcode == MESSAGE and length >= _MESSAGE.size:
                self._count_message()
                channel, sequence, logged, published = _MESSAGE.unpack_from(data, pos)
                yield Message(
                    channel, sequence, logged, published, data[pos + _MESSAGE.size : pos + length], start
                )
            elif opcode == MESSAGE:
                raise MalformedError("a message shorter than its head")
            elif opcode in (SCHEMA, CHANNEL):
                yield self._definition(opcode, data[pos : pos + length])
            pos += length

    # The end

    def _end_data(self, body: bytes, crc: int) -> None:
        expected = Cursor(body).number("I", 4)
        self._is_data = False
        if expected and expected != crc and not self._damage:
            raise MalformedError("the checksum of the data differs")
        if self._damage is None:
            self._check_summary(self._pos)
            self._seek(self._size)

    def _check_summary(self, start: int) -> None:
        """Check what follows the data: a summary, if any, under its checksum, the footer and the magic."""
        rest = self._size - start
        if rest < _FOOTER_SIZE:
            raise MalformedError("the file ends before its footer", resume=self._size, is_cut=True)
        self._seek(start)
        self._crc = 0
        self._pass(rest - _FOOTER_SIZE)
        tail = self._read(9 + 16)
        expected = self._read(4)
        opcode, length, summary, _ = struct.unpack("<BQQQ", tail)
        if self._read(len(MAGIC)) != MAGIC:
            raise MalformedError("the file does not end as MCAP files do", resume=self._size, is_cut=True)
        if (opcode, length) != (FOOTER, 20) or summary not in (0, start):
            raise MalformedError("the footer is damaged", resume=self._size)
        self._check_summary_crc(start, expected)

    def _check_summary_crc(self, start: int, expected: bytes) -> None:
        if expected == bytes(4):
            return
        self._seek(start)
        self._crc = 0
        self._pass(self._size - start - 4 - len(MAGIC))
        if struct.pack("<I", self._crc) != expected:
            raise MalformedError("the checksum of the summary differs", resume=self._size)

    def _end_file(self, end: int) -> None:
        if self._is_data:
            raise MalformedError("a footer where the data should go on")
        self._seek(end)
        if self._read(len(MAGIC)) != MAGIC:
            raise MalformedError("the file does not end as MCAP files do", resume=self._size, is_cut=True)
        self._seek(self._size)

    # Damage

    def _refusal(self, text: str) -> TrueupError:
        """A limit was passed: no way around it, in recovery neither."""
        hint = "if you trust the file, read it with larger `Limits`"
        return TrueupError(f"{text}; {hint}", file=self._path, place=f"byte {self._pos}")

    def _note(self, start: int, flaw: MalformedError, skipped: int = 0) -> None:
        if self._damage is None:
            hint = "" if start == 0 else "; `trueup data recover` saves what can be read"
            raise TrueupError(f"{flaw}{hint}", file=self._path, place=f"byte {start}")
        self._damage.append(Damage(start, str(flaw), skipped, flaw.is_cut))

    def _step_over(self, start: int, flaw: MalformedError) -> Iterator[Item]:
        if self._damage is None:
            self._note(start, flaw)
        resume = self._next_chunk(start) if flaw.resume is None else flaw.resume
        self._note(start, flaw, resume - start if self._is_data else 0)
        if flaw.resume is None and resume == self._size and self._is_data:
            yield from self._rest_of_chunk(start)
        self._seek(resume)

    def _rest_of_chunk(self, start: int) -> Iterator[Item]:
        """What a chunk that the end of the file cut short still holds."""
        self._seek(start)
        if self._read(1) != bytes([CHUNK]):
            return
        self._seek(start + _HEAD.size)
        if self._size - self._pos > self._limits.chunk_bytes:
            return
        try:
            yield from self._chunk(self._read(self._size - self._pos), start, partial=True)
        except MalformedError:
            return

    def _next_chunk(self, start: int) -> int:
        """Where the next chunk begins that is whole by its checksum; the end of the file if there is none."""
        if self._size == 0:
            return 0
        with mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ) as view:
            for tried, found in enumerate(_CHUNK_PATTERN.finditer(view, start + 1)):
                if self._is_whole(found.start()):
                    return found.start()
                if tried > _CANDIDATES:
                    break
        return self._size

    def _is_whole(self, start: int) -> bool:
        """Whether a chunk that proves itself begins here; nothing large is read unless its sizes agree."""
        self._seek(start)
        head = self._read(_HEAD.size + _CHUNK.size + 4 + 4 + 8)
        length, size, crc, named = _HEAD.unpack_from(head)[1], *struct.unpack_from("<QII", head, 25)
        stored = struct.unpack_from("<Q", head, 41 + named)[0] if len(head) >= 49 + named else 0
        if not (size and crc and stored) or length != _CHUNK.size + 4 + named + 8 + stored:
            return False
        if stored > min(self._size - start, self._limits.chunk_bytes):
            return False
        before = self._bytes_left, self._messages_left, self._definitions_left
        self._bytes_left -= stored
        self._seek(start + _HEAD.size)
        try:
            count = sum(1 for _ in self._chunk(self._read(length), start))
        except MalformedError:
            return False
        self._bytes_left, self._messages_left, self._definitions_left = before
        return count > 0
