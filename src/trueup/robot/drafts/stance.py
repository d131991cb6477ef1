"""Stance of a drafted robot: default pose, shapes on the ground, and the load of standing.

The pose is the file's keyframe if the robot stands in it. Without one every joint is at zero, or in the middle of its
range where zero lies outside (a knee). Then
- a knee off zero turns the parallel joint above it half as far the other way, so that the foot stays below;
- a straight leg of a legged robot (two parallel hinges across the trunk, foot at full reach) gets its knee bent to the
  back, 1.5 rad between thigh and shin, and its foot below the hip: straight legs cannot push.
"""

from __future__ import annotations

from typing import NamedTuple

import mujoco
import numpy as np

from trueup.core.arrays import FloatArray
from trueup.robot.shapes import collision_geoms, lowest_place, lowest_point

Limits = dict[int, tuple[float, float]]
Pose = dict[int, float]
# As plain numbers: `in` asks the enum, which never equals an element of an array.
HINGE, SLIDE = int(mujoco.mjtJoint.mjJNT_HINGE), int(mujoco.mjtJoint.mjJNT_SLIDE)
_SOLE_M = 0.01  # shapes that end this close above a foot's lowest point belong to its sole
_PARALLEL = 0.99  # cosine between axes
_STRAIGHT = 0.97  # of the leg's reach
_BEND = 1.5  # rad, between thigh and shin


class Stance(NamedTuple):
    """How a robot stands in its default pose.

    pose          joint -> position
    guess         why the pose is a guess, None: the file says so
    height        of a floating base above the ground, m
    feet, ground  geoms that carry a floating robot, and those that count as contacts (none: all do)
    load          torques (nv,) that hold the pose, see `stance_load`
    """

    pose: Pose
    guess: str | None
    height: float
    feet: list[int]
    ground: list[int]
    load: FloatArray


def draft_stance(model: mujoco.MjModel, data: mujoco.MjData, base: int, limits: Limits, floating: bool) -> Stance:
    """Choose the default pose of the joints in `limits` and look at the robot in it; `data` stays in that pose."""
    pose, guess = draft_pose(model, base, limits, floating)
    low = place(model, data, base, pose)
    height = max(0.0, -min(low.values(), default=0.0)) if floating else 0.0
    feet = in_order(data, find_feet(model, list(limits), low)) if floating else []
    load = np.zeros(model.nv) if floating and not feet else stance_load(model, data, feet)
    return Stance(pose, guess, height, feet, ground_geoms(model, base, feet, low), load)


def draft_pose(model: mujoco.MjModel, base: int, limits: Limits, legged: bool) -> tuple[Pose, str | None]:
    """Choose the default pose of the joints in `limits`; return it and why it is a guess (None: the file says so).

    legged  the robot is to stand on its last parts
    """
    folded = _Folding(model, base, limits)
    folded.fold_evenly()
    if legged:
        folded.bend_straight_legs()
    if not model.nkey:
        return folded.pose, "no keyframe: zero, or bent evenly"
    names = [model.key(key).name for key in range(model.nkey)]
    key = next((number for number, name in enumerate(names) if name.lower() == "home"), 0)
    kept = {joint: float(np.clip(model.key_qpos[key, model.jnt_qposadr[joint]], *limits[joint])) for joint in limits}
    if legged and folded.feet_down(kept) < folded.feet_down(folded.pose):
        return folded.pose, f"keyframe {names[key]!r} does not stand on all feet: bent evenly"
    return kept, None


def place(model: mujoco.MjModel, data: mujoco.MjData, base: int, pose: Pose) -> dict[int, float]:
    """Evaluate a pose with the base frame at the origin, upright (`model.body_pos` of the base is changed).

    Returns the height of the lowest point of every shape that can touch something.
    """
    model.body_pos[base], model.body_quat[base] = (0.0, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0)
    mujoco.mj_resetData(model, data)
    if has_free_joint(model, base):
        data.qpos[model.jnt_qposadr[model.body_jntadr[base]] :][:7] = (0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0)
    for joint, value in pose.items():
        data.qpos[model.jnt_qposadr[joint]] = value
    mujoco.mj_forward(model, data)
    return {geom: lowest_point(model, data, geom) for geom in collision_geoms(model)}


