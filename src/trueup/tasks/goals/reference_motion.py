"""Reference motion: joint positions and base motion of a clip that the robot shall follow, step by step.

Episodes begin at a random phase of the clip, in its state there (reference state initialisation, Peng et al. 2018,
arXiv 1804.02717), so that the policy meets the whole clip from the first iteration on. The clip repeats.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from trueup.core.arrays import FloatArray, Ids
from trueup.core.errors import TrueupError
from trueup.robot.spec import RobotSpec
from trueup.tasks.goals.goal import Float32, Goal, GoalCfg, GoalPlace


@dataclass(frozen=True)
class Clip:
    """One period of a motion at `rate_hz`: the row after the last is the first.

    joint_pos   (T, njoint) rad, in the robot's joint order
    base_vel    (T, 3) forward and sideways speed (m/s) and turning rate (rad/s) in the base frame
    base_height (T,) m
    """

    rate_hz: float
    joint_pos: FloatArray
    base_vel: FloatArray
    base_height: FloatArray

    def __post_init__(self) -> None:
        rows = len(self.joint_pos)
        if rows < 2 or self.base_vel.shape != (rows, 3) or self.base_height.shape != (rows,):
            raise TrueupError(
                f"a clip needs two rows or more and base_vel (T, 3), base_height (T,): found joint_pos "
                f"{self.joint_pos.shape}, base_vel {self.base_vel.shape}, base_height {self.base_height.shape}"
            )

    @property
    def joint_vel(self) -> FloatArray:
        """Central differences over the period, rad/s."""
        after, before = np.roll(self.joint_pos, -1, axis=0), np.roll(self.joint_pos, 1, axis=0)
        return 0.5 * self.rate_hz * (after - before)


@dataclass(frozen=True, kw_only=True)
class ReferenceMotionGoal(GoalCfg):
    """`clip(robot)` makes the clip for a robot; the command is its joints (minus default pose), their speeds, base."""

    error: ClassVar[tuple[str, str] | None] = ("pose_error", "rad")
    clip: Callable[[RobotSpec], Clip]

    def start(self, place: GoalPlace) -> Goal:
        return ReferenceMotion(self.clip(place.sim.robot.spec), place)


class ReferenceMotion(Goal):
    """Where each row is in the clip; values: njoint positions, njoint velocities, base velocity (3), base height."""

    def __init__(self, clip: Clip, place: GoalPlace) -> None:
        self._sim, self._random = place.sim, place.random
        sim, spec = place.sim, place.sim.robot.spec
        if clip.joint_pos.shape[1] != spec.njoint:
            raise TrueupError(f"this clip has {clip.joint_pos.shape[1]} joints, the robot {spec.njoint}")
        self._rows = np.concatenate(
            [clip.joint_pos - spec.default_pose, clip.joint_vel, clip.base_vel, clip.base_height[:, None]], axis=1
        ).astype(np.float32)
        self.ncommand = self._rows.shape[1]
        super().__init__(sim.nsim)
        self._phase = np.zeros(sim.nsim)  # rows of the clip, fractional
        self._step = sim.control_dt * clip.rate_hz

    def reset(self, ids: Ids) -> None:
        self._phase[ids] = len(self._rows) * self._random.uniform(1, ids)[:, 0]
        self.age[ids] = 0.0
        self._show(ids)

    def advance(self) -> None:
        np.mod(self._phase + self._step, len(self._rows), out=self._phase)
        self.age += np.float32(self._sim.control_dt)
        self._show(np.arange(len(self._phase)))

    def hold(self, values: NDArray[np.floating]) -> None:
        raise TrueupError("a reference motion goes on by itself: it cannot be held")

    def adjust_start(self, ids: Ids, qpos: FloatArray, qvel: FloatArray) -> None:
        sim, n = self._sim, self._sim.robot.spec.njoint
        now = self.values[ids].astype(np.float64)
        qpos[:, sim.index.qpos] = sim.robot.spec.default_pose + now[:, :n]
        qvel[:, sim.index.dof] = now[:, n : 2 * n]
        if sim.free_base:
            qpos[:, sim.base_qpos + 2] = now[:, -1]
            w, z = qpos[:, sim.base_qpos + 3], qpos[:, sim.base_qpos + 6]
            cos, sin = w * w - z * z, 2.0 * w * z  # heading of a start that is nearly upright
            forward, left = now[:, -4], now[:, -3]
            qvel[:, sim.base_dof] = cos * forward - sin * left
            qvel[:, sim.base_dof + 1] = sin * forward + cos * left
            qvel[:, sim.base_dof + 5] = now[:, -2]

    def memory(self) -> dict[str, NDArray[np.generic]]:
        return {"values": self.values, "age": self.age, "phase": self._phase, "counter": self._random.counter}

    def course(self) -> Float32:
        return self.values[:, -4:-1]

    def _show(self, ids: Ids) -> None:
        """Interpolate the clip at the rows' phases."""
        low = np.floor(self._phase[ids]).astype(np.intp) % len(self._rows)
        share = (self._phase[ids] - np.floor(self._phase[ids])).astype(np.float32)[:, None]
        high = (low + 1) % len(self._rows)
        self.values[ids] = (1 - share) * self._rows[low] + share * self._rows[high]
