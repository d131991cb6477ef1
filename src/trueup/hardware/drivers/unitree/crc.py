"""Unitree's checksum of LowCmd and LowState.

CRC-32 with polynomial 0x04C11DB7, start 0xFFFFFFFF, most significant bit first, nothing inverted at the end, over the
little-endian 32-bit words of the C structure (with its padding) without the last word, which holds the checksum.

The usual CRC-32 (zlib) is the mirror image: least significant bit first and inverted at the end. Feeding it every word
bit-reversed, and reversing its result, gives the same number at C speed.
"""

from __future__ import annotations

import zlib

import numpy as np

from trueup.hardware.drivers.unitree.layout import Record

_REVERSED = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))


def crc32_words(data: bytes) -> int:
    """Checksum of whole little-endian 32-bit words."""
    mirrored = np.frombuffer(data, "<u4").byteswap().tobytes().translate(_REVERSED)
    mirror = (zlib.crc32(mirrored) ^ 0xFFFFFFFF).to_bytes(4, "big")
    return int.from_bytes(mirror[::-1].translate(_REVERSED), "big")


def checksum(record: Record) -> int:
    """What the message's field `crc`, its last word, has to be."""
    return crc32_words(record.tobytes()[:-4])


def stamp(record: Record) -> Record:
    """Write the checksum into the message; returns the message."""
    record["crc"] = checksum(record)
    return record


def is_sound(record: Record) -> bool:
    """Does the message carry its own checksum?"""
    return int(record["crc"][0]) == checksum(record)
