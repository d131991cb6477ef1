"""Gait: how high feet are lifted, from the heights of their soles."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Float32 = NDArray[np.float32]
LIFTED_M = 0.005
SHORTEST = 3  # control steps


class SwingPeaks:
    """Collects the highest point of every swing: a stretch of at least 3 control steps with the sole above 5 mm.

    A swing counts when the foot is down again; one that the end of an episode cuts off does not.
    """

    def __init__(self, nenv: int, nfoot: int) -> None:
        self._peak = np.zeros((nenv, nfoot), np.float32)
        self._steps = np.zeros((nenv, nfoot), np.int64)
        self._found: list[Float32] = []

    def push(self, height: Float32) -> None:
        """Heights (nenv, nfoot) of the soles above the ground after one control step, m."""
        lifted = height > LIFTED_M
        ended = ~lifted & (self._steps >= SHORTEST)
        if ended.any():
            self._found.append(self._peak[ended])
        self._steps = np.where(lifted, self._steps + 1, 0)
        self._peak = np.where(lifted, np.maximum(self._peak, height), np.float32(0.0))

    def restart(self, rows: NDArray[np.intp]) -> None:
        """Episodes of these rows ended: swings that had begun are dropped."""
        self._steps[rows] = 0
        self._peak[rows] = 0.0

    @property
    def peaks(self) -> Float32:
        """Of all swings so far, m."""
        return np.concatenate(self._found) if self._found else np.zeros(0, np.float32)

    def median(self) -> float | None:
        """Of all peaks, m; None without a swing."""
        return float(np.median(self.peaks)) if self._found else None
