"""Motions of a humanoid: squat, arm raise, side step, walk, turn, kick, jump.

A plan says where the feet are, which support carries the weight, how high the base is and what the arms do. The centre
of mass follows by the linear inverted pendulum, the base by the centre of mass, the legs by inverse kinematics.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from trueup.core.arrays import FloatArray
from trueup.motion.bodies import BodyTree
from trueup.motion.made.ease import GRAVITY, balanced, bump, ease
from trueup.motion.made.legs import Legs
from trueup.motion.motion import Motion
from trueup.motion.rotations import about_axis, about_z, multiply, rotate
from trueup.robot.load import Robot

RATE_HZ = 50.0
STAND_S = 0.6
_LOWER_M = 0.03  # knees a little bent, so that legs reach


@dataclass
class StepPlan:
    """T rows: feet (T, 2, 3) relative to their places when standing, their headings (T, 2), the share of the weight on
    the left one (T,), height and lean of the base, and joint offsets by a part of their name."""

    time: FloatArray
    feet: FloatArray
    heading: FloatArray
    left: FloatArray
    rise: FloatArray
    lean: FloatArray
    joints: dict[str, FloatArray] = field(default_factory=dict)


def _standing(seconds: float) -> StepPlan:
    time = np.arange(round(seconds * RATE_HZ) + 1) / RATE_HZ
    n = len(time)
    return StepPlan(time, np.zeros((n, 2, 3)), np.zeros((n, 2)), np.full(n, 0.5), np.zeros(n), np.zeros(n))


def squat() -> StepPlan:
    """Down by 0.2 m and up again, twice, arms forward."""
    plan = _standing(5.2)
    first, second = (ease(plan.time, a, a + 0.9) - ease(plan.time, a + 1.1, a + 2.0) for a in (0.5, 2.7))
    down = first + second
    plan.rise, plan.lean = -0.20 * down, 0.15 * down
    plan.joints = {"shoulder_pitch": -0.9 * down, "elbow": -0.3 * down}
    return plan


def arm_raise() -> StepPlan:
    """Both arms to the sides and up, then forward, and down."""
    plan = _standing(5.0)
    side = ease(plan.time, 0.5, 1.6) - ease(plan.time, 2.0, 2.8)
    ahead = ease(plan.time, 2.4, 3.3) - ease(plan.time, 3.6, 4.5)
    plan.joints = {
        "left_shoulder_roll": 1.3 * side,
        "right_shoulder_roll": -1.3 * side,
        "shoulder_pitch": -1.5 * ahead,
        "elbow": -0.6 * np.maximum(side, ahead),
    }
    return plan


Step = tuple[int, float, float, float]  # foot, forward, sideways (m), heading (rad): from where both stand at first


def stepping(steps: list[Step], swing_s: float, shift_s: float, height_m: float) -> StepPlan:
    """Feet go one after the other to places relative to their own first ones; the weight is on the other foot."""
    total = 2 * STAND_S + len(steps) * (swing_s + shift_s) + 2 * shift_s
    plan = _standing(total)
    plan.rise = -_LOWER_M * (ease(plan.time, 0.1, STAND_S) - ease(plan.time, total - STAND_S, total - 0.1))
    at = np.zeros((2, 3))
    now, weight = STAND_S, 0.5
    for foot, forward, sideways, heading in steps:
        wanted = float(foot == 1)  # of the left foot: all of it while the right one swings
        plan.left += (wanted - weight) * ease(plan.time, now, now + shift_s)
        now, weight = now + shift_s, wanted
        going = ease(plan.time, now, now + swing_s)
        for axis, value in enumerate((forward, sideways)):
            plan.feet[:, foot, axis] += (value - at[foot, axis]) * going
        plan.heading[:, foot] += (heading - at[foot, 2]) * going
        plan.feet[:, foot, 2] += height_m * bump(plan.time, now, now + swing_s)
        at[foot] = forward, sideways, heading
        now += swing_s
    plan.left += (0.5 - weight) * ease(plan.time, now, now + 2 * shift_s)
    return plan


def walk() -> StepPlan:
    """Ten steps forward, 0.18 m at a time, and to a stand."""
    ahead = [0.09, 0.27, 0.45, 0.63, 0.81, 0.99, 1.17, 1.35, 1.53, 1.53]
    plan = stepping([(k % 2, x, 0.0, 0.0) for k, x in enumerate(ahead)], 0.36, 0.12, 0.06)
    swing = plan.feet[:, 1, 0] - plan.feet[:, 0, 0]
    plan.joints = {"left_shoulder_pitch": -0.8 * swing, "right_shoulder_pitch": 0.8 * swing}
    return plan


def side_step() -> StepPlan:
    """Two steps of 8 cm to the left, feet together after each, and two back."""
    places = [(0, 0.08), (1, 0.08), (0, 0.16), (1, 0.16), (1, 0.08), (0, 0.08), (1, 0.0), (0, 0.0)]
    return stepping([(foot, 0.0, y, 0.0) for foot, y in places], 0.4, 0.2, 0.05)


def turn() -> StepPlan:
    """A quarter turn to the left on the spot, in steps of 0.26 rad."""
    half = np.pi / 2
    headings = [min(0.26 * (k // 2 + 1), half) for k in range(12)]
    return stepping([(k % 2, 0.0, 0.0, float(a)) for k, a in enumerate(headings)], 0.36, 0.16, 0.05)


def kick() -> StepPlan:
    """Weight on the left foot; the right one swings back, forward and up, and returns."""
    plan = _standing(5.0)
    plan.rise = -_LOWER_M * (ease(plan.time, 0.2, 1.0) - ease(plan.time, 3.9, 4.7))
    plan.left += 0.5 * (ease(plan.time, 0.5, 1.3) - ease(plan.time, 3.4, 4.2))
    back = ease(plan.time, 1.4, 2.0) - ease(plan.time, 2.0, 2.4)
    front = ease(plan.time, 2.1, 2.5) - ease(plan.time, 2.6, 3.3)
    lifted = ease(plan.time, 1.3, 1.8) - ease(plan.time, 2.7, 3.4)
    plan.feet[:, 1, 0] = -0.06 * back + 0.24 * front
    plan.feet[:, 1, 1] = 0.05 * lifted  # below the hip: the ankle rolls by 0.26 rad at most
    plan.feet[:, 1, 2] = 0.06 * lifted + 0.12 * front
    plan.joints = {"left_shoulder_pitch": -0.5 * front, "right_shoulder_pitch": 0.5 * front}
    return plan


def jump() -> StepPlan:
    """Crouch, push off, 7 cm of flight, land and rise."""
    plan, height, depth = _standing(3.4), 0.07, 0.16
    speed = np.sqrt(2.0 * GRAVITY * height)
    push, flight = 2.0 * depth / speed, 2.0 * speed / GRAVITY
    off = 1.1 + push  # crouch from 0.4 to 1.0
    land = off + flight
    t = plan.time
    low = -depth * ease(t, 0.4, 1.0)
    thrust = np.where((t > off - push) & (t <= off), -depth + depth * ((t - off + push) / push) ** 2, low)
    air = np.where((t > off) & (t <= land), speed * (t - off) - 0.5 * GRAVITY * (t - off) ** 2, thrust)
    caught = -depth + depth * (1.0 - (t - land) / push) ** 2
    soft = np.where((t > land) & (t <= land + push), caught, air)
    plan.rise = np.where(t > land + push, -depth + depth * ease(t, land + push + 0.1, land + push + 0.9), soft)
    is_air = (t > off) & (t <= land)
    plan.feet[:, :, 2] = np.where(is_air, np.maximum(plan.rise, 0.0), 0.0)[:, None]
    plan.joints = {"shoulder_pitch": 0.5 * bump(t, 0.4, off) - 0.5 * bump(t, off - push, land + push)}
    return plan


PLANS: Mapping[str, Callable[[], StepPlan]] = {
    "squat": squat,
    "arm_raise": arm_raise,
    "side_step": side_step,
    "walk": walk,
    "turn": turn,
    "kick": kick,
    "jump": jump,
}


def humanoid_motion(name: str, robot: Robot) -> Motion:
    """One of PLANS as a motion of a robot with two flat feet, left first."""
    return plan_motion(PLANS[name](), name, robot)


def plan_motion(plan: StepPlan, name: str, robot: Robot) -> Motion:
    """A plan as a motion of a robot with two flat feet, left first."""
    tree = BodyTree(robot)
    legs, spec, rows = Legs(tree, flat=True), robot.spec, len(plan.time)
    joints = np.tile(spec.default_pose, (rows, 1))
    for word, offset in plan.joints.items():
        for k, joint in enumerate(spec.joint_names):
            if word in joint:
                joints[:, k] = np.clip(joints[:, k] + offset, spec.position_low[k], spec.position_high[k])
    stand = np.array([[0.0, 0.0, spec.base.stand_height]])
    at_rest = tree.place(stand, np.array([[1.0, 0, 0, 0]]), spec.default_pose[None])
    places, _ = legs.feet(at_rest)
    heading = plan.heading.mean(axis=1)
    middle = plan.feet[:, :, :2].mean(axis=1)
    feet = plan.feet + rotate(about_z(heading)[:, None].repeat(2, 1), np.tile(places[0], (rows, 1, 1)))
    soles = np.stack([points[:, :2].mean(axis=0) for points in tree.points(at_rest)[0]])
    under = feet[..., :2] + rotate(about_z(plan.heading), _flat(soles - places[0, :, :2], rows))[..., :2]
    share = np.stack([plan.left, 1.0 - plan.left], axis=1)[..., None]
    support = (share * under).sum(axis=1)
    wanted = balanced(support, float(tree.centre(at_rest)[0, 2]), RATE_HZ)
    root_pos = np.concatenate([middle, (spec.base.stand_height + plan.rise)[:, None]], axis=1)
    root_quat = multiply(about_z(heading), about_axis(np.array([0.0, 1.0, 0.0]), plan.lean))
    for _ in range(6):
        joints = legs.reach((root_pos, root_quat), joints, feet, about_z(plan.heading), exactly=False)
        centre = tree.centre(tree.place(root_pos, root_quat, joints))
        root_pos[:, :2] += wanted - centre[:, :2]
    joints = legs.reach((root_pos, root_quat), joints, feet, about_z(plan.heading))
    return legs.motion(name, RATE_HZ, (root_pos, root_quat), joints)


def _flat(offsets: FloatArray, rows: int) -> FloatArray:
    """Offsets (2, 2) in the ground plane as vectors (T, 2, 3)."""
    return np.tile(np.concatenate([offsets, np.zeros((2, 1))], axis=1), (rows, 1, 1))
