"""Motions as numbers that a search can move: a bounded Fourier series around a pose, per joint, from rest to rest.

    d(t) = w(t) [c A + sum_m A(f_m) (s_m sin 2 pi f_m t + k_m cos 2 pi f_m t)],    A(f) = min(A, v / w, a / w^2)

with w(t) swelling from zero and fading to zero. A motion that leaves its bounds of distance, speed or acceleration is
made smaller as a whole, so every vector of numbers is a motion that a robot may be asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trueup.robot.excitation.limits import Bounds, fit_into
from trueup.robot.excitation.plan import min_jerk

FloatArray = NDArray[np.float64]
HARMONICS = (1, 2, 4, 8, 16, 32)  # of a segment's length: 0.2 to 6.4 Hz in 5 s
NUMBERS = 1 + 2 * len(HARMONICS)  # per joint: pose, sines, cosines
_RAMP_S = 0.5


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
                    wave = np.pad(
                        basis[j] @ motion[j], 1
                    )  # rows before and after count for the ends' acceleration
                    out[k, :, j] += fit_into(wave, bounds, 1.0 / self.rate_hz)[1:-1]
        return out

    def _basis(self, bounds: Bounds) -> FloatArray:
        """(rows, NUMBERS) each as large as its frequency allows, swelling and fading."""
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
