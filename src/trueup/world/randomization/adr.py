"""Automatic domain randomisation (arXiv 1910.07113): ranges that grow where the policy succeeds.

Every entry has its own lower and upper boundary; both start at the calibrated point. With probability
`boundary_share` an episode pins one entry at one boundary, and its performance goes to that boundary's buffer. A full
buffer moves its boundary out by a step if its mean is above `high`, in if below `low`, and is cleared. A boundary whose
limit is the calibrated point itself (no payload, no delay) cannot move and is not tried.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trueup.core.arrays import FloatArray, Ids
from trueup.core.errors import TrueupError
from trueup.core.rows import RowRandom
from trueup.world.randomization.randomize import Randomizer

_NARROW = 1e-3  # share of the full range that counts as no width, in the mean log width


@dataclass(frozen=True, kw_only=True)
class AdrCfg:
    """How boundaries move; the defaults suit some thousand episodes, which is what minutes on a CPU bring.

    boundary_share  probability that an episode is run at a boundary
    buffer          episodes at one boundary before it may move
    high, low       mean performance above which it moves out, below which it moves in
    step            share of the full range (the task's own) that a boundary moves by
    """

    boundary_share: float = 0.5
    buffer: int = 5
    high: float = 0.75
    low: float = 0.5
    step: float = 0.2

    def __post_init__(self) -> None:
        if not (0 <= self.boundary_share <= 1 and self.buffer >= 1 and self.step > 0):
            raise TrueupError("ADR needs boundary_share in [0, 1], buffer >= 1 and step > 0")
        if not self.low < self.high:
            raise TrueupError(f"ADR needs low < high, found {self.low} and {self.high}")


class Adr:
    """Moves the bounds of a Randomizer; sides are 0 (lower) and 1 (upper)."""

    def __init__(self, randomizer: Randomizer, cfg: AdrCfg, random: RowRandom) -> None:
        self.cfg, self._randomizer, self._random = cfg, randomizer, random
        self.names = randomizer.names
        self.limits = randomizer.bounds.copy()
        self._step = cfg.step * (self.limits[:, 1] - self.limits[:, 0])
        randomizer.bounds[:] = start = randomizer.start_point[:, None]
        self._sum, self._filled = np.zeros(self.limits.shape), np.zeros(self.limits.shape, np.int64)
        room = np.abs(self.limits - start) > 1e-9 * np.abs(self._step[:, None])
        self._movable = np.flatnonzero(room)  # 2 entry + side
        if not len(self._movable):
            raise TrueupError("ADR needs a range to grow: every range here is but the calibrated point")
        self._entry = np.full(len(random.counter), -1, np.intp)  # which boundary a row runs at
        self._side = np.zeros(len(random.counter), np.intp)

    def choose(self, ids: Ids) -> tuple[Ids, Ids]:
        """Draw which rows run at a boundary: (entry, side) of each, entry -1 for none."""
        unit = self._random.uniform(2, ids)
        which = self._movable[(unit[:, 1] * len(self._movable)).astype(np.intp)]
        self._entry[ids] = np.where(unit[:, 0] < self.cfg.boundary_share, which // 2, -1)
        self._side[ids] = which % 2
        return self._entry[ids], self._side[ids]

    def report(self, ids: Ids, performance: FloatArray) -> None:
        """Tell how well the episodes of rows `ids` went, in [0, 1]; boundaries move when their buffer is full."""
        for row, value in zip(ids, performance, strict=True):
            entry, side = self._entry[row], self._side[row]
            if entry < 0:
                continue
            self._sum[entry, side] += value
            self._filled[entry, side] += 1
            if self._filled[entry, side] >= self.cfg.buffer:
                self._move(int(entry), int(side))

    @property
    def bounds(self) -> FloatArray:
        """The ranges in force, (nentry, 2)."""
        return self._randomizer.bounds

    def metrics(self) -> dict[str, float]:
        """Mean log width of the ranges, as shares of their full width, and every boundary."""
        width = (self.bounds[:, 1] - self.bounds[:, 0]) / np.maximum(self.limits[:, 1] - self.limits[:, 0], 1e-12)
        out = {"adr/log_width": float(np.log(np.maximum(width, _NARROW)).mean())}
        for name, (low, high) in zip(self.names, self.bounds, strict=True):
            out[f"adr/{name}/low"], out[f"adr/{name}/high"] = float(low), float(high)
        return out

    def memory(self) -> dict[str, NDArray[np.generic]]:
        """Live arrays for a checkpoint; the bounds are the randomizer's."""
        return {
            "sum": self._sum,
            "filled": self._filled,
            "entry": self._entry,
            "side": self._side,
            "counter": self._random.counter,
        }

    def _move(self, entry: int, side: int) -> None:
        mean = self._sum[entry, side] / self._filled[entry, side]
        self._sum[entry, side], self._filled[entry, side] = 0.0, 0
        outward = (int(mean > self.cfg.high) - int(mean < self.cfg.low)) * (2 * side - 1)
        low, high = sorted((self._randomizer.start_point[entry], self.limits[entry, side]))
        self.bounds[entry, side] = np.clip(self.bounds[entry, side] + outward * self._step[entry], low, high)
