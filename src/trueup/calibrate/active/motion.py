"""Motions as vectors for a search: a bounded Fourier series around a pose, per joint, from rest to rest.

    d(t) = w(t) [c A + sum_m A(f_m) (s_m sin 2 pi f_m t + k_m cos 2 pi f_m t)],    A(f) = min(A, v / w, a / w^2)

with a window w(t) that rises from zero and falls to zero. A motion that leaves its bounds of distance, speed or
acceleration is scaled down as a whole, so every vector is a motion within the robot's limits.

CMA-ES runs for several limbs at once: each limb has its own search, and candidate k of the batch is made of candidate k
of every limb. Limbs must be dynamically independent, or be one limb.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueup.calibrate.fit.search import cma_es
from trueup.core.arrays import FloatArray
from trueup.robot.excitation.limits import Bounds, fit_into
from trueup.robot.excitation.plan import min_jerk

HARMONICS = (1, 2, 4, 8, 16, 32)  # of a segment's length: 0.2 to 6.4 Hz in 5 s
NUMBERS = 1 + 2 * len(HARMONICS)  # per joint: pose, sines, cosines
_RAMP_S = 0.5
_SPREAD = 0.5  # first spread of the numbers
_MOST_NUMBER = 2.0  # numbers beyond this only make a motion that is scaled down again


@dataclass(frozen=True, kw_only=True)
class MotionSpace:
    """Motions of `rows` rows about a pose (njoint,) within bounds per joint."""

    pose: FloatArray
    bounds: Sequence[Bounds]
    rows: int
    rate_hz: float

    @property
    def seconds(self) -> float:
        return self.rows / self.rate_hz

    def targets(self, numbers: FloatArray) -> FloatArray:
        """Targets (K, rows, njoint) of numbers (K, njoint, NUMBERS)."""
        out = np.tile(self.pose, (len(numbers), self.rows, 1))
        basis = [self._basis(bounds) for bounds in self.bounds]
        for k, motion in enumerate(numbers):
            for j, bounds in enumerate(self.bounds):
                if bounds.amplitude > 0.0:
                    # a row before and after: they count for the ends' acceleration
                    wave = np.pad(basis[j] @ motion[j], 1)
                    out[k, :, j] += fit_into(wave, bounds, 1.0 / self.rate_hz)[1:-1]
        return out

    def _basis(self, bounds: Bounds) -> FloatArray:
        """(rows, NUMBERS) basis motions, each scaled to its frequency's amplitude and windowed."""
        row = np.arange(self.rows)
        tones = [m for m in HARMONICS if m / self.seconds <= self.rate_hz / 16]
        size = bounds.at(np.array(tones) / self.seconds) if bounds.amplitude > 0.0 else np.zeros(len(tones))
        turns = 2.0 * np.pi * np.outer(row / self.rows, tones)
        basis = np.zeros((self.rows, NUMBERS))
        basis[:, 0] = bounds.amplitude
        basis[:, 1 : 1 + len(tones)] = size * np.sin(turns)
        basis[:, 1 + len(HARMONICS) : 1 + len(HARMONICS) + len(tones)] = size * np.cos(turns)
        ramp = min(_RAMP_S * self.rate_hz, self.rows / 4)
        window = min_jerk(row / ramp) * min_jerk((self.rows - 1 - row) / ramp)
        return basis * window[:, None]


class Populations:
    """Candidates (population, njoint, numbers) of one CMA-ES search per limb."""

    def __init__(self, limb: NDArray[np.intp], numbers: int, population: int, *, seed: int) -> None:
        self._limb, self._numbers = limb, numbers
        self._searches = [
            _search(int((limb == g).sum()) * numbers, population, seed + g) for g in range(int(limb.max()) + 1)
        ]
        self._asked: list[list[FloatArray]] = []

    def ask(self) -> FloatArray:
        """The next candidates."""
        self._asked = [search.ask() for search in self._searches]
        return self._together([np.array(candidates) for candidates in self._asked])

    def tell(self, costs: FloatArray) -> None:
        """Report the candidates' costs, (population, nlimb)."""
        for search, candidates, cost in zip(self._searches, self._asked, costs.T, strict=True):
            search.tell(candidates, cost.tolist())

    @property
    def best(self) -> FloatArray:
        """Every limb's best so far, (njoint, numbers)."""
        return self._together([search.result.xbest[None] for search in self._searches])[0]

    def _together(self, parts: list[FloatArray]) -> FloatArray:
        out = np.zeros((len(parts[0]), len(self._limb), self._numbers))
        for g, part in enumerate(parts):
            out[:, self._limb == g] = part.reshape(len(part), -1, self._numbers)
        return out


def _search(size: int, population: int, seed: int) -> Any:
    start = 0.3 * np.random.default_rng(seed).standard_normal(size)
    bounds = [-_MOST_NUMBER, _MOST_NUMBER]
    return cma_es(start, _SPREAD, {"bounds": bounds, "popsize": population, "seed": seed + 1})