def has_free_joint(model: mujoco.MjModel, body: int) -> bool:
    """Whether a body floats."""
    first = model.body_jntadr[body]
    return bool(first >= 0 and model.jnt_type[first] == mujoco.mjtJoint.mjJNT_FREE)


class _Folding:
    """A pose in the making; works on data of its own, on the drafter's model."""

    def __init__(self, model: mujoco.MjModel, base: int, limits: Limits) -> None:
        self.model, self.base, self.limits = model, base, limits
        self.data = mujoco.MjData(model)
        self.pose: Pose = {
            joint: 0.0 if low <= 0.0 <= high else (low + high) / 2 for joint, (low, high) in limits.items()
        }
        place(model, self.data, base, dict.fromkeys(limits, 0.0))

    def fold_evenly(self) -> None:
        """Where a knee cannot be straight, turn the joint above it half as far the other way."""
        for joint, angle in list(self.pose.items()):
            above = self._joint_above(joint)
            if angle != 0.0 and above is not None and self.pose[above] == 0.0 and self._parallel(joint, above):
                self._turn(above, -angle * self._along(joint, above) / 2)

    def bend_straight_legs(self) -> None:
        """Bend the knee of every leg that is at full reach below the base."""
        low = place(self.model, self.data, self.base, self.pose)
        for part, foot in lowest_shapes(self.model, list(self.limits), low).items():
            knee = self._last_joint(part)
            hip = None if knee is None else self._joint_above(knee)
            if knee is None or hip is None or not self._parallel(knee, hip):
                continue
            above = self._joint_above(hip)  # three parallel joints are another kind of leg, with an ankle
            swings_forward = abs(float(self.data.xaxis[hip][1])) > 0.9
            if swings_forward and (above is None or not self._parallel(hip, above)):
                self._bend_straight_leg(hip, knee, foot)

    def _bend_straight_leg(self, hip: int, knee: int, foot: int) -> None:
        """Turn the knee about y so that it points to the back, and the hip so that the foot is below."""
        upper, lower = self.data.xanchor[hip], self.data.xanchor[knee]
        is_ball = self.model.geom_type[foot] == mujoco.mjtGeom.mjGEOM_SPHERE
        end = self.data.geom_xpos[foot] if is_ball else lowest_place(self.model, self.data, foot)
        thigh, shank = lower - upper, end - lower
        across: FloatArray = np.eye(3) - np.outer(self.data.xaxis[hip], self.data.xaxis[hip])
        a, b, reach = (float(np.linalg.norm(across @ line)) for line in (thigh, shank, end - upper))
        if upper[2] - end[2] <= 0.8 * reach or min(a, b) <= 0.2 * reach or reach <= _STRAIGHT * (a + b):
            return  # not below, no leg of two parts, or bent already
        bent = np.arctan2(-shank[0], -shank[2]) - np.arctan2(-thigh[0], -thigh[2])  # already, about y
        turn = -_BEND - bent
        x = thigh[0] + np.cos(turn) * shank[0] + np.sin(turn) * shank[2]
        z = thigh[2] - np.sin(turn) * shank[0] + np.cos(turn) * shank[2]
        lean = -np.arctan2(-x, -z)  # turning by `lean` about y brings (x, z) below
        self._turn(knee, np.sign(self.data.xaxis[knee][1]) * turn)
        self._turn(hip, np.sign(self.data.xaxis[hip][1]) * lean)

    def feet_down(self, pose: Pose) -> int:
        """Number of last parts that carry the robot in a pose."""
        return len(find_feet(self.model, list(self.limits), place(self.model, self.data, self.base, pose)))

    def _turn(self, joint: int, angle: float) -> None:
        self.pose[joint] = float(np.clip(angle, *self.limits[joint]))

    def _along(self, a: int, b: int) -> float:
        return float(self.data.xaxis[a] @ self.data.xaxis[b])

    def _parallel(self, a: int, b: int) -> bool:
        return abs(self._along(a, b)) > _PARALLEL

    def _last_joint(self, part: int) -> int | None:
        """The hinge of a moving part."""
        last = int(self.model.body_jntadr[part] + self.model.body_jntnum[part]) - 1
        return last if last in self.pose and self.model.jnt_type[last] == HINGE else None

    def _joint_above(self, joint: int) -> int | None:
        """The next hinge towards the base, if it is one of the robot's own."""
        if self.model.jnt_type[joint] != HINGE:
            return None
        body = int(self.model.body_parentid[self.model.jnt_bodyid[joint]])
        return self._last_joint(int(self.model.body_weldid[body]))


