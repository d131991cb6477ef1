"""Logs of one rate concatenated, so that any of their rows can be the start of a simulation.

A replay starts in the smoothed state, not in single samples: encoders are quantised, and a driver's velocity lags or is
scaled wrongly on many robots; the error of one sample would be attributed to the model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.signal import savgol_filter  # type: ignore[attr-defined]

from trueup.core.arrays import FloatArray
from trueup.core.errors import TrueupError
from trueup.data.log import Log
from trueup.data.resample import common_rate, rate_of
from trueup.robot.load import Robot
from trueup.world.actuators.net_actuator import NetHistory
from trueup.world.replay.playback import RecordedStretch

_SMOOTH_S = 0.03  # half width of the smoothing polynomial
Rows = NDArray[np.intp]
Start = Literal["smoothed", "measured"]
_COMMANDS = ("target_vel", "target_torque", "target_kp", "target_kd")


def smooth(log: Log) -> tuple[FloatArray, FloatArray]:
    """Return position and velocity by a cubic fitted around every sample (zero phase), (T, njoint) each."""
    position, dt = log["joint_pos"], 1.0 / rate_of(log)
    width = 2 * max(2, round(_SMOOTH_S / dt)) + 1
    if len(position) <= width:
        return position, np.gradient(position, dt, axis=0)
    return (savgol_filter(position, width, 3, axis=0), savgol_filter(position, width, 3, deriv=1, delta=dt, axis=0))


@dataclass(frozen=True, kw_only=True)
class Tracks:
    """Logs end to end, (T, njoint) each.

    first, last   (T,) first row of the log that a row belongs to, and the row after its last
    pos, vel      state that simulations start in; measured: as the encoder reported it
    kp, kd        gains in force; the spec's where a log does not say
    base_pos, base_vel  (T, 7 | 6) of a floating base; None when held
    """

    rate_hz: float
    first: Rows
    last: Rows
    target: FloatArray
    target_vel: FloatArray | None
    torque: FloatArray | None
    measured: FloatArray
    pos: FloatArray
    vel: FloatArray
    kp: FloatArray
    kd: FloatArray
    base_pos: FloatArray | None = None
    base_vel: FloatArray | None = None

    def starts(self, length: int, part: tuple[float, float] = (0.0, 1.0)) -> Rows:
        """Rows from which `length` more follow within the given part of their log."""
        size = self.last - self.first
        low, high = (np.round(self.first + share * size).astype(np.intp) for share in part)
        rows = np.arange(len(self.target))
        return np.flatnonzero((rows >= low) & (rows + length < high))

    def recorded(self, start: Rows, length: int, *, past: int) -> RecordedStretch:
        """`length` commands from rows `start` on and `past` before; at its ends a log goes on as it was there."""
        first, last = self.first[start], self.last[start]
        rows = np.minimum(start[:, None] + np.arange(length), last[:, None] - 1)
        before = np.maximum(start[:, None] + np.arange(-past, 0), first[:, None])

        def at(values: FloatArray | None, where: Rows) -> FloatArray | None:
            return None if values is None else values[where]

        kp, kd = (gain[rows] if (gain[rows] != gain[rows[:, :1]]).any() else gain[start] for gain in (self.kp, self.kd))
        return RecordedStretch(
            pos=self.pos[start],
            vel=self.vel[start],
            past=self.target[before],
            target=self.target[rows],
            target_vel=at(self.target_vel, rows),
            torque=at(self.torque, rows),
            kp=kp,
            kd=kd,
            base_pos=at(self.base_pos, start),
            base_vel=at(self.base_vel, start),
            history=NetHistory(self.rate_hz, self.pos, self.vel, self.target, self.target_vel, start, first),
        )


def lay_tracks(robot: Robot, logs: Sequence[Log], *, start: Start = "smoothed", free_base: bool = False) -> Tracks:
    """Lay logs of one rate, in the spec's joint order, end to end."""
    for log in logs:
        require_finite(log)
    lengths = np.array([len(log) for log in logs])
    ends = np.cumsum(lengths)
    states = [smooth(log) if start == "smoothed" else _measured(log) for log in logs]
    spec = robot.spec
    return Tracks(
        rate_hz=common_rate(logs),
        first=np.repeat(ends - lengths, lengths),
        last=np.repeat(ends, lengths),
        target=np.concatenate([log["target_pos"] for log in logs]),
        target_vel=_used(logs, "target_vel"),
        torque=_used(logs, "target_torque"),
        measured=np.concatenate([log["joint_pos"] for log in logs]),
        pos=np.concatenate([position for position, _ in states]),
        vel=np.concatenate([velocity for _, velocity in states]),
        kp=_filled(logs, "target_kp", spec.kp),
        kd=_filled(logs, "target_kd", spec.kd),
        base_pos=_joined(logs, ("base_pos", "base_quat")) if free_base else None,
        base_vel=_joined(logs, ("base_vel", "imu_gyro")) if free_base else None,
    )


def require_finite(log: Log) -> None:
    """Refuse a log with holes in what a replay needs."""
    for name in ("joint_pos", "target_pos", *(name for name in _COMMANDS if name in log)):
        if not np.isfinite(log[name]).all():
            raise TrueupError(f"{name!r} holds values that are not finite; run `trueup data check`", place=name)
    for name in ("target_kp", "target_kd"):
        if name in log and (log[name] < 0.0).any():
            raise TrueupError(f"{name!r} holds gains below zero; run `trueup data check`", place=name)


def _measured(log: Log) -> tuple[FloatArray, FloatArray]:
    """Position and velocity as logged; without a velocity, the derivative of position."""
    if "joint_vel" in log:
        return log["joint_pos"], log["joint_vel"]
    return log["joint_pos"], np.gradient(log["joint_pos"], log.time, axis=0)


def _used(logs: Sequence[Log], name: str) -> FloatArray | None:
    """A command of all logs, zero where a log lacks it; None if no log uses it."""
    if not any(name in log and np.any(log[name]) for log in logs):
        return None
    return _filled(logs, name, 0.0)


def _filled(logs: Sequence[Log], name: str, default: FloatArray | float) -> FloatArray:
    return np.concatenate(
        [log[name] if name in log else np.broadcast_to(default, log["joint_pos"].shape) for log in logs]
    )


def _joined(logs: Sequence[Log], names: tuple[str, str]) -> FloatArray:
    return np.concatenate([np.concatenate([log[name] for name in names], axis=1) for log in logs])
