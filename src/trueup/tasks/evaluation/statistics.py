"""Statistics of trials: intervals of success rates, and numbers of many trials in a few."""

from __future__ import annotations

import math

import msgspec
import numpy as np

from trueup.core.arrays import FloatArray

Z95 = 1.959963984540054  # two-sided 95 % of a normal distribution


class Rate(msgspec.Struct, frozen=True, kw_only=True):
    """Successes among trials, and the 95 % interval of the rate behind them (Wilson 1927)."""

    successes: int
    trials: int
    low: float
    high: float

    @property
    def share(self) -> float:
        return self.successes / self.trials


def wilson(successes: int, trials: int, z: float = Z95) -> Rate:
    """(p + z^2/2n -+ z sqrt(p (1-p) / n + z^2/4n^2)) / (1 + z^2/n): it holds for few trials and rates near 0 and 1."""
    if not 0 <= successes <= trials or trials < 1:
        raise ValueError(f"{successes} successes of {trials} trials")
    p, part = successes / trials, z * z / trials
    half = z * math.sqrt(p * (1.0 - p) / trials + part / (4.0 * trials))
    low, high = ((p + 0.5 * part + side * half) / (1.0 + part) for side in (-1.0, 1.0))
    return Rate(successes=successes, trials=trials, low=max(low, 0.0), high=min(high, 1.0))


def mcnemar(only_first: int, only_second: int) -> float:
    """Two-sided p of McNemar's exact test: trials in which one of two policies succeeded and the other did not."""
    n = only_first + only_second
    tail = sum(math.comb(n, k) for k in range(min(only_first, only_second) + 1)) / 2**n
    return min(1.0, 2.0 * tail)


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """Mean and median of a number over trials, and what nine of ten trials lie below and above."""

    mean: float
    median: float
    low: float
    high: float


def spread(values: FloatArray) -> Spread | None:
    """Of the trials that have the number; None without any."""
    known = values[np.isfinite(values)]
    if not len(known):
        return None
    low, median, high = (float(q) for q in np.quantile(known, (0.1, 0.5, 0.9)))
    return Spread(mean=float(known.mean()), median=median, low=low, high=high)
