"""The action chain between a policy and the physics: action map -> target stages -> delay -> servo -> substep model.

A target stage changes the joint targets of a control step before they are delayed: a delta action that was learned
from a robot (ASAP, arXiv 2502.01143), a correction of a calibration, a disturbance. A simulation has a list of stages,
which a task or a calibration extends; policies never see what stages do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trueup.core.arrays import FloatArray
from trueup.core.errors import TrueupError

if TYPE_CHECKING:
    from trueup.world.engines.simulation import Simulation


class TargetStage:
    """One link of the action chain; a stage with a past overrides all three."""

    def __call__(self, targets: FloatArray, sim: Simulation) -> FloatArray:
        """Return the targets (nsim, njoint) that go on; `targets` itself must stay as it is."""
        raise NotImplementedError

    def reset(self, sim: Simulation, ids: NDArray[np.intp] | None) -> None:
        """Forget the past of simulations `ids` (None: all)."""

    def memory(self) -> dict[str, NDArray[np.generic]]:
        """The live arrays that a checkpoint must hold."""
        return {}


class ConstantDelta(TargetStage):
    """A delta action that is always the same: `offset` rad on the targets, one number or one for each joint."""

    def __init__(self, offset: ArrayLike) -> None:
        self.offset = np.asarray(offset, np.float64)
        if not np.isfinite(self.offset).all():
            raise TrueupError("a delta action needs finite offsets")

    def __call__(self, targets: FloatArray, sim: Simulation) -> FloatArray:
        out: FloatArray = targets + self.offset
        return out
