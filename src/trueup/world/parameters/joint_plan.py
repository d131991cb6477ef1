"""Parameters of joints that are computed from drawn numbers in one go: (base + gain drawn) strength, joint by joint.

Episodes end in almost every step of a large batch, a few at a time, so that resets cost by the call, not by the row.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from trueup.core.arrays import FloatArray

if TYPE_CHECKING:
    from trueup.world.randomization.randomize import Draw


class JointPlan:
    """For rows of drawn numbers (n, ncolumn): the values (n, njoint) of every parameter.

    nominal   (njoint,) of each parameter
    columns   of each range among the drawn numbers
    strength  columns of the motors' strength, which scales the parameters in `driven`
    """

    def __init__(
        self,
        nominal: Mapping[str, FloatArray],
        ranges: Mapping[str, Draw],
        columns: Mapping[str, slice],
        strength: slice | None,
        driven: Collection[str],
    ) -> None:
        self._names = tuple(nominal)
        base, gain, source = [], [], []
        for name, values in nominal.items():
            operation = ranges[name].operation if name in ranges else None
            base.append(values if operation in (None, "add") else np.zeros_like(values))
            gain.append({None: np.zeros_like(values), "scale": values}.get(operation, np.ones_like(values)))
            source.append(_of_joints(columns.get(name), len(values)))
        self._base, self._gain, self._source = np.stack(base), np.stack(gain), np.stack(source)
        self._driven = [k for k, name in enumerate(nominal) if strength is not None and name in driven]
        self._strength = _of_joints(strength, self._base.shape[1])

    def values(self, numbers: FloatArray) -> dict[str, FloatArray]:
        """Values of every parameter."""
        out = self._base + self._gain * numbers[:, self._source]
        for k in self._driven:
            out[:, k] *= numbers[:, self._strength]
        return {name: out[:, k] for k, name in enumerate(self._names)}


def _of_joints(columns: slice | None, njoint: int) -> NDArray[np.intp]:
    """The drawn column of each joint: one each, or one for all; any, where none is drawn (its gain is zero)."""
    found = np.arange(1) if columns is None else np.arange(columns.start, columns.stop)
    return np.broadcast_to(found, njoint)
