"""Work on rows that is done for many rows at a time, ahead of when each of them needs it.

Episodes end in almost every step of a large batch, a few rows at a time, and work on a few rows costs by the call. What
does not depend on when it is done, the numbers that the next episode draws above all, is therefore computed for every
row that lacks it as soon as one does, and handed out row by row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.intp]
Rows = Mapping[str, NDArray[Any]]


class Ahead:
    """Keeps what `compute(ids)` returns, arrays by name whose first axis is the row, until it is taken.

    `compute` must give a row the same in any company, and the same again if it was not taken: a cache, no state.
    """

    def __init__(self, nrow: int, compute: Callable[[Ids], Rows]) -> None:
        self._compute = compute
        self._is_ready = np.zeros(nrow, np.bool_)
        self._kept: dict[str, NDArray[Any]] = {}

    def take(self, ids: Ids, *, many: bool = True) -> dict[str, NDArray[Any]]:
        """Hand out rows `ids`; if one of them is lacking, compute all that are (`many`) or those asked for."""
        if not self._is_ready[ids].all():
            if not many:
                return dict(self._compute(ids))
            self._fill(np.flatnonzero(~self._is_ready))
        self._is_ready[ids] = False
        return {name: values[ids] for name, values in self._kept.items()}

    def forget(self) -> None:
        """What was computed no longer holds."""
        self._is_ready[:] = False

    def _fill(self, rows: Ids) -> None:
        new = self._compute(rows)
        if not self._kept:
            self._kept = {
                name: np.empty((len(self._is_ready), *values.shape[1:]), values.dtype)
                for name, values in new.items()
            }
        for name, values in new.items():
            self._kept[name][rows] = values
        self._is_ready[rows] = True
