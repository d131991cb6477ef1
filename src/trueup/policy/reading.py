"""Reading: sensor readings at one instant, for one robot or many; History: the last few instants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Float32 = NDArray[np.float32]
FloatArray = NDArray[np.floating]


@dataclass(frozen=True, kw_only=True, slots=True)
class Reading:
    """One instant of n robots, (n, ...) each, joints in the policy's order.

    joint_pos, joint_vel  rad, rad/s as the encoders report them
    gyro      (n, 3) rad/s in the IMU frame; None on a robot without IMU
    gravity   (n, 3) unit vector of gravity in the IMU frame
    others    (n, k) by name: further signals that a policy observes: a map of heights, an object's pose, a reference
              motion
    """

    joint_pos: FloatArray
    joint_vel: FloatArray
    gyro: FloatArray | None = None
    gravity: FloatArray | None = None
    others: Mapping[str, FloatArray] = field(default_factory=dict)


def gravity_in_body(quat: NDArray[np.float64]) -> NDArray[np.float64]:
    """Direction of gravity in the body frame, (n, 3), from world_from_body quaternions (n, 4) w x y z."""
    w, x, y, z = np.ascontiguousarray(quat.T)
    down = np.empty((len(x), 3))
    down[:, 0] = -2 * (x * z - w * y)
    down[:, 1] = -2 * (y * z + w * x)
    down[:, 2] = -(1 - 2 * (x * x + y * y))
    return down


class History:
    """Keeps `length` frames of `width` numbers for `nrow` rows, oldest first."""

    def __init__(self, nrow: int, length: int, width: int) -> None:
        self.frames: Float32 = np.zeros((nrow, length, width), np.float32)

    def fill(self, frame: Float32, ids: NDArray[np.intp] | None = None) -> Float32:
        """Make `frame` (rows, width) the whole past of rows `ids`; return their stacked frames."""
        rows = slice(None) if ids is None else ids
        self.frames[rows] = frame[:, None, :]
        return np.tile(frame, self.frames.shape[1])

    def push(self, frame: Float32) -> Float32:
        """Append a frame of all rows; return (nrow, length width)."""
        if self.frames.shape[1] == 1:
            self.frames[:, 0] = frame
            return frame
        stacked = np.empty_like(self.frames)
        stacked[:, :-1] = self.frames[:, 1:]
        stacked[:, -1] = frame
        self.frames[:] = stacked  # moved within, they would be copied first: the two places overlap
        return stacked.reshape(len(stacked), -1)
