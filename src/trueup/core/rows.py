"""Random numbers that belong to a row of a batch, not to the batch.

Row k draws the same numbers whether it runs alone or among thousands: every number is a hash of
(seed, stream, row, counter, channel), with no state but the counter. The hash is splitmix64's finaliser
(Steele, Lea, Flood 2014), vectorised; two 32-bit halves of one word make a pair of normals (Box-Muller).
"""

from __future__ import annotations

import sys
import zlib
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX2 = np.uint64(0x94D049BB133111EB)
_SHIFT30, _SHIFT27, _SHIFT31 = (np.uint64(k) for k in (30, 27, 31))
_LOW = 0 if sys.byteorder == "little" else 1  # which half of a word comes first in memory
_TO_UNIT = np.float32(2.0**-32)


def _mix(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Of a fresh array, in place: arrays of whole numbers wrap around in silence."""
    x ^= x >> _SHIFT30
    x *= _MIX1
    x ^= x >> _SHIFT27
    x *= _MIX2
    x ^= x >> _SHIFT31
    return x


@lru_cache(maxsize=256)
def _channels(n: int) -> NDArray[np.uint64]:
    return np.arange(1, n + 1, dtype=np.uint64) * _GOLDEN


class RowRandom:
    """Counter-based generator for rows `first_row .. first_row + nrow - 1` of stream `name`.

    Each call advances the counter of the rows it is made for, so rows that are reset at different times
    stay independent of each other. `counter` (nrow,) is the whole state: save it to resume.
    """

    def __init__(self, seed: int, name: str, nrow: int, first_row: int = 0) -> None:
        rows = np.arange(first_row, first_row + nrow, dtype=np.uint64)
        stream = np.uint64(zlib.crc32(name.encode()))
        key = _mix(np.array([seed % 2**64], np.uint64) + _GOLDEN) ^ _mix(np.array([stream], np.uint64))
        self._key = _mix(key + (rows + np.uint64(1)) * _GOLDEN)
        self.counter = np.zeros(nrow, np.uint64)

    def _words(self, n: int, ids: NDArray[np.intp] | None) -> NDArray[np.uint64]:
        """Return (rows, n) random 64-bit words."""
        if ids is None:
            start = self._key + self.counter * _GOLDEN
            self.counter += np.uint64(n)
        else:
            counter = self.counter[ids]
            start = self._key[ids] + counter * _GOLDEN
            self.counter[ids] = counter + np.uint64(n)
        return _mix(start[:, None] + _channels(n))

    def uniform(self, n: int, ids: NDArray[np.intp] | None = None) -> NDArray[np.float64]:
        """Return (rows, n) numbers in [0, 1)."""
        return (self._words(n, ids) >> np.uint64(11)).astype(np.float64) * 2.0**-53

    def normal(self, n: int, ids: NDArray[np.intp] | None = None) -> NDArray[np.float32]:
        """Return (rows, n) standard normal numbers, float32."""
        pairs = (n + 1) // 2
        halves = self._words(pairs, ids).view(np.uint32).reshape(-1, pairs, 2)
        low, high = halves[:, :, _LOW], halves[:, :, 1 - _LOW]
        radius = high.astype(np.float32)
        radius += np.float32(0.5)
        radius *= _TO_UNIT
        np.minimum(radius, np.float32(1.0 - 2.0**-24), out=radius)
        np.log(radius, out=radius)
        radius *= np.float32(-2.0)
        np.sqrt(radius, out=radius)
        angle = low.astype(np.float32)
        angle *= _TO_UNIT
        angle *= np.float32(2.0 * np.pi)
        out = np.empty((len(angle), 2 * pairs), np.float32)
        np.multiply(radius, np.cos(angle), out=out[:, :pairs])
        np.multiply(radius, np.sin(angle), out=out[:, pairs:])
        return out[:, :n]
