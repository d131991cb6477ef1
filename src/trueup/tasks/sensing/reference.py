"""Reference-motion observations: those of imported tracking policies (BeyondMimic style), and all on a robot.

    reference           joint positions of the row that is asked for, then speeds, in the policy's joint order
    reference_rotation  orientation of the reference's anchor in the robot's anchor: R00 R01 R10 R11 R20 R21
    reference_turn      the same of the base, for policies of our own (`sensing.tracking`)

The anchor is a body above the base (a humanoid's torso), so that a robot computes it from its IMU and its waist.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from trueup.motion.rotations import conjugate, multiply
from trueup.policy.action import JointOrder
from trueup.tasks.sensing.signals import Rows, Signal, Values
from trueup.tasks.sensing.tracking import base_turn, two_columns

if TYPE_CHECKING:
    from trueup.tasks.goals.tracking import Tracking
    from trueup.tasks.sensing.frame import Sense

Floats = NDArray[np.floating]
REFERENCE, ROTATION, TURN = "reference", "reference_rotation", "reference_turn"


def reference_joints(goal: Tracking, order: JointOrder, ids: Rows = None) -> Values:
    """(n, 2 njoint) in the policy's joint order."""
    at = goal.at if ids is None else goal.at[ids]
    ref = goal.reference
    return np.concatenate([order.to_policy(ref.joint_pos[at]), order.to_policy(ref.joint_vel[at])], axis=1)


def reference_rotation(goal: Tracking, base_quat: Floats, joint_pos: Floats, ids: Rows = None) -> Values:
    """(n, 6) of robots whose base is turned by `base_quat` (n, 4) and whose joints, in the robot's order, are known."""
    at = goal.at if ids is None else goal.at[ids]
    quat, joints = base_quat.astype(np.float32), joint_pos.astype(np.float32)
    anchor = goal.anchor
    own = goal.tree.place(np.zeros((len(quat), 3), np.float32), quat, joints).quat[:, anchor]
    turn = multiply(conjugate(own), goal.reference.anchor_quat[at])
    return two_columns(turn)


def follower(goal: Tracking, order: JointOrder) -> Callable[[Floats, Floats], dict[str, Values]]:
    """All from what a robot measures: IMU quaternions (n, 4) and joints (n, njoint), `order` the policy's."""

    def follow(imu_quat: Floats, joint_pos: Floats) -> dict[str, Values]:
        rotation = reference_rotation(goal, imu_quat, joint_pos)
        turn = base_turn(goal.reference.root_quat[goal.at], imu_quat.astype(np.float32))
        return {REFERENCE: reference_joints(goal, order), ROTATION: rotation, TURN: turn}

    return follow


def reference_signals(order: JointOrder) -> dict[str, Signal]:
    """Both, for a policy's joint order; as the simulation's true state has them."""

    def joints(sense: Sense, ids: Rows) -> Values:
        return reference_joints(sense.goal, order, ids)

    def rotation(sense: Sense, ids: Rows) -> Values:
        motion = sense.sim.motion.of(ids)
        assert motion.base_pose is not None
        return reference_rotation(sense.goal, motion.base_pose[:, 3:], motion.joint_pos, ids)

    return {REFERENCE: Signal(joints, "rad, rad/s"), ROTATION: Signal(rotation, "1")}
