"""Motions spoilt in ways that files are, and the finding that `trueup motion check` should make of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from trueup.motion.bodies import complete
from trueup.motion.motion import Motion
from trueup.robot.load import Robot

Spoil = Callable[[Motion, Robot], Motion]


def _rooted(motion: Motion, robot: Robot, pos: np.ndarray) -> Motion:
    return complete(replace(motion, root_pos=pos), robot)


def jump(motion: Motion, robot: Robot) -> Motion:
    joints = motion.joint_pos.copy()
    joints[len(joints) // 2] += 0.8
    return complete(replace(motion, joint_pos=joints), robot)


def other_first_row(motion: Motion, robot: Robot) -> Motion:
    joints, pos = motion.joint_pos.copy(), motion.root_pos.copy()
    joints[0], pos[0] = 0.0, pos[0] + np.array([0.5, 0.0, 0.0])
    return complete(replace(motion, joint_pos=joints, root_pos=pos), robot)


def sunk(motion: Motion, robot: Robot) -> Motion:
    return _rooted(motion, robot, motion.root_pos - np.array([0.0, 0.0, 0.06]))


def floating(motion: Motion, robot: Robot) -> Motion:
    return _rooted(motion, robot, motion.root_pos + np.array([0.0, 0.0, 0.15]))


def sliding(motion: Motion, robot: Robot) -> Motion:
    time = np.arange(len(motion))[:, None] / motion.rate_hz
    return _rooted(motion, robot, motion.root_pos + 0.2 * time * np.array([1.0, 0.0, 0.0]))


def wrong_quaternions(motion: Motion, robot: Robot) -> Motion:
    return complete(replace(motion, root_quat=motion.root_quat[:, [1, 2, 3, 0]]), robot)


def long_quaternions(motion: Motion, robot: Robot) -> Motion:
    return complete(replace(motion, root_quat=1.1 * motion.root_quat), robot)


def beyond_limits(motion: Motion, robot: Robot) -> Motion:
    joints = motion.joint_pos.copy()
    knee = robot.spec.joint_names.index("left_knee_joint")
    joints[:, knee] -= np.ptp(joints[:, knee]) + 0.5
    return complete(replace(motion, joint_pos=joints), robot)


def too_fast(motion: Motion, robot: Robot) -> Motion:
    return replace(motion, rate_hz=8.0 * motion.rate_hz)


def tilted(motion: Motion, robot: Robot) -> Motion:
    joints = motion.joint_pos.copy()
    for k, name in enumerate(robot.spec.joint_names):
        if "ankle_pitch" in name:
            joints[:, k] += 0.25
    return complete(replace(motion, joint_pos=joints), robot)


CASES: dict[str, tuple[Spoil, str]] = {
    "one row that jumps": (jump, "jump"),
    "a first row of another pose": (other_first_row, "jump"),
    "6 cm lower": (sunk, "penetration"),
    "15 cm higher": (floating, "floating"),
    "drifting at 20 cm/s": (sliding, "skate"),
    "quaternions in the wrong order": (wrong_quaternions, "quaternion_order"),
    "quaternions of length 1.1": (long_quaternions, "quaternion_norm"),
    "a knee bent backwards": (beyond_limits, "limits"),
    "eight times as fast": (too_fast, "speed"),
    "ankles 14 degrees off": (tilted, "tilted_feet"),
}
