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
from trueup.models.delta_net import DeltaNet

if TYPE_CHECKING:
    from trueup.world.engines.simulation import Simulation


class TargetStage:
    """One link of the action chain; a stage with a past overrides all three."""

    def __call__(self, targets: FloatArray, sim: Simulation) -> FloatArray:
        """Return the targets (nsim, njoint) for the next stage; must not write into `targets`."""
        raise NotImplementedError

    def reset(self, sim: Simulation, ids: NDArray[np.intp] | None) -> None:
        """Forget the past of simulations `ids` (None: all)."""

    def prime(self, past: FloatArray) -> None:
        """The targets (nsim, T, njoint) that came before a replay begins, oldest first."""

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


class LearnedDelta(TargetStage):
    """A delta action that was learned from logs (`trueup calibrate delta`).

    outside  (nsim,) share of its inputs beyond the range of the data in the last step; there it sees the range's edge
    """

    def __init__(self, net: DeltaNet) -> None:
        self.net = net
        self.outside: FloatArray = np.zeros(0)
        self._past: FloatArray = np.zeros((0, 0, 0))  # (nsim, past, njoint), the newest first

    def reset(self, sim: Simulation, ids: NDArray[np.intp] | None) -> None:
        if len(self._past) != sim.nsim:
            self._past = np.zeros((sim.nsim, self.net.spec.past, sim.robot.spec.njoint))
        rows = slice(None) if ids is None else ids
        self._past[rows] = (sim.joint_pos[rows] + sim.encoder_bias[rows])[:, None]

    def prime(self, past: FloatArray) -> None:
        count = min(self.net.spec.past, past.shape[1])
        self._past[:, :count] = past[:, ::-1][:, :count]

    def memory(self) -> dict[str, NDArray[np.generic]]:
        return {"past": self._past}

    def __call__(self, targets: FloatArray, sim: Simulation) -> FloatArray:
        spec = self.net.spec
        if spec.joint_names != sim.robot.spec.joint_names:
            raise TrueupError(f"this delta action is of {spec.robot}, with other joints than {sim.robot.spec.name}")
        if abs(sim.control_dt * spec.rate_hz - 1.0) > 0.02:
            rates = f"{spec.rate_hz:g} Hz, this simulation controls at {1 / sim.control_dt:g} Hz"
            raise TrueupError(f"this delta action was learned at {rates}: learn it with --rate-hz of the task")
        motion = sim.motion.of()
        base = None
        if spec.base and motion.base_vel is not None:
            base = np.concatenate([motion.gravity, motion.base_vel[:, 3:]], axis=1)
        x = self.net.inputs(targets, motion.joint_pos + sim.encoder_bias, motion.joint_vel, base, self._past)
        self.outside = self.net.outside(x)
        if spec.past:
            self._past[:, 1:] = self._past[:, :-1].copy()
            self._past[:, 0] = targets
        out: FloatArray = targets + self.net(x)
        return out