def branch_sizes(model: mujoco.MjModel, base: int) -> list[int]:
    """Number of joints on each branch that leaves the base and what is welded to it."""
    root = model.body_weldid[base]
    count: dict[int, int] = {}
    for joint in np.flatnonzero(np.isin(model.jnt_type, (HINGE, SLIDE))):
        body = int(model.jnt_bodyid[joint])
        while body and model.body_weldid[model.body_parentid[body]] != root:
            body = int(model.body_parentid[body])
        count[body] = count.get(body, 0) + 1
    return list(count.values())


def lowest_shapes(model: mujoco.MjModel, joints: list[int], low: dict[int, float]) -> dict[int, int]:
    """The lowest shape of each moving part (by its weld body) that carries no other: feet, hands, tools."""
    moving = {int(model.body_weldid[model.jnt_bodyid[joint]]) for joint in joints}
    carriers = {int(model.body_weldid[model.body_parentid[body]]) for body in moving}
    weld = model.body_weldid[model.geom_bodyid]
    named = [geom for geom in sorted(low, key=lambda geom: low[geom]) if model.geom(geom).name]
    found = {part: next((geom for geom in named if weld[geom] == part), None) for part in sorted(moving - carriers)}
    return {part: geom for part, geom in found.items() if geom is not None}


def find_feet(model: mujoco.MjModel, joints: list[int], low: dict[int, float]) -> list[int]:
    """The lowest shape of each last moving part that comes near the ground.

    low  height of the lowest point of every shape that can touch something
    """
    ground = min(low.values(), default=0.0)
    shapes = lowest_shapes(model, joints, low).values()
    return [geom for geom in shapes if low[geom] - ground < 0.02 + 0.15 * abs(ground)]


def in_order(data: mujoco.MjData, feet: list[int]) -> list[int]:
    """Four feet as front left, front right, rear left, rear right (x forward, y left); others as they are."""
    if len(feet) != 4:
        return feet
    by_x = sorted(feet, key=lambda foot: -float(data.geom_xpos[foot][0]))
    return [foot for pair in (by_x[:2], by_x[2:]) for foot in sorted(pair, key=lambda foot: -data.geom_xpos[foot][1])]


def ground_geoms(model: mujoco.MjModel, base: int, feet: list[int], low: dict[int, float]) -> list[int]:
    """The shapes of the base, and those of the parts with feet that reach as low as the foot itself.

    None without feet (then all are kept). Shins are left out: one that brushes the ground is no fall.
    """
    weld = model.body_weldid[model.geom_bodyid]
    reach = {int(weld[foot]): low[foot] + _SOLE_M for foot in feet}
    reach[int(model.body_weldid[base])] = np.inf
    return [geom for geom in low if feet and model.geom(geom).name and low[geom] < reach.get(int(weld[geom]), -np.inf)]


def stance_load(model: mujoco.MjModel, data: mujoco.MjData, feet: list[int]) -> FloatArray:
    """Torques (nv,) that hold the pose while the feet share the weight evenly: gravity - J^T f.

    Without feet those of a robot whose base is held.
    """
    load: FloatArray = data.qfrc_bias - data.qfrc_gravcomp
    jacobian = np.zeros((3, model.nv))
    share = float(model.body_mass.sum() * np.linalg.norm(model.opt.gravity)) / max(len(feet), 1)
    for foot in feet:
        point = lowest_place(model, data, foot)
        mujoco.mj_jac(model, data, jacobian, None, point, int(model.geom_bodyid[foot]))
        load -= share * jacobian[2]
    return load
