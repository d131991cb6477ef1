"""Parameters of joints that are computed from drawn numbers in one go: (base + gain drawn) strength, column by column.

Episodes end in almost every step of a large batch, a few at a time, so that resets cost by the call, not by the row.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from trueup.sim.randomize import Draw

FloatArray = NDArray[np.float64]


class JointPlan:
    """For rows of drawn numbers (n, ncolumn): the values (n, njoint) of each parameter in `names`.

    nominal   (njoint,) of each parameter;  strength  columns of the motors' strength, which scales those in `driven`
    """

    def __init__(
        self,
        nominal: Mapping[str, FloatArray],
        ranges: Mapping[str, Draw],
        columns: Mapping[str, slice],
        strength: slice | None,
        driven: Iterable[str],
    ) -> None:
        self.names = tuple(nominal)
        base, gain, source = [], [], []
        for name, values in nominal.items():
            draw = ranges.get(name)
            drawn = np.zeros(len(values), np.intp) if draw is None else _spread(columns[name], len(values))
            keeps = draw is None or draw.operation == "add"
            base.append(values if keeps else np.zeros(len(values)))
            gain.append(
                np.zeros(len(values))
                if draw is None
                else values
                if draw.operation == "scale"
                else np.ones(len(values))
            )
            source.append(drawn)
        self._base, self._gain = np.concatenate(base), np.concatenate(gain)
        self._source = np.concatenate(source)
        ends = np.cumsum([0, *(len(values) for values in nominal.values())])
        self._parts = [slice(int(a), int(b)) for a, b in pairwise(ends)]
        driven = [name for name in driven if strength is not None and name in nominal]
        self._driven = [self._parts[self.names.index(name)] for name in driven]
        width = len(next(iter(nominal.values())))
        self._strength = None if strength is None else _spread(strength, width)

    def values(self, numbers: FloatArray) -> dict[str, FloatArray]:
        """Values of every parameter; views of one array."""
        out = self._base + self._gain * numbers[:, self._source]
        for part in self._driven:
            out[:, part] *= numbers[:, self._strength]
        return {name: out[:, part] for name, part in zip(self.names, self._parts, strict=True)}


def _spread(columns: slice, width: int) -> NDArray[np.intp]:
    """The drawn column of each joint: one each, or one for all."""
    found = np.arange(columns.start, columns.stop)
    return found if len(found) == width else np.repeat(found, width)
