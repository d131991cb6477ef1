"""A default pose for a drafted spec: the file's keyframe if the robot stands in it, else legs that are bent evenly.

Without a usable keyframe every joint is at zero, or in the middle of its range where zero lies outside (a knee). Then
- a knee off zero turns the parallel joint above it half as far the other way, so that the foot stays below;
- a straight leg of a legged robot (two parallel hinges across the trunk, foot at full reach) gets its knee bent to the
  back, 1.5 rad between thigh and shin, and its foot below the hip: straight legs cannot push.
"""

from __future__ import annotations

from typing import NamedTuple

import mujoco
import numpy as np
from numpy.typing import NDArray

from trueup.robot.drafts.stance import HINGE, find_feet, last_parts
from trueup.robot.shapes import collision_geoms, lowest_place, lowest_point

Limits = dict[int, tuple[float, float]]
Pose = dict[int, float]
FloatArray = NDArray[np.float64]
_PARALLEL = 0.99  # cosine between axes
_STRAIGHT = 0.97  # of the leg's reach
_BEND = 1.5  # rad, between thigh and shin


class DraftedPose(NamedTuple):
    """Joint -> position, and why it is a guess (None: the file says so)."""

    joints: Pose
    guess: str | None


def draft_pose(model: mujoco.MjModel, base: int, limits: Limits, legged: bool) -> DraftedPose:
    """Choose the default pose of the joints in `limits`; `legged`: the robot is to stand on its last parts."""
    folded = _Folding(model, base, limits)
    folded.fold_evenly()
    if legged:
        folded.bend_straight_legs()
    key = _home(model)
    if key is None:
        return DraftedPose(folded.pose, "no keyframe: zero, or bent evenly")
    kept = {joint: float(np.clip(model.key_qpos[key, model.jnt_qposadr[joint]], *limits[joint])) for joint in limits}
    if legged and folded.feet_down(kept) < folded.feet_down(folded.pose):
        name = model.key(key).name
        return DraftedPose(folded.pose, f"keyframe {name!r} does not stand on all feet: bent evenly")
    return DraftedPose(kept, None)


def place(model: mujoco.MjModel, data: mujoco.MjData, base: int, pose: Pose) -> None:
    """Evaluate a pose with the base frame at the origin, upright (`model.body_pos` of the base is changed)."""
    model.body_pos[base], model.body_quat[base] = (0.0, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0)
    mujoco.mj_resetData(model, data)
    first = model.body_jntadr[base]
    if first >= 0 and model.jnt_type[first] == mujoco.mjtJoint.mjJNT_FREE:
        data.qpos[model.jnt_qposadr[first] :][:7] = (0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0)
    for joint, value in pose.items():
        data.qpos[model.jnt_qposadr[joint]] = value
    mujoco.mj_forward(model, data)


def _home(model: mujoco.MjModel) -> int | None:
    if not model.nkey:
        return None
    names = [model.key(key).name.lower() for key in range(model.nkey)]
    return names.index("home") if "home" in names else 0


