"""Trace: the last steps of (observation, action) of every row, which a student reads. NumPy only."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trueup.policy.history import History
from trueup.policy.layers import Float32


class Trace:
    """`length` steps of `size` numbers; an episode starts with zeros."""

    def __init__(self, nrow: int, length: int, size: int) -> None:
        self._history = History(nrow, length, size)
        self.width = length * size

    @property
    def frames(self) -> Float32:
        """(nrow, length, size), oldest first."""
        return self._history.frames

    def push(self, obs: Float32, last_action: Float32) -> Float32:
        """Append the present observation and the action before it; returns (nrow, width)."""
        return self._history.push(np.concatenate([obs, last_action], axis=1))

    def restart(self, rows: NDArray[np.intp]) -> None:
        """Forget the past of rows whose episode ended."""
        self.frames[rows] = 0.0
