"""Trace: the last steps of (observation, action) of every row, what a student sees. NumPy only."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trueup.policy.history import History

Floats = NDArray[np.float32]


class Trace:
    """`length` steps of `size` numbers; an episode starts with an empty past."""

    def __init__(self, nrow: int, length: int, size: int) -> None:
        self._history = History(nrow, length, size)
        self.width = length * size

    @property
    def frames(self) -> Floats:
        """(nrow, length, size), oldest first."""
        return self._history.frames

    def push(self, obs: Floats, last_action: Floats) -> Floats:
        """Append the present observation and the action that led to it; returns (nrow, width)."""
        return self._history.push(np.concatenate([obs, last_action], axis=1))

    def restart(self, rows: NDArray[np.intp]) -> None:
        """Forget the past of rows whose episode ended."""
        self.frames[rows] = 0.0