class _Leg(NamedTuple):
    """A straight leg: its two parallel hinges and its lowest shape."""

    hip: int
    knee: int
    foot: int


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
            if angle == 0.0 or above is None or self.pose[above] != 0.0:
                continue
            along = self._along(joint, above)
            if abs(along) > _PARALLEL:
                self._turn(above, -angle * along / 2)

    def bend_straight_legs(self) -> None:
        """Bend the knee of every leg that is at full reach below the base."""
        place(self.model, self.data, self.base, self.pose)
        for leg in self._straight_legs():
            self._bend(leg)

    def _swing_joint(self, part: int) -> int | None:
        """The upper of the two parallel joints that swing a leg forward."""
        knee = self._last_joint(part)
        hip = None if knee is None else self._joint_above(knee)
        if knee is None or hip is None or abs(self._along(knee, hip)) < _PARALLEL:
            return None
        return hip if abs(float(self.data.xaxis[hip][1])) > 0.9 else None

    def _straight_legs(self) -> list[_Leg]:
        legs = []
        for part, foot in self._feet().items():
            knee, hip = self._last_joint(part), self._swing_joint(part)
            if knee is None or hip is None:
                continue
            above = self._joint_above(hip)  # three parallel joints are another kind of leg, with an ankle
            ankle = above is not None and abs(self._along(hip, above)) > _PARALLEL
            if not ankle and self._straight(hip, knee, foot):
                legs.append(_Leg(hip, knee, foot))
        return legs

    def _bend(self, leg: _Leg) -> None:
        """Turn the knee about y so that it points to the back, and the hip so that the foot is below."""
        shank = self._end(leg.foot) - self.data.xanchor[leg.knee]
        thigh = self.data.xanchor[leg.knee] - self.data.xanchor[leg.hip]
        bent = np.arctan2(-shank[0], -shank[2]) - np.arctan2(-thigh[0], -thigh[2])  # already, about y
        turn = -_BEND - bent
        x = thigh[0] + np.cos(turn) * shank[0] + np.sin(turn) * shank[2]
        z = thigh[2] - np.sin(turn) * shank[0] + np.cos(turn) * shank[2]
        lean = -np.arctan2(-x, -z)  # turning by `lean` about y brings (x, z) below
        self._turn(leg.knee, np.sign(self.data.xaxis[leg.knee][1]) * turn)
        self._turn(leg.hip, np.sign(self.data.xaxis[leg.hip][1]) * lean)

    def feet_down(self, pose: Pose) -> int:
        """Number of last parts that carry the robot in a pose."""
        place(self.model, self.data, self.base, pose)
        low = {geom: lowest_point(self.model, self.data, geom) for geom in collision_geoms(self.model)}
        return len(find_feet(self.model, list(self.limits), low))

    def _feet(self) -> dict[int, int]:
        """The lowest shape of each last part."""
        solid = collision_geoms(self.model)
        weld = self.model.body_weldid[self.model.geom_bodyid]
        out = {}
        for part in last_parts(self.model, list(self.limits)):
            shapes = [geom for geom in solid if weld[geom] == part]
            if shapes:
                out[part] = min(shapes, key=lambda geom: lowest_point(self.model, self.data, geom))
        return out

    def _straight(self, hip: int, knee: int, foot: int) -> bool:
        upper, lower, end = self.data.xanchor[hip], self.data.xanchor[knee], self._end(foot)
        plane: FloatArray = np.eye(3) - np.outer(self.data.xaxis[hip], self.data.xaxis[hip])
        thigh, shank, leg = (np.linalg.norm(plane @ line) for line in (lower - upper, end - lower, end - upper))
        below = upper[2] - end[2] > 0.8 * leg
        return bool(below and min(thigh, shank) > 0.2 * leg and leg > _STRAIGHT * (thigh + shank))

    def _end(self, foot: int) -> FloatArray:
        """Where a foot ends: the middle of a ball, the lowest point of anything else."""
        if self.model.geom_type[foot] == mujoco.mjtGeom.mjGEOM_SPHERE:
            return np.asarray(self.data.geom_xpos[foot])
        return lowest_place(self.model, self.data, foot)

    def _turn(self, joint: int, angle: float) -> None:
        self.pose[joint] = float(np.clip(angle, *self.limits[joint]))

    def _along(self, a: int, b: int) -> float:
        return float(self.data.xaxis[a] @ self.data.xaxis[b])

    def _last_joint(self, part: int) -> int | None:
        """The hinge of a moving part."""
        first, count = int(self.model.body_jntadr[part]), int(self.model.body_jntnum[part])
        last = first + count - 1
        return last if count and last in self.pose and self.model.jnt_type[last] == HINGE else None

    def _joint_above(self, joint: int) -> int | None:
        """The next hinge towards the base, if it is one of the robot's own."""
        if self.model.jnt_type[joint] != HINGE:
            return None
        body = int(self.model.body_parentid[self.model.jnt_bodyid[joint]])
        while body:
            if self.model.body_jntnum[body]:
                return self._last_joint(body)
            body = int(self.model.body_parentid[body])
        return None
