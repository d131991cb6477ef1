"""JointState and Imu messages as numbers in the robot's own joint order. Pure: messages in, arrays out.

Joints are matched by name in any order; other joints are ignored, a missing joint of ours is refused.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trueup.core.arrays import FloatArray
from trueup.core.errors import TrueupError, did_you_mean
from trueup.hardware.drivers.ros2.options import Ros2Cfg

MOST_JOINTS = 4096


class Joints(NamedTuple):
    """One JointState in spec order: seconds, rad, rad/s, N m (NaN where the robot measures no effort)."""

    time_s: float
    position: FloatArray
    velocity: FloatArray
    effort: FloatArray


class NameOrder:
    """Finds our joints among the names of a message; the answer for the last list of names is kept."""

    def __init__(self, joint_names: tuple[str, ...], topic: str) -> None:
        self._ours, self._topic = joint_names, topic
        self._names: list[str] | None = None
        self._order: NDArray[np.intp] | None = None

    def find(self, names: Sequence[str]) -> NDArray[np.intp] | None:
        """Place of each of our joints among `names`, None when the message is about other joints only."""
        if names != self._names:
            self._order = self._search(names)
            self._names = list(names)
        return self._order

    def _search(self, names: Sequence[str]) -> NDArray[np.intp] | None:
        if len(names) > MOST_JOINTS:
            raise TrueupError(f"a message names {len(names)} joints, at most {MOST_JOINTS} are read", place=self._topic)
        places = {name: k for k, name in enumerate(names)}
        there = [name for name in self._ours if name in places]
        if not there:
            return None
        if len(places) < len(names):
            twice = next(name for name in names if list(names).count(name) > 1)
            raise TrueupError(f"a message names joint {twice!r} twice", place=self._topic)
        absent = [name for name in self._ours if name not in places]
        if absent:
            known = [name for name in names if name not in self._ours]
            found = f"a message has {len(there)} of {len(self._ours)} joints: {', '.join(absent)} missing"
            raise TrueupError(f"{found}{did_you_mean(absent[0], known)}", place=self._topic)
        return np.array([places[name] for name in self._ours], np.intp)


class StateReader:
    """Turns JointState messages into `Joints`."""

    def __init__(self, joint_names: tuple[str, ...], cfg: Ros2Cfg) -> None:
        self._cfg, self._joint_names = cfg, joint_names
        self._order = NameOrder(joint_names, cfg.state)
        self._last: tuple[float, FloatArray] | None = None

    def read(self, message: Any, arrived_s: float) -> Joints | None:
        """The state in a message received at `arrived_s`; None if it has none of our joints."""
        order = self._order.find(message.name)
        if order is None:
            return None
        time_s = arrived_s if self._cfg.clock == "arrival" else self._stamp(message.header.stamp)
        position = self._column(message.position, "position", message.name, order)
        velocity = self._velocity(message, order, time_s, position)
        blank = np.full(len(order), math.nan)
        effort = self._column(message.effort, "effort", message.name, order) if message.effort else blank
        return Joints(time_s, position, velocity, effort)

    def _stamp(self, stamp: Any) -> float:
        if not stamp.sec and not stamp.nanosec:
            hint = "the sender does not say when it measured: clock=arrival takes the time at which messages come"
            raise TrueupError(f"a state is stamped 0 s; {hint}", place=self._cfg.state)
        return seconds(stamp)

    def _column(self, values: Sequence[float], what: str, names: Sequence[str], order: NDArray[np.intp]) -> FloatArray:
        if len(values) != len(names):
            found = f"a message has {len(names)} names and {len(values)} values of {what}"
            raise TrueupError(found, place=self._cfg.state)
        return np.array(values, np.float64)[order]

    def _velocity(self, message: Any, order: NDArray[np.intp], time_s: float, position: FloatArray) -> FloatArray:
        if self._cfg.velocity == "measured":
            if not message.velocity:
                hint = "velocity=difference differentiates its positions instead (noisier, half a period late)"
                raise TrueupError(f"the state carries no velocities; {hint}", place=self._cfg.state)
            return self._column(message.velocity, "velocity", message.name, order)
        last, self._last = self._last, (time_s, position)
        if last is None or time_s <= last[0]:
            return np.zeros(len(order))
        return (position - last[1]) / (time_s - last[0])


class Inertial(NamedTuple):
    """One Imu message: quaternion w x y z, rad/s, m/s^2; None for parts marked as not measured."""

    quat: FloatArray | None
    gyro: FloatArray | None
    acc: FloatArray | None


def read_imu(message: Any) -> Inertial:
    """An Imu message as numbers; by ROS convention a covariance that begins with -1 means: not measured."""
    turn, spin, push = message.orientation, message.angular_velocity, message.linear_acceleration
    quat = np.array([turn.w, turn.x, turn.y, turn.z])
    gyro, acc = np.array([spin.x, spin.y, spin.z]), np.array([push.x, push.y, push.z])
    return Inertial(
        None if message.orientation_covariance[0] == -1.0 else quat,
        None if message.angular_velocity_covariance[0] == -1.0 else gyro,
        None if message.linear_acceleration_covariance[0] == -1.0 else acc,
    )


def seconds(stamp: Any) -> float:
    """A Time or Duration message in seconds."""
    return float(stamp.sec + 1e-9 * stamp.nanosec)


def split_seconds(time_s: float) -> tuple[int, int]:
    """Whole seconds and nanoseconds of a time."""
    whole = math.floor(time_s)
    nano = round((time_s - whole) * 1e9)
    return (whole + 1, 0) if nano >= 1_000_000_000 else (whole, nano)
