"""Two layouts of one message: C, over which Unitree's checksum runs, and CDR, in which DDS carries it.

Both align a number to its own size. They differ where a structure begins or ends: C aligns the structure as a whole and
pads its end, CDR does neither. So bytes are moved by an index that is computed once per message. Numbers here have at
most four bytes, for which XCDR1 and XCDR2 agree.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueup.core.arrays import Ids
from trueup.core.errors import TrueupError

Record = NDArray[np.void]  # shape (1,), fields by name
HEADER = b"\x00\x01\x00\x00"  # plain CDR, little-endian
_LITTLE_ENDIAN = (b"\x00\x01", b"\x00\x07")  # XCDR1, XCDR2
_IDL_NAMES = {"u1": "uint8", "i2": "int16", "u2": "uint16", "i4": "int32", "u4": "uint32", "f4": "float32"}


def fields(text: str) -> tuple[tuple[str, str, int], ...]:
    """Fields of a `Struct` that are numbers, as `name:code` or `name:code[count]`, apart by spaces."""
    found = re.findall(r"(\w+):(\w\d)(?:\[(\d+)\])?", text)
    return tuple((name, code, int(count or 0)) for name, code, count in found)


@dataclass(frozen=True)
class Struct:
    """A message or a part of one: IDL type name, and fields as (name, number code or Struct, count).

    Count 0 is a single value, n > 0 an array of n. Codes are those of NumPy: u1 i2 u2 i4 u4 f4.
    """

    typename: str
    fields: tuple[tuple[str, str | Struct, int], ...]

    @cached_property
    def dtype(self) -> np.dtype[np.void]:
        """The C structure: natural alignment, little-endian."""
        formats: list[Any] = []
        for _, kind, count in self.fields:
            item = kind.dtype if isinstance(kind, Struct) else np.dtype(f"<{kind}")
            formats.append((item, (count,)) if count else item)
        return np.dtype({"names": [name for name, _, _ in self.fields], "formats": formats}, align=True)

    @cached_property
    def byte_index(self) -> tuple[Ids, Ids, int]:
        """Bytes of the C structure, where CDR has each of them, and the size of the CDR message."""
        c_bytes: list[int] = []
        cdr_bytes: list[int] = []
        end = 0
        for offset, size in self._numbers(0):
            end = -(-end // size) * size
            c_bytes += range(offset, offset + size)
            cdr_bytes += range(end, end + size)
            end += size
        return np.array(c_bytes, np.intp), np.array(cdr_bytes, np.intp), end

    def _numbers(self, base: int) -> Iterator[tuple[int, int]]:
        """Offset in C and size of every number, in order."""
        for name, kind, count in self.fields:
            offset = base + self.dtype.fields[name][1]  # type: ignore[index]
            stride = kind.dtype.itemsize if isinstance(kind, Struct) else np.dtype(kind).itemsize
            for k in range(max(count, 1)):
                if isinstance(kind, Struct):
                    yield from kind._numbers(offset + k * stride)
                else:
                    yield offset + k * stride, stride

    def new(self) -> Record:
        """A message of zeros."""
        return np.zeros(1, self.dtype)

    def to_cdr(self, record: Record) -> bytes:
        """The message as DDS carries it, with the encapsulation header."""
        c_index, cdr_index, size = self.byte_index
        payload = np.zeros(-(-size // 4) * 4, np.uint8)
        payload[cdr_index] = record.view(np.uint8)[c_index]
        return HEADER + payload.tobytes()

    def from_cdr(self, data: bytes) -> Record:
        """The message in `data`; a TrueupError when it is no little-endian CDR of this size."""
        c_index, cdr_index, size = self.byte_index
        if data[:2] not in _LITTLE_ENDIAN or len(data) < 4 + size:
            found = f"{len(data)} bytes that start with {data[:4].hex()}"
            raise TrueupError(f"no {self.typename}: {4 + size} bytes of CDR expected, found {found}", place="frame")
        record = self.new()
        record.view(np.uint8)[c_index] = np.frombuffer(data, np.uint8, offset=4)[cdr_index]
        return record

    @cached_property
    def idl(self) -> type[Any]:
        """The type as cyclonedds announces it to others. Needs cyclonedds."""
        from cyclonedds.idl import make_idl_struct
        from cyclonedds.idl import types as idl_types

        types: Any = idl_types  # array types are built by indexing, which type checkers do not follow
        fields: dict[str, Any] = {}
        for name, kind, count in self.fields:
            item = kind.idl if isinstance(kind, Struct) else getattr(types, _IDL_NAMES[kind])
            fields[name] = types.array[item, count] if count else item
        made: type[Any] = make_idl_struct(self.typename.rpartition(".")[2], self.typename, fields)
        return made

    @cached_property
    def sample(self) -> type[Any]:
        """The same type for readers and writers that carry bytes as they are: `Sample(cdr).cdr`.

        cyclonedds walks through a message number by number in Python, which takes milliseconds for twenty motors.
        """
        from cyclonedds.idl import make_idl_struct

        short = self.typename.rpartition(".")[2]
        made: type[Any] = make_idl_struct(short, self.typename, self.idl.__annotations__, dataclassify=False)
        for method in ("__init__", "serialize", "deserialize", "deserialize_key"):
            setattr(made, method, _Bytes.__dict__[method])
        return made


class _Bytes:
    """A sample that carries bytes instead of fields."""

    def __init__(self, cdr: bytes) -> None:
        self.cdr = cdr

    def serialize(self, buffer: Any = None, endianness: Any = None, use_version_2: Any = None) -> bytes:
        return self.cdr

    @classmethod
    def deserialize(cls, data: bytes, has_header: bool = True, use_version_2: Any = None) -> Any:
        return cls(bytes(data))

    @classmethod
    def deserialize_key(cls, data: bytes, has_header: bool = True, use_version_2: Any = None) -> Any:
        return cls(b"")  # "the writer has gone", which has no content
