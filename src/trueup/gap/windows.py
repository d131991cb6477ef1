"""Short windows of a log that start in measured states: one half to estimate causes, the other held out.

A floating base is taken from odometry where the log has it. Without, orientation and spin are the IMU's; height and
velocity come from the legs and the accelerometer (`legs`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from trueup.core.arrays import FloatArray
from trueup.core.errors import TrueupError
from trueup.data.log import Log
from trueup.data.resample import rate_of
from trueup.gap.causes.legs import BASE_NOISE, base_at
from trueup.policy.reading import gravity_in_body
from trueup.robot.load import Robot
from trueup.world.replay.playback import RecordedStretch
from trueup.world.replay.tracks import Tracks, lay_tracks

Rows = NDArray[np.intp]
PAST_S = 0.06
_OVERLAPPING = 28  # windows that may overlap where a log is short
_WARM_C = 2.0  # deg C of rise from which heat may matter


@dataclass(frozen=True, kw_only=True)
class LogWindows:
    """Windows of a log: start states, commands, and sensor readings after each command.

    measured  (W, L, njoint) rad; gyro (W, L, 3) rad/s and gravity (W, L, 3) in the IMU's frame, None: not compared
    late      (W,) 0 at the begin of the log, 1 at its end; warm (W, njoint) share of the highest temperature rise
    held      (W,) windows that causes are judged on; log (W,) recording that each is of
    base_noise  of the base's height (m) and velocity (m/s) where they come from legs and IMU
    weight    (W,) of each window's mismatch, so that each of several recordings counts as much; None: 1
    """

    rate_hz: float
    recorded: RecordedStretch
    measured: FloatArray
    gyro: FloatArray | None
    gravity: FloatArray | None
    late: FloatArray
    warm: FloatArray
    held: NDArray[np.bool_]
    log: Rows
    base_noise: tuple[float, float] = (0.0, 0.0)
    weight: FloatArray | None = None

    @property
    def count(self) -> int:
        return len(self.measured)


def joined(parts: Sequence[LogWindows]) -> LogWindows:
    """Concatenate windows of several logs of one rate and length; gains per step if any log has them."""
    if len(parts) == 1:
        return parts[0]
    length = parts[0].measured.shape[1]

    def whole(values: Sequence[FloatArray | None]) -> FloatArray | None:
        known = [one for one in values if one is not None]
        if len(known) < len(values):
            return None
        if len({one.ndim for one in known}) > 1:  # gains: some constant, some not
            known = [one if one.ndim == 3 else np.repeat(one[:, None], length, axis=1) for one in known]
        return np.concatenate(known)

    names = [one.name for one in fields(RecordedStretch) if one.name != "history"]
    given = {name: [getattr(part.recorded, name) for part in parts] for name in names}
    for name in ("target_vel", "torque"):
        if any(one is not None for one in given[name]):
            shapes = [part.recorded.target.shape for part in parts]
            given[name] = [np.zeros(s) if v is None else v for v, s in zip(given[name], shapes, strict=True)]
    more = {name: whole([getattr(part, name) for part in parts]) for name in ("gyro", "gravity")}
    same = {name: np.concatenate([getattr(part, name) for part in parts]) for name in ("measured", "late", "warm")}
    return LogWindows(
        rate_hz=parts[0].rate_hz,
        recorded=RecordedStretch(**{name: whole(values) for name, values in given.items()}),  # type: ignore[arg-type]
        held=np.concatenate([part.held for part in parts]),
        log=np.repeat(np.arange(len(parts)), [part.count for part in parts]),
        base_noise=max(part.base_noise for part in parts),
        weight=whole([part.weight for part in parts]),
        **same,
        **more,  # type: ignore[arg-type]
    )


def some(windows: LogWindows, at: Rows) -> LogWindows:
    """A subset of the windows."""
    arrays = {one.name: getattr(windows.recorded, one.name) for one in fields(RecordedStretch) if one.name != "history"}
    chosen = {name: values[at] for name, values in arrays.items() if values is not None}
    names = ("measured", "gyro", "gravity", "late", "warm", "held", "log", "weight")
    own = {name: getattr(windows, name)[at] for name in names if getattr(windows, name) is not None}
    return replace(windows, recorded=replace(windows.recorded, **chosen), **own)


def is_walking(robot: Robot, log: Log) -> bool:
    """Whether the base moved freely: its IMU turned, or odometry says that it moved."""
    if not robot.spec.base.floating:
        return False
    if "imu_gyro" in log and float(np.sqrt(np.mean(np.square(log["imu_gyro"])))) > 0.05:
        return True
    return "base_pos" in log and float(np.ptp(log["base_pos"], axis=0).max()) > 0.05


def cut(
    robot: Robot, log: Log, *, walking: bool, window_s: float, most: int, past_s: float = PAST_S
) -> LogWindows:  # fmt: skip
    """Cut one log, in the spec's joint order and on an even clock; windows go in pairs to both halves."""
    rate = rate_of(log)
    length = max(2, round(window_s * rate))
    tracks = lay_tracks(robot, [log], start="measured" if walking and "joint_vel" in log else "smoothed")
    margin = max(2, round(past_s * rate))
    last = len(log) - length - 2
    if last <= margin:
        raise TrueupError(f"a log of {len(log) / rate:.2f} s is too short for windows of {window_s} s")
    room = (last - margin) // length
    count = min(most, max(2, room, min(2 * room, _OVERLAPPING)))
    at = np.unique(np.linspace(margin, last, count).astype(np.intp))
    rows = at[:, None] + 1 + np.arange(length)
    recorded = tracks.recorded(at, length, past=margin)
    gyro = gravity = None
    if walking:
        place, speed = _base(robot, log, tracks, at)
        recorded = replace(recorded, base_pos=place, base_vel=speed)
        gyro = log["imu_gyro"][rows] if "imu_gyro" in log else None
        quat = _quat(log)
        gravity = gravity_in_body(quat[rows].reshape(-1, 4)).reshape(*rows.shape, 3)
    late = (at - at[0]) / max(1, at[-1] - at[0])
    return LogWindows(
        rate_hz=rate,
        recorded=replace(recorded, history=None),
        measured=log["joint_pos"][rows],
        gyro=gyro,
        gravity=gravity,
        late=late,
        warm=_warmth(log, at, late),
        held=np.arange(len(at)) // 2 % 2 == 1,
        log=np.zeros(len(at), np.intp),
        base_noise=BASE_NOISE if walking and not has_odometry(log) else (0.0, 0.0),
    )


