"""The driver interface: connect, read, write, damp, close. `write` returns the command that was really sent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, Self, TypeVar

import numpy as np

from trueup.core.arrays import FloatArray
from trueup.core.errors import TrueupError

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class RobotState:
    """One report of the robot, arrays in spec joint order.

    time_s  the robot's own clock at which the joints were measured; `sequence` rises by one per report
    torque  estimated by the motor drivers (N m)
    imu_*   None on a robot without IMU; quaternion w x y z, world_from_imu
    """

    sequence: int
    time_s: float
    joint_pos: FloatArray
    joint_vel: FloatArray
    joint_torque: FloatArray
    joint_temperature: FloatArray
    voltage: float
    imu_quat: FloatArray | None = None
    imu_gyro: FloatArray | None = None
    imu_acc: FloatArray | None = None


@dataclass(frozen=True, kw_only=True)
class Command:
    """One command to the joint servos: tau = kp (target_pos - q) + kd (target_vel - dq) + torque."""

    target_pos: FloatArray
    target_vel: FloatArray
    kp: FloatArray
    kd: FloatArray
    torque: FloatArray

    def rows(self, njoint: int) -> FloatArray:
        """As (5, njoint) numbers; NaN is let through: refusing it is the guard's job."""
        for name, values in vars(self).items():
            if np.shape(values) != (njoint,):
                raise TrueupError(f"{name} takes {njoint} numbers, found shape {np.shape(values)}", place=name)
        try:
            return np.array(list(vars(self).values()), np.float64)
        except (ValueError, TypeError):
            raise TrueupError("a command is made of numbers") from None

    def finite_rows(self, joint_names: tuple[str, ...]) -> FloatArray:
        """The same; numbers that are not finite are refused."""
        rows = self.rows(len(joint_names))
        if not np.isfinite(rows).all():
            row, joint = np.argwhere(~np.isfinite(rows))[0]
            name = list(vars(self))[row]
            raise TrueupError(f"{name} of joint {joint_names[joint]!r} is not finite: nothing was sent", place=name)
        return rows


def damping(pose: FloatArray, kd: FloatArray) -> Command:
    """The damping command: no stiffness, joints move against kd alone."""
    zero = np.zeros(len(kd))
    return Command(target_pos=pose, target_vel=zero, kp=zero, kd=kd, torque=zero)


def connected(link: T | None) -> T:
    """The driver's open connection; an error before `connect` and after `close`."""
    if link is None:
        raise TrueupError("this driver is not connected: call connect() first")
    return link


class ConnectedWithin:
    """`with driver:` connects and closes it."""

    def connect(self) -> None:
        """Reach the robot."""
        raise NotImplementedError

    def close(self) -> None:
        """Damp and let go."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        self.connect()
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


class Driver(Protocol):
    """A robot that can be commanded. Every method raises TrueupError when the robot does not answer."""

    joint_names: tuple[str, ...]
    realtime: bool  # False: lock-step, time passes only with `write`

    def connect(self) -> None:
        """Reach the robot; nothing moves."""

    def read(self) -> RobotState:
        """Return the newest state, waiting for one if none has come since the last call."""

    def write(self, command: Command) -> Command:
        """Send a command; return what was really sent (after the driver's own limits)."""

    def damp(self) -> Command:
        """Send damping, the safe state; returns the command sent."""

    def close(self) -> None:
        """Damp and let go. Safe to call twice."""
