"""Random numbers that a test has written down, so that what is drawn from them can be worked out by hand."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


class GivenRandom:
    """In place of a RowRandom: each call takes the next array, whose shape must be what is asked for."""

    def __init__(self, nrow: int, *draws: list[list[float]]) -> None:
        self._draws = [np.array(draw, np.float64) for draw in draws]
        self.counter = np.zeros(nrow, np.uint64)

    def uniform(self, n: int, ids: NDArray[np.intp] | None = None) -> NDArray[np.float64]:
        assert self._draws, "more is drawn than the test has written down"
        draw = self._draws.pop(0)
        assert draw.shape == (len(self.counter) if ids is None else len(ids), n)
        return draw