def _quat(log: Log) -> FloatArray:
    for name in ("imu_quat", "base_quat"):
        if name in log:
            return log[name]
    raise TrueupError("a log of a robot on the ground needs the IMU's orientation (imu_quat) or odometry (base_quat)")


def _warmth(log: Log, at: Rows, late: FloatArray) -> FloatArray:
    """Temperature rise of each joint over the highest; 0 where motors stayed cool, time where none was logged."""
    njoint = len(log.joint_names)
    if "joint_temperature" in log and np.isfinite(log["joint_temperature"]).all():
        rise = log["joint_temperature"][at] - log["joint_temperature"].min(axis=0)
        if np.ptp(log["joint_temperature"]) > 0.0:  # else nobody measures it
            return rise / rise.max() if rise.max() > _WARM_C else np.zeros_like(rise)
    return np.repeat(late[:, None], njoint, axis=1)


def _base(robot: Robot, log: Log, tracks: Tracks, at: Rows) -> tuple[FloatArray, FloatArray]:
    """Pose (n, 7) and velocity (n, 6) of the base at rows."""
    quat = _quat(log)[at]
    spin = _spin(log)[at]
    if has_odometry(log):
        place, velocity = log["base_pos"][at], log["base_vel"][at]
    else:
        acc = log["imu_acc"] if "imu_acc" in log and is_acceleration(log["imu_acc"]) else None
        place, velocity = base_at(robot, _quat(log), _spin(log), acc, tracks.pos, tracks.vel, at, rate_of(log))
    return np.hstack([place, quat]), np.hstack([velocity, spin])


def has_odometry(log: Log) -> bool:
    """Whether the log has pose and velocity of the base."""
    return "base_pos" in log and "base_vel" in log


def _spin(log: Log) -> FloatArray:
    return log["imu_gyro"] if "imu_gyro" in log else np.zeros((len(log), 3))


def is_acceleration(acc: FloatArray) -> bool:
    """Whether its magnitude is that of gravity in m/s^2: some robots log none, some log units of g."""
    return bool(np.isfinite(acc).all() and 8.0 < np.median(np.linalg.norm(acc, axis=1)) < 12.0)
