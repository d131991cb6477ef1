"""Random numbers that belong to a row of a batch, not to the batch.

Row k draws the same numbers whether it runs alone or among thousands: every number is a hash of
(seed, stream, row, counter, channel), with no state but the counter. The hash is splitmix64's finaliser
(Steele, Lea, Flood 2014), vectorised; two 32-bit halves of one word make a pair of normals (Box-Muller).
"""

from __future__ import annotations

import zlib

import numpy as np
from numpy.typing import NDArray

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX2 = np.uint64(0x94D049BB133111EB)
_SHIFT30, _SHIFT27, _SHIFT31, _SHIFT32 = (np.uint64(k) for k in (30, 27, 31, 32))
_TO_UNIT = np.float32(2.0**-32)


def _mix(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    x = (x ^ (x >> _SHIFT30)) * _MIX1
    x = (x ^ (x >> _SHIFT27)) * _MIX2
    return x ^ (x >> _SHIFT31)


class RowRandom:
    """Counter-based generator for rows `first_row .. first_row + nrow - 1` of stream `name`.

    Each call advances the counter of the rows it is made for, so rows that are reset at different times
    stay independent of each other. `counter` (nrow,) is the whole state: save it to resume.
    """

    def __init__(self, seed: int, name: str, nrow: int, first_row: int = 0) -> None:
        rows = np.arange(first_row, first_row + nrow, dtype=np.uint64)
        stream = np.uint64(zlib.crc32(name.encode()))
        with np.errstate(over="ignore"):
            key = _mix(np.array([seed % 2**64], np.uint64) + _GOLDEN) ^ _mix(np.array([stream], np.uint64))
            self._key = _mix(key + (rows + np.uint64(1)) * _GOLDEN)
        self.counter = np.zeros(nrow, np.uint64)

    def _words(self, n: int, ids: NDArray[np.intp] | None) -> NDArray[np.uint64]:
        """Return (rows, n) random 64-bit words."""
        key = self._key if ids is None else self._key[ids]
        counter = self.counter if ids is None else self.counter[ids]
        with np.errstate(over="ignore"):
            start = key + counter * _GOLDEN
            words = _mix(start[:, None] + np.arange(1, n + 1, dtype=np.uint64) * _GOLDEN)
        if ids is None:
            self.counter += np.uint64(n)
        else:
            self.counter[ids] += np.uint64(n)
        return words

    def uniform(self, n: int, ids: NDArray[np.intp] | None = None) -> NDArray[np.float64]:
        """Return (rows, n) numbers in [0, 1)."""
        return (self._words(n, ids) >> np.uint64(11)).astype(np.float64) * 2.0**-53

    def normal(self, n: int, ids: NDArray[np.intp] | None = None) -> NDArray[np.float32]:
        """Return (rows, n) standard normal numbers, float32."""
        pairs = (n + 1) // 2
        words = self._words(pairs, ids)
        u1 = ((words >> _SHIFT32).astype(np.float32) + np.float32(0.5)) * _TO_UNIT
        u2 = words.astype(np.uint32).astype(np.float32) * _TO_UNIT
        radius = np.sqrt(np.float32(-2.0) * np.log(np.minimum(u1, np.float32(1.0 - 2.0**-24))))
        angle = np.float32(2.0 * np.pi) * u2
        out = np.concatenate([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
        return out[:, :n]
