"""Touch: contacts of a robot's shapes with each other or the floor along a motion, and the joints that cause them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import mujoco
import numpy as np

from trueup.core.arrays import FloatArray
from trueup.robot.load import Robot
from trueup.robot.model import default_qpos, joint_index


class TouchFault(NamedTuple):
    """A contact in a motion: the joints that cause it, the factor that makes their motion smaller, and a text."""

    joints: tuple[str, ...]
    factor: float
    text: str


class TouchFinder:
    """Looks for contacts pose by pose; pairs that touch in the pose `rest` are passed over."""

    def __init__(self, robot: Robot, model: mujoco.MjModel, clearance_m: float, rest: FloatArray) -> None:
        self._robot, self._model = robot, model.__copy__()
        self._model.geom_margin[:] = clearance_m
        self._data = mujoco.MjData(self._model)
        self._index = joint_index(self._model, robot)
        self._data.qpos[:] = default_qpos(self._model, robot)
        self._always = set(self._pairs(rest))

    def first_touches(self, paths: Sequence[FloatArray], time: FloatArray, factor: float) -> list[TouchFault]:
        """First touch of every pair on any of the paths, each (T, n); `factor` is that of every fault."""
        found: dict[tuple[int, int], tuple[float, float]] = {}
        for path in paths:
            for row, pose in enumerate(path):
                for pair, depth in self._pairs(pose).items():
                    if pair not in self._always and (pair not in found or time[row] < found[pair][0]):
                        found[pair] = float(time[row]), depth
        return [
            TouchFault(joints := self._between(pair), factor, self._text(pair, when, depth, joints))
            for pair, (when, depth) in sorted(found.items(), key=lambda item: item[1])
        ]

    def _text(self, pair: tuple[int, int], when: float, depth: float, joints: tuple[str, ...]) -> str:
        first, other = (self._model.geom(geom).name or f"geom {geom}" for geom in pair)
        how = f"{1e3 * abs(depth):.1f} mm {'deep' if depth >= 0 else 'apart'}"
        between = ", ".join(map(repr, joints)) or "no joint"
        return f"{first!r} touches {other!r} at {when:.2f} s ({how}; moved by {between})"

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
        for (first, other), distance in zip(data.contact.geom, data.contact.dist, strict=True):
            pair = min(int(first), int(other)), max(int(first), int(other))
            pairs[pair] = max(pairs.get(pair, -np.inf), -float(distance))
        return pairs

    def _between(self, pair: tuple[int, int]) -> tuple[str, ...]:
        """Spec joints on the way from one body to the other: those that move the two apart or together."""
        first, other = (self._chain(int(self._model.geom_bodyid[geom])) for geom in pair)
        ids = first ^ other
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
