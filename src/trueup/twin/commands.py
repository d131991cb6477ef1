"""The way of a command to the servo: a delay, a jitter, and a first physics step of which it has only a part."""

from __future__ import annotations

from collections import deque

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
_FAR = 1 << 60
_WHOLE = 1e-9  # of a physics step: rounding of a delay that is a whole number of steps


class CommandLine:
    """Commands on their way, each due at a time counted in physics steps, first in first out.

    A command that falls due inside a physics step is in force for a part of it; the step then sees the mean, as in
    `models.delay`, so that a delay may be any real number.
    """

    def __init__(self, delay_steps: float, jitter_steps: float, random: np.random.Generator) -> None:
        self._delay, self._jitter, self._random = delay_steps, jitter_steps, random
        self._queue: deque[tuple[float, FloatArray]] = deque()
        self._active: FloatArray | None = None
        self._is_mean = False
        self._last_due = -1.0

    def push(self, rows: FloatArray, now_steps: float) -> None:
        """A command arrives; one that overtakes the command before it waits for it."""
        due = now_steps + self._delay
        if self._jitter:
            due += self._jitter * self._random.random()
        self._last_due = due = max(due, self._last_due)
        self._queue.append((due, rows))

    def at(self, step: int) -> FloatArray | None:
        """Return the command that physics step `step` sees, or None when it is that of the step before."""
        if not self._queue or self._queue[0][0] >= step + 1 - _WHOLE:
            if not self._is_mean:
                return None
            self._is_mean = False
            return self._active
        mean = self._active
        while self._queue and self._queue[0][0] < step + 1 - _WHOLE:
            due, rows = self._queue.popleft()
            share = step + 1 - due
            if mean is None or self._active is None or share >= 1.0 - _WHOLE:
                mean = rows
            else:
                mean = mean + share * (rows - self._active)
            self._active = rows
        self._is_mean = mean is not self._active
        return mean

    def quiet_steps(self, step: int) -> int:
        """Return for how many physics steps from `step` on nothing changes, after `at(step)`: at least one."""
        if self._is_mean:
            return 1
        return max(1, int(self._queue[0][0] + _WHOLE) - step) if self._queue else _FAR

    def cut(self, rows: FloatArray) -> None:
        """Forget what is on its way; `rows` is in force from now on."""
        self._queue.clear()
        self._active, self._is_mean = rows, False
