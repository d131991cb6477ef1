"""Object target: a place on the ground to which a free object of the scene shall be brought."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from trueup.core.errors import TrueupError
from trueup.tasks.goals.goal import FloatArray, Goal, GoalCfg, GoalPlace, HeldGoal, Ids, Slider
from trueup.tasks.goals.tool_pose import arm_chain
from trueup.world.scene.access import free_at


@dataclass(frozen=True, kw_only=True)
class ObjectTargetGoal(GoalCfg):
    """Targets (x, y) in m; the object begins each episode at rest in a place drawn alike, turned about z at random."""

    error: ClassVar[tuple[str, str] | None] = ("object_distance", "m")
    columns: ClassVar[tuple[str, ...]] = ("x", "y")
    scales: ClassVar[Mapping[str, str]] = {}
    object: str
    x: tuple[float, float] = (0.18, 0.3)
    y: tuple[float, float] = (-0.12, 0.12)
    hold_s: tuple[float, float] = (6.0, 10.0)

    def start(self, place: GoalPlace) -> Goal:
        at = free_at(place.sim.model, self.object)
        if at is None:
            raise TrueupError(f"object {self.object!r} is fixed: it cannot be brought to a target")
        return ObjectTarget(self, place, at[0])


class ObjectTarget(HeldGoal):
    """Draws targets and start places of the object, whose pose begins at `qpos_at`."""

    ncommand = 2
    mirror = (1, -1)

    def __init__(self, cfg: ObjectTargetGoal, place: GoalPlace, qpos_at: int) -> None:
        super().__init__(place.sim.nsim, cfg.hold_s, place.sim.control_dt, place.random)
        self.chain = arm_chain(place.sim.model, place.sim.robot)
        self._low, self._high = np.array([cfg.x, cfg.y]).T
        self._at = qpos_at
        self.sliders = (Slider("x, m", *cfg.x), Slider("y, m", *cfg.y))

    def adjust_start(self, ids: Ids, qpos: FloatArray, qvel: FloatArray) -> None:
        unit = self._random.uniform(3, ids)
        qpos[:, self._at : self._at + 2] = self._low + (self._high - self._low) * unit[:, :2]
        half = np.pi * (unit[:, 2] - 0.5)
        turned = np.stack([np.cos(half), 0.0 * half, 0.0 * half, np.sin(half)], axis=1)
        qpos[:, self._at + 3 : self._at + 7] = turned

    def _draw(self, ids: Ids) -> NDArray[np.floating]:
        return self._low + (self._high - self._low) * self._random.uniform(2, ids)
