"""Signals of a tracking task: bodies as they are, and how far they are from the reference that is asked for.

Rewards read the gaps; `reference_turn` and `reference_ahead` are for observations, which are built after the goal has
gone on: nothing that rewards read may stand there, or it would be a step old.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from trueup.motion.rotations import about_z, angle_between, conjugate, multiply, rotate, yaw_of
from trueup.tasks.sensing.signals import Rows, Signal, Values

if TYPE_CHECKING:
    from trueup.tasks.goals.tracking import Tracking
    from trueup.tasks.sensing.frame import Sense


def body_state(sense: Sense, ids: Rows) -> Values:
    """Position, quaternion, velocity and spin of the tracked bodies, (n, nbody, 13), world frame."""
    goal, motion = _goal(sense), sense.sim.motion.of(ids)
    assert motion.base_pose is not None
    assert motion.base_vel is not None
    pose, velocity = motion.base_pose.astype(np.float32), motion.base_vel.astype(np.float32)
    spin = rotate(pose[:, 3:], velocity[:, 3:])
    joints, speeds = motion.joint_pos.astype(np.float32), motion.joint_vel.astype(np.float32)
    bodies = goal.tree.place(pose[:, :3], pose[:, 3:], joints, (velocity[:, :3], spin, speeds))
    assert bodies.vel is not None
    assert bodies.spin is not None
    parts = (bodies.pos, bodies.quat, bodies.vel, bodies.spin)
    return np.concatenate([part[:, goal.tracked] for part in parts], axis=2)


def body_gap(sense: Sense, ids: Rows) -> Values:
    """Position minus reference, (n, nbody, 3), world frame."""
    return _state(sense, ids)[..., :3] - _goal(sense).reference.pos[_asked(sense, ids)]


def body_gap_near(sense: Sense, ids: Rows) -> Values:
    """Position minus a reference that stands where the robot does, (n, nbody, 3), world frame.

    The reference is moved to the robot's base along the ground and turned to its heading (BeyondMimic, arXiv
    2508.08241): without a sensor of its place a policy cannot take back how far it has drifted, and must not be paid
    less for what it does afterwards.
    """
    state, ref, asked = _state(sense, ids), _goal(sense).reference, _asked(sense, ids)
    turn = about_z(yaw_of(multiply(state[:, 0, 3:7], conjugate(ref.root_quat[asked]))))
    about = ref.pos[asked] - ref.root_pos[asked][:, None]
    moved = rotate(np.repeat(turn[:, None], about.shape[1], axis=1), about)
    moved[..., :2] += state[:, :1, :2]
    moved[..., 2] += ref.root_pos[asked][:, None, 2]
    return state[..., :3] - moved


def body_turn(sense: Sense, ids: Rows) -> Values:
    """Angle between each body and its reference, (n, nbody)."""
    quat = _goal(sense).reference.quat[_asked(sense, ids)]
    return angle_between(_state(sense, ids)[..., 3:7], quat)


def body_vel_gap(sense: Sense, ids: Rows) -> Values:
    """Velocity minus reference, (n, nbody, 3)."""
    return _state(sense, ids)[..., 7:10] - _goal(sense).reference.vel[_asked(sense, ids)]


def body_spin_gap(sense: Sense, ids: Rows) -> Values:
    """Spin minus reference, (n, nbody, 3)."""
    return _state(sense, ids)[..., 10:13] - _goal(sense).reference.spin[_asked(sense, ids)]


def joint_gap(sense: Sense, ids: Rows) -> Values:
    """Joint positions minus the reference's, (n, njoint)."""
    joints: Values = sense.sim.motion.of(ids).joint_pos.astype(np.float32)
    return joints - _goal(sense).reference.joint_pos[_asked(sense, ids)]


def joint_vel_gap(sense: Sense, ids: Rows) -> Values:
    """Joint speeds minus the reference's, (n, njoint)."""
    speeds: Values = sense.sim.motion.of(ids).joint_vel.astype(np.float32)
    return speeds - _goal(sense).reference.joint_vel[_asked(sense, ids)]


def tracking_limit(sense: Sense, ids: Rows) -> Values:
    """Furthest that a body may be from the reference now, (n,)."""
    rows = sense.sim.nsim if ids is None else len(ids)
    return np.repeat(_goal(sense).limit, rows)


def reference_turn(sense: Sense, ids: Rows) -> Values:
    """Orientation of the reference's base in the robot's: R00 R01 R10 R11 R20 R21, (n, 6)."""
    goal = _goal(sense)
    return base_turn(goal.reference.root_quat[_asked(sense, ids)], _state(sense, ids)[:, 0, 3:7])


def base_turn(wanted: Values, own: Values) -> Values:
    """Orientation of a base that is wanted, in the robot's own base, (n, 6)."""
    return two_columns(multiply(conjugate(own), wanted))


def two_columns(turn: Values) -> Values:
    """The first two columns of rotation matrices, row by row, (n, 6)."""
    x = rotate(turn, np.tile(np.array([1, 0, 0], np.float32), (len(turn), 1)))
    y = rotate(turn, np.tile(np.array([0, 1, 0], np.float32), (len(turn), 1)))
    return np.stack([x, y], axis=2).reshape(len(turn), 6)


def reference_ahead(sense: Sense, ids: Rows) -> Values:
    """Where the reference's bodies are from the robot's, in the robot's base frame, (n, nbody, 3)."""
    state = _state(sense, ids)
    gap = _goal(sense).reference.pos[_asked(sense, ids)] - state[..., :3]
    return rotate(np.repeat(conjugate(state[:, :1, 3:7]), state.shape[1], axis=1), gap)


TRACKING_SIGNALS = {
    "body_state": Signal(body_state, "m, 1, m/s, rad/s"),
    "body_gap": Signal(body_gap, "m"),
    "body_gap_near": Signal(body_gap_near, "m"),
    "body_turn": Signal(body_turn, "rad"),
    "body_vel_gap": Signal(body_vel_gap, "m/s"),
    "body_spin_gap": Signal(body_spin_gap, "rad/s"),
    "joint_gap": Signal(joint_gap, "rad"),
    "joint_vel_gap": Signal(joint_vel_gap, "rad/s"),
    "tracking_limit": Signal(tracking_limit, "m"),
    "reference_turn": Signal(reference_turn, "1", "turn"),
    "reference_ahead": Signal(reference_ahead, "m", "bodies"),
}


def _goal(sense: Sense) -> Tracking:
    goal: Tracking = sense.goal
    return goal


def _asked(sense: Sense, ids: Rows) -> Values:
    at = _goal(sense).at
    return at if ids is None else at[ids]


def _state(sense: Sense, ids: Rows) -> Values:
    """The bodies of rows; those kept in the frame are brought up to date before what is computed from them."""
    state: Values = sense.frame.body_state
    return state if ids is None else state[ids]
