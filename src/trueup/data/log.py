"""Log: signals of a robot or simulation as named arrays on one clock; RobotReference: the robot to compare it with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from trueup.core.arrays import FloatArray, sha256_of
from trueup.core.errors import TrueupError, did_you_mean

_ARRAYS = ("position_low", "position_high", "velocity_limit", "torque_limit", "kp", "kd", "default_pose")

# signal -> (columns, unit): "joint" means one column per joint, a number that many columns
SIGNALS: dict[str, tuple[str | int, str]] = {
    "joint_pos": ("joint", "rad"),
    "joint_vel": ("joint", "rad/s"),
    "joint_torque": ("joint", "N m"),
    "joint_temperature": ("joint", "deg C"),
    "target_pos": ("joint", "rad"),
    "target_vel": ("joint", "rad/s"),
    "target_torque": ("joint", "N m"),  # feed-forward
    "target_kp": ("joint", "N m/rad"),
    "target_kd": ("joint", "N m s/rad"),
    "base_pos": (3, "m"),
    "base_quat": (4, "1"),  # w x y z, world_from_base
    "base_vel": (3, "m/s"),  # world frame
    "imu_gyro": (3, "rad/s"),
    "imu_acc": (3, "m/s^2"),
    "imu_quat": (4, "1"),
    "voltage": (1, "V"),
}


def signal_width(name: str, joint_names: Sequence[str]) -> int:
    """Number of columns of a signal for these joints."""
    if name not in SIGNALS:
        raise TrueupError(f"a log knows no signal {name!r}{did_you_mean(name, SIGNALS)}")
    columns = SIGNALS[name][0]
    return len(joint_names) if isinstance(columns, str) else columns


@dataclass(frozen=True, kw_only=True)
class Log:
    """Signals on one time base.

    time         (T,) seconds, starting anywhere
    joint_names  order of every per-joint column
    signals      name -> (T, columns), names and units in SIGNALS; absent signals are simply not there
    meta         provenance: plain strings, numbers and lists

    Row t holds the state at time[t] and the command in force from time[t] on.
    """

    time: FloatArray
    joint_names: tuple[str, ...]
    signals: dict[str, FloatArray]
    meta: dict[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.time.ndim != 1:
            raise TrueupError(f"a log's time must have one axis, found shape {self.time.shape}")
        for name, values in self.signals.items():
            shape = (len(self.time), signal_width(name, self.joint_names))
            if values.shape != shape:
                raise TrueupError(f"signal {name!r} must have shape {shape}, found {values.shape}", place=name)

    def __len__(self) -> int:
        return len(self.time)

    def __getitem__(self, name: str) -> FloatArray:
        try:
            return self.signals[name]
        except KeyError:
            raise TrueupError(f"this log has no {name!r}; it has {', '.join(self.signals) or 'nothing'}") from None

    def __contains__(self, name: object) -> bool:
        return name in self.signals

    @property
    def rate_hz(self) -> float:
        """Median sampling rate."""
        if len(self.time) < 2:
            raise TrueupError("a log of fewer than two samples has no rate")
        return float(1.0 / np.median(np.diff(self.time)))

    @property
    def sha256(self) -> str:
        """Hash of times and signals."""
        named = (part for name in sorted(self.signals) for part in (name, self.signals[name]))
        return sha256_of((self.time, *named))

    def window(self, start: int, stop: int) -> Log:
        """Rows start..stop-1 as a log of their own."""
        cut = {name: values[start:stop] for name, values in self.signals.items()}
        return replace(self, time=self.time[start:stop], signals=cut)

    def with_joint_order(self, names: tuple[str, ...]) -> Log:
        """The same log with its joint columns in another order (every name must exist here)."""
        if names == self.joint_names:
            return self
        missing = [name for name in names if name not in self.joint_names]
        if missing:
            raise TrueupError(f"this log has no joint {missing[0]!r}{did_you_mean(missing[0], self.joint_names)}")
        order = [self.joint_names.index(name) for name in names]
        moved = {name: self[name][:, order] for name in self.signals if SIGNALS[name][0] == "joint"}
        return replace(self, joint_names=names, signals=self.signals | moved)


@dataclass(frozen=True, kw_only=True)
class RobotReference:
    """Facts of a robot for the validator; `data` does not import `robot`, so the caller fills this from a RobotSpec.

    Every array is (n,) in the order of joint_names; rad, rad/s, N m, N m/rad, N m s/rad, Hz.
    """

    joint_names: tuple[str, ...]
    position_low: FloatArray
    position_high: FloatArray
    velocity_limit: FloatArray
    torque_limit: FloatArray
    kp: FloatArray
    kd: FloatArray
    default_pose: FloatArray
    control_hz: float

    def __post_init__(self) -> None:
        for name in _ARRAYS:
            shape = np.shape(getattr(self, name))
            count = len(self.joint_names)
            if shape != (count,):
                raise TrueupError(f"{name} must have one number for each of {count} joints, found {shape}")

    def in_order(self, names: tuple[str, ...]) -> RobotReference:
        """The same robot with its joints as in `names`; every name must exist here."""
        order = [self.joint_names.index(name) for name in names]
        arrays = {name: np.asarray(getattr(self, name), np.float64)[order] for name in _ARRAYS}
        return RobotReference(joint_names=names, control_hz=self.control_hz, **arrays)
