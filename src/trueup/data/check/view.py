"""LogView: a log prepared for the checks, with quantities that several of them need.

A view is finite, in seconds and radians (wrong units and NaN are reported by their own checks and corrected here, so
that one flaw is not reported five times), and its robot is in the log's joint order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueup.core.arrays import FloatArray
from trueup.data.check.finding import Finding, Level, make_finding
from trueup.data.log import Log, RobotReference

BoolArray = NDArray[np.bool_]

# beyond this no quantity of a robot joint is meant; clipping keeps squares and sums finite
LARGEST = 1e9
# a command that lasts longer than this is an excitation's step, not a control period
SLOWEST_CONTROL_S = 0.11


@dataclass(frozen=True, kw_only=True)
class LogView:
    """Input of the checks.

    dt        seconds a row; columns are (T, n), None when the log has no such signal
    hold      rows that one command lasts, measured
    noise     (n,) standard deviation of the position's sample noise (rad)
    quantum   (n,) smallest step between two positions, 0 when nothing repeats (rad)
    moving    (n,) whether the joint moves visibly at all
    regular   (T-1,) whether the step from row t to t+1 took about dt
    blamed    joints whose columns are already known to be wrong; later checks leave them alone
    """

    names: tuple[str, ...]
    dt: float
    pos: FloatArray
    vel: FloatArray | None
    torque: FloatArray | None
    target: FloatArray | None
    target_vel: FloatArray | None
    hold: int
    noise: FloatArray
    quantum: FloatArray
    moving: BoolArray
    regular: BoolArray
    reference: RobotReference | None
    blamed: set[int] = field(default_factory=set)

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.pos)

    @property
    def fair(self) -> list[int]:
        """Joints that no earlier check has blamed."""
        return [j for j in range(len(self.names)) if j not in self.blamed]

    def is_gain(self, j: int, gain: float, factor: float) -> bool:
        """Whether a fitted gain is the robot's own within a factor, where that is known."""
        return self.reference is None or 1 / factor < gain / max(float(self.reference.kp[j]), 1e-9) < factor

    def finding(self, code: str, level: Level, text: str, signal: str, joints: Iterable[int], **more: Any) -> Finding:
        """A finding on joints given by their columns; `more` as in `make_finding`."""
        return make_finding(code, level, text, signal, [self.names[j] for j in joints], **more)


def finite(values: FloatArray) -> FloatArray:
    """Replace values that are not finite by the last finite value of their column (the first one at the start)."""
    bad = ~np.isfinite(values)
    if bad.any():
        values = values.copy()
        rows = np.arange(len(values))
        for j in np.flatnonzero(bad.any(axis=0)):
            good = rows[~bad[:, j]]
            values[:, j] = np.interp(rows, good, values[good, j]) if len(good) else 0.0
    return np.clip(values, -LARGEST, LARGEST)


def column(log: Log, name: str) -> FloatArray | None:
    """A signal of the log, made finite, or None."""
    return finite(np.asarray(log[name], np.float64)) if name in log else None


def hold_rows(target: FloatArray | None, dt: float) -> int:
    """Rows between two changes of the command while it changes; 1 when that is not clear.

    A command held for whole steps (a 50 Hz policy in a 200 Hz log) changes at multiples of the hold; a step or
    random-hold excitation changes rarely and irregularly, which says nothing about the control rate.
    """
    if target is None or len(target) < 8:
        return 1
    changes = np.flatnonzero(np.any(np.diff(target, axis=0) != 0, axis=1))
    gaps = np.diff(changes)
    if len(gaps) < 10:
        return 1
    usual = int(np.median(gaps))
    steady = float(np.mean(gaps == usual))
    return usual if steady > 0.7 and usual * dt <= SLOWEST_CONTROL_S else 1


