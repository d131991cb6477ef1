"""Chain: forward kinematics of an arm's tool from joint angles, without an engine.

A chain is a product of fixed offsets and turns about fixed axes,

    base_from_tool = prod_k  T(pos_k, quat_k) R(axis_k, q_k)  T(tool_pos, tool_quat),

so that the robot can observe the tool's error with the code that training used.
"""

from __future__ import annotations

from functools import lru_cache

import msgspec
import numpy as np
from numpy.typing import NDArray

from trueup.core.arrays import FloatArray

Vector3 = tuple[float, float, float]
Quat = tuple[float, float, float, float]
_NO_TURN = (1.0, 0.0, 0.0, 0.0)


class ChainLink(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Fixed offset from the link before, then a turn about `axis` by joint `joint`: a column of joint_pos, -1: none."""

    pos: Vector3
    quat: Quat
    axis: Vector3
    joint: int


class Chain(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Links from base to tool, and the tool in the frame of the last."""

    links: tuple[ChainLink, ...]
    tool_pos: Vector3
    tool_quat: Quat = _NO_TURN

    def tool_pose(self, joint_pos: NDArray[np.floating]) -> tuple[FloatArray, FloatArray]:
        """Return the tool's position (n, 3) and rotation matrix base_from_tool (n, 3, 3)."""
        count = len(joint_pos)
        position = np.zeros((count, 3))
        rotation = np.repeat(np.eye(3)[None], count, axis=0)
        for link in self.links:
            position += rotation @ np.array(link.pos)
            if link.quat != _NO_TURN:
                rotation = rotation @ _matrix(link.quat)
            if link.joint >= 0:
                fixed, cosine, sine = _turning(link.axis)
                angle = joint_pos[:, link.joint, None, None]
                rotation = rotation @ (fixed + np.cos(angle) * cosine + np.sin(angle) * sine)
        position += rotation @ np.array(self.tool_pos)
        return position, rotation if self.tool_quat == _NO_TURN else rotation @ _matrix(self.tool_quat)

    def tool_error(self, joint_pos: NDArray[np.floating], command: NDArray[np.floating]) -> FloatArray:
        """Command pose (n, 7) minus tool pose in the base frame: position and rotation vector, (n, 6)."""
        position, rotation = self.tool_pose(joint_pos)
        return np.concatenate([command[:, :3] - position, rotation_error(matrices(command[:, 3:7]), rotation)], axis=1)


def rotation_error(goal: FloatArray, now: FloatArray) -> FloatArray:
    """Rotation vector (n, 3), base frame, that turns `now` into `goal` (both (n, 3, 3)), at most pi long."""
    delta = goal @ now.swapaxes(1, 2)
    twice_sin = np.stack(
        [delta[:, 2, 1] - delta[:, 1, 2], delta[:, 0, 2] - delta[:, 2, 0], delta[:, 1, 0] - delta[:, 0, 1]], axis=1
    )
    sin = 0.5 * np.linalg.norm(twice_sin, axis=1)
    cos = 0.5 * (np.trace(delta, axis1=1, axis2=2) - 1.0)
    angle = np.arctan2(sin, cos)
    return twice_sin * (0.5 * angle / np.maximum(sin, 1e-9))[:, None]


def matrices(quat: NDArray[np.floating]) -> FloatArray:
    """Rotation matrices (n, 3, 3) of unit quaternions (n, 4) w x y z."""
    w, x, y, z = np.asarray(quat, np.float64).T
    return np.stack(
        [
            np.stack([1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)], axis=1),
            np.stack([2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)], axis=1),
            np.stack([2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)], axis=1),
        ],
        axis=1,
    )


@lru_cache(maxsize=256)
def _matrix(quat: Quat) -> FloatArray:
    return matrices(np.array([quat]))[0]


@lru_cache(maxsize=256)
def _turning(axis: Vector3) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Rodrigues' formula of a unit axis: the constant, cosine and sine parts."""
    x, y, z = axis
    cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    square = cross @ cross
    return np.eye(3) + square, -square, cross
