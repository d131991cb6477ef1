"""Protocol Buffers' wire format as used by ONNX: a bounded reader of untrusted bytes, and a writer.

A message is a row of (field number, wire type, value): 0 varint, 1 eight bytes, 2 length and bytes, 5 four bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

Value = int | memoryview
_VARINT, _EIGHT, _BYTES, _FOUR = 0, 1, 2, 5
_SIZES = {_EIGHT: 8, _FOUR: 4}
_LONGEST = 10  # bytes of a varint of 64 bits


def fields(data: memoryview) -> Iterator[tuple[int, Value]]:
    """(field number, value) of a message; numbers of 32 and 64 bits as their bytes. ValueError where it is none."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        number, kind = key >> 3, key & 7
        if kind == _VARINT:
            value, at = _varint(data, at)
            yield number, value
            continue
        size = _SIZES.get(kind, 0)
        if kind == _BYTES:
            size, at = _varint(data, at)
        elif not size:
            raise ValueError(f"wire type {kind} is unknown")
        if number == 0 or size > len(data) - at:
            raise ValueError("a field reaches beyond the end")
        yield number, data[at : at + size]
        at += size


def signed(value: Value) -> int:
    """A varint as int64."""
    if not isinstance(value, int):
        raise ValueError("a number was expected")
    return value - (1 << 64) if value >= 1 << 63 else value


def text(value: Value) -> str:
    """Bytes as UTF-8 text."""
    return bytes(message(value)).decode()


def message(value: Value) -> memoryview:
    """The bytes of a message or string."""
    if isinstance(value, int):
        raise ValueError("bytes were expected, a number was found")
    return value


def integers(value: Value) -> list[int]:
    """One number of a repeated field, or all of them packed."""
    if isinstance(value, int):
        return [signed(value)]
    out, at = [], 0
    while at < len(value):
        number, at = _varint(value, at)
        out.append(signed(number))
    return out


def floats(value: Value, dtype: str = "<f4") -> NDArray[np.generic]:
    """Numbers of 32 or 64 bits, one or packed."""
    data = message(value)
    if len(data) % np.dtype(dtype).itemsize:
        raise ValueError("its numbers are cut off")
    return np.frombuffer(data, dtype)


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    value = 0
    for k in range(min(_LONGEST, len(data) - at)):
        byte = data[at + k]
        value |= (byte & 0x7F) << (7 * k)
        if byte < 0x80:
            return value & (1 << 64) - 1, at + k + 1
    raise ValueError("a number has no end")


# --- writing ---
def number_field(field: int, value: int) -> bytes:
    """A field that holds an integer."""
    return _encoded(field << 3 | _VARINT) + _encoded(value & (1 << 64) - 1)


def bytes_field(field: int, value: bytes | str) -> bytes:
    """A field that holds bytes, text or another message."""
    content = value.encode() if isinstance(value, str) else value
    return _encoded(field << 3 | _BYTES) + _encoded(len(content)) + content


def float_field(field: int, value: float) -> bytes:
    """A field that holds a float of 32 bits."""
    return _encoded(field << 3 | _FOUR) + np.array(value, "<f4").tobytes()


def packed_field(field: int, values: Iterable[int]) -> bytes:
    """A field that holds integers one after another."""
    return bytes_field(field, b"".join(_encoded(value & (1 << 64) - 1) for value in values))


def _encoded(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