def position_noise(pos: FloatArray) -> FloatArray:
    """Sample noise of each column from third differences, which smooth motion hardly reaches.

    Third differences of white noise have 20 times its variance. Quiet stretches carry the least motion, so the 15th
    percentile over windows of 16 rows is taken; for noise alone that is 0.72 of the true value.
    """
    windows = (len(pos) - 3) // 16
    if windows < 1:
        return np.zeros(pos.shape[1])
    third = np.diff(pos, n=3, axis=0)[: 16 * windows].reshape(windows, 16, -1)
    size = np.sqrt(np.mean(third**2, axis=1) / 20.0)
    return np.asarray(np.percentile(size, 15, axis=0) / 0.72, np.float64)


def position_quantum(pos: FloatArray) -> FloatArray:
    """Smallest step between two values when most steps are whole multiples of it, else 0."""
    out = np.zeros(pos.shape[1])
    for j in range(pos.shape[1]):
        steps = np.abs(np.diff(pos[:, j]))
        scale = max(1e-12, 1e-9 * float(np.abs(pos[:, j]).max(initial=0.0)))
        steps = steps[steps > scale]
        if len(steps) < 10:
            continue
        small = float(steps.min())
        whole = steps / small
        if np.mean(np.abs(whole - np.round(whole)) < 0.05) > 0.95:
            out[j] = small
    return out


def smooth(values: FloatArray, half: int) -> FloatArray:
    """Convolve columns with a Hann window of half-width `half` rows; ends are padded by their edge value."""
    half = min(half, len(values) // 4)  # a window longer than the log has no result
    if half < 1:
        return values
    window = np.hanning(2 * half + 3)[1:-1]
    window /= window.sum()
    padded = np.pad(values, [(half, half), (0, 0)], mode="edge")
    return np.stack([np.convolve(padded[:, j], window, mode="valid") for j in range(values.shape[1])], axis=1)


def spread(values: FloatArray) -> FloatArray:
    """Range of each column between its 1st and 99th percentile."""
    low, high = np.percentile(values, [1, 99], axis=0)
    return np.asarray(high - low, np.float64)


def correlation(a: FloatArray, b: FloatArray) -> float:
    """Correlation of two series; 0 when one of them is constant.

    Summed without BLAS: its threads cost more than the sum, a hundred times more on a busy computer.
    """
    a, b = a - a.mean(), b - b.mean()
    scale = float(np.sqrt(np.einsum("i,i", a, a) * np.einsum("i,i", b, b)))
    return float(np.einsum("i,i", a, b)) / scale if scale > 0 else 0.0


def delayed(
    pos: FloatArray, target: FloatArray, dt: float, delays_s: Sequence[float]
) -> list[tuple[FloatArray, FloatArray]]:
    """Position and command cut so that the position is late by each delay (at most a quarter of the log)."""
    rows = sorted({min(round(delay / dt), len(pos) // 4) for delay in delays_s})
    return [(pos[k:], target[: len(target) - k]) for k in rows]


def sliding_correlation(short: FloatArray, long: FloatArray) -> FloatArray:
    """Correlation of `short` with every stretch of `long` that is as long, by a Fourier transform."""
    n, count = len(short), len(long) - len(short) + 1
    x, y = short - short.mean(), long - long.mean()
    size = 2 ** int(np.ceil(np.log2(len(y) + n)))
    cross = np.fft.irfft(np.fft.rfft(y, size) * np.conj(np.fft.rfft(x, size)), size)[:count]
    total, squares = (np.concatenate([[0.0], np.cumsum(part)]) for part in (y, y**2))
    mean = (total[n:] - total[:count]) / n
    power = np.maximum(squares[n:] - squares[:count] - n * mean**2, 0.0) * float(np.sum(x**2))
    return np.asarray(np.where(power > 0, cross / np.sqrt(np.maximum(power, 1e-300)), 0.0))


def runs(flags: BoolArray) -> list[tuple[int, int]]:
    """Stretches [start, stop) where flags is true."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], flags.astype(np.int8), [0]])))
    return [(int(a), int(b)) for a, b in zip(edges[::2], edges[1::2], strict=True)]
