"""Work on rows that is done for many rows at a time, ahead of when each of them needs it.

Episodes end in almost every step of a large batch, a few rows at a time, and work on a few rows costs by the call. What
does not depend on when it is done, the numbers that the next episode draws above all, is therefore computed for every
row that lacks it as soon as one does, and handed out row by row.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.intp]
Name = TypeVar("Name", bound=Hashable)


class Ahead(Generic[Name]):
    """Keeps what `compute(ids)` returns, arrays by name whose first axis is the row, until it is taken.

    `compute` must give a row the same in any company, and the same again if it was not taken: a cache, no state.
    """

    def __init__(self, nrow: int, compute: Callable[[Ids], Mapping[Name, NDArray[Any]]]) -> None:
        self._compute = compute
        self._is_ready = np.zeros(nrow, np.bool_)
        self._blocks: list[_Block[Name]] = []

    def take(self, ids: Ids, *, many: bool = True) -> dict[Name, NDArray[Any]]:
        """Hand out rows `ids`; if one of them is lacking, compute all that are (`many`) or those asked for."""
        if not self._is_ready[ids].all():
            if not many:
                return dict(self._compute(ids))
            self._fill(np.flatnonzero(~self._is_ready))
        self._is_ready[ids] = False
        out: dict[Name, NDArray[Any]] = {}
        for block in self._blocks:
            out |= block.read(ids)
        return out

    def forget(self) -> None:
        """What was computed no longer holds."""
        self._is_ready[:] = False

    def _fill(self, rows: Ids) -> None:
        new = self._compute(rows)
        if not self._blocks:
            kinds = dict.fromkeys(values.dtype for values in new.values())
            nrow = len(self._is_ready)
            self._blocks = [
                _Block(nrow, {name: values for name, values in new.items() if values.dtype == kind})
                for kind in kinds
            ]
        for block in self._blocks:
            block.write(rows, new)
        self._is_ready[rows] = True


class _Block(Generic[Name]):
    """Arrays of one type side by side, so that a few rows of all of them are read at once."""

    def __init__(self, nrow: int, like: Mapping[Name, NDArray[Any]]) -> None:
        self._columns: list[tuple[Name, slice, tuple[int, ...]]] = []
        width = 0
        for name, values in like.items():
            size = math.prod(values.shape[1:])
            self._columns.append((name, slice(width, width + size), values.shape[1:]))
            width += size
        self._kept = np.empty((nrow, width), next(iter(like.values())).dtype)

    def write(self, rows: Ids, new: Mapping[Name, NDArray[Any]]) -> None:
        for name, columns, _ in self._columns:
            self._kept[rows, columns] = new[name].reshape(len(rows), -1)

    def read(self, ids: Ids) -> dict[Name, NDArray[Any]]:
        found, count = self._kept[ids], len(ids)
        return {
            name: found[:, columns].reshape(count, *shape) if len(shape) != 1 else found[:, columns]
            for name, columns, shape in self._columns
        }
