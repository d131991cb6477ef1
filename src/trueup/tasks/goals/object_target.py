"""Object target: a place on the ground to which a free object of the scene shall be brought."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from trueup.core.arrays import FloatArray, Ids
from trueup.core.errors import TrueupError
from trueup.tasks.goals.goal import Goal, GoalCfg, GoalPlace, HeldGoal, Slider
from trueup.tasks.goals.tool_pose import arm_chain
from trueup.world.scene.access import free_at


@dataclass(frozen=True, kw_only=True)
class ObjectTargetGoal(GoalCfg):
    """Targets (x, y) in m; the object starts at rest at a place drawn from the same ranges, with random yaw."""

    error: ClassVar[tuple[str, str] | None] = ("object_distance", "m")
    columns: ClassVar[tuple[str, ...]] = ("x", "y")
    object: str
    x: tuple[float, float] = (0.18, 0.3)
    y: tuple[float, float] = (-0.12, 0.12)
    hold_s: tuple[float, float] = (6.0, 10.0)

    def start(self, place: GoalPlace) -> Goal:
        return ObjectTarget(self, place)


class ObjectTarget(HeldGoal):
    """Draws targets and start places of the object."""

    ncommand = 2
    mirror = (1, -1)

    def __init__(self, cfg: ObjectTargetGoal, place: GoalPlace) -> None:
        super().__init__(place, cfg.hold_s, (cfg.x, cfg.y))
        self.chain = arm_chain(place.sim.model, place.sim.robot)
        self.sliders = (Slider("x, m", *cfg.x), Slider("y, m", *cfg.y))
        at = free_at(place.sim.model, cfg.object)
        if at is None:
            raise TrueupError(f"object {cfg.object!r} is fixed: it cannot be brought to a target")
        self._at = at[0]  # of its pose in qpos

    def adjust_start(self, ids: Ids, qpos: FloatArray, qvel: FloatArray) -> None:
        unit = self._random.uniform(3, ids)
        qpos[:, self._at : self._at + 2] = self._between(unit[:, :2])
        half = np.pi * (unit[:, 2] - 0.5)
        qpos[:, self._at + 3 : self._at + 7] = 0.0
        qpos[:, self._at + 3], qpos[:, self._at + 6] = np.cos(half), np.sin(half)

    def _draw(self, ids: Ids) -> FloatArray:
        return self._between(self._random.uniform(2, ids))
