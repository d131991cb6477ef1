"""Touch: contacts of a robot's shapes with each other or the floor along a motion, and the joints that cause them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import mujoco
import numpy as np
from numpy.typing import NDArray

from trueup.robot.load import Robot
from trueup.robot.model import default_qpos, joint_index

FloatArray = NDArray[np.float64]


class Touch(NamedTuple):
    """Two shapes that touch: names, first time, depth (m, negative: apart) and the joints between them."""

    geoms: tuple[str, str]
    time_s: float
    depth_m: float
    joints: tuple[str, ...]

    def __str__(self) -> str:
        how = f"{1e3 * self.depth_m:.1f} mm deep" if self.depth_m >= 0 else f"{-1e3 * self.depth_m:.1f} mm apart"
        between = ", ".join(map(repr, self.joints)) or "no joint"
        return f"{self.geoms[0]!r} touches {self.geoms[1]!r} at {self.time_s:.2f} s ({how}; moved by {between})"


class TouchFinder:
    """Looks for contacts pose by pose; pairs that touch in the pose `rest` are passed over."""

    def __init__(self, robot: Robot, model: mujoco.MjModel, clearance_m: float, rest: FloatArray) -> None:
        self._robot, self._model = robot, model.__copy__()
        self._model.geom_margin[:] = clearance_m
        self._data = mujoco.MjData(self._model)
        self._index = joint_index(self._model, robot)
        self._data.qpos[:] = default_qpos(self._model, robot)
        self._always = set(self._pairs(rest))

    def first_touches(self, paths: Sequence[FloatArray], time: FloatArray) -> tuple[Touch, ...]:
        """First touch of every pair on any of the paths, each (T, n)."""
        found: dict[tuple[int, int], tuple[float, float]] = {}
        for path in paths:
            for row, pose in enumerate(path):
                for pair, depth in self._pairs(pose).items():
                    if pair not in self._always and (pair not in found or time[row] < found[pair][0]):
                        found[pair] = float(time[row]), depth
        order = sorted(found.items(), key=lambda item: item[1])
        return tuple(Touch(self._names(pair), when, depth, self._between(pair)) for pair, (when, depth) in order)

    def _pairs(self, pose: FloatArray) -> dict[tuple[int, int], float]:
        """Pairs of geoms nearer than the clearance, with their depth."""
        model, data = self._model, self._data
        data.qpos[self._index.qpos] = pose
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        mujoco.mj_collision(model, data)
        if not data.ncon:
            return {}
        pairs: dict[tuple[int, int], float] = {}
        for (one, other), distance in zip(data.contact.geom, data.contact.dist, strict=True):
            pair = min(int(one), int(other)), max(int(one), int(other))
            pairs[pair] = max(pairs.get(pair, -np.inf), -float(distance))
        return pairs

    def _names(self, pair: tuple[int, int]) -> tuple[str, str]:
        one, other = (self._model.geom(geom).name or f"geom {geom}" for geom in pair)
        return one, other

    def _between(self, pair: tuple[int, int]) -> tuple[str, ...]:
        """Spec joints on the way from one body to the other: those that move the two apart or together."""
        one, other = (self._chain(int(self._model.geom_bodyid[geom])) for geom in pair)
        ids = one ^ other
        return tuple(
            name for name, j in zip(self._robot.spec.joint_names, self._index.joint_id, strict=True) if int(j) in ids
        )

    def _chain(self, body: int) -> set[int]:
        """Joints between a body and the world."""
        joints: set[int] = set()
        while body:
            start = int(self._model.body_jntadr[body])
            joints |= set(range(start, start + int(self._model.body_jntnum[body])))
            body = int(self._model.body_parentid[body])
        return joints
