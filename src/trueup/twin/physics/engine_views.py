"""Joint-ordered windows into the engine's arrays: views where the joints lie side by side, copies where they do not."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
Ids = NDArray[np.intp]


class EngineViews:
    """Hands out arrays in joint order; `gather` and `scatter` keep the copies among them true."""

    def __init__(self) -> None:
        self._reads: list[tuple[FloatArray, FloatArray, Ids]] = []
        self._writes: list[tuple[FloatArray, FloatArray, Ids]] = []

    def read(self, source: FloatArray, ids: Ids) -> FloatArray:
        """Return what `source` holds at `ids`, up to date after every `gather`."""
        view = _view(source, ids)
        if view is not None:
            return view
        copy = source[ids]
        self._reads.append((copy, source, ids))
        return copy

    def write(self, target: FloatArray, ids: Ids) -> FloatArray:
        """Return an array whose content reaches `target` at `ids` with every `scatter`."""
        view = _view(target, ids)
        if view is not None:
            return view
        copy = target[ids]
        self._writes.append((copy, target, ids))
        return copy

    @property
    def has_reads(self) -> bool:
        """Whether `gather` has anything to do."""
        return bool(self._reads)

    @property
    def has_writes(self) -> bool:
        """Whether `scatter` has anything to do."""
        return bool(self._writes)

    def gather(self) -> None:
        """Copy from the engine."""
        for copy, source, ids in self._reads:
            np.take(source, ids, out=copy)

    def scatter(self) -> None:
        """Copy to the engine."""
        for copy, target, ids in self._writes:
            target[ids] = copy


def _view(array: FloatArray, ids: Ids) -> FloatArray | None:
    start = int(ids[0])
    side_by_side = np.array_equal(ids, np.arange(start, start + len(ids)))
    return array[start : start + len(ids)] if side_by_side else None
