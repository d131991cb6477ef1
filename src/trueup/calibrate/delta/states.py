"""Logs as states at the policy's rate, with the pose of a floating base as far as the robot's sensors tell it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy.signal import savgol_filter  # type: ignore[attr-defined]

from trueup.calibrate.data.logs import in_order
from trueup.calibrate.delta.config import DeltaCfg
from trueup.core.arrays import FloatArray
from trueup.core.errors import TrueupError
from trueup.data.log import Log
from trueup.data.resample import at_rate, rate_of
from trueup.motion.rotations import conjugate, rotate, spin
from trueup.robot.load import Robot
from trueup.world.odometry import leg_odometry
from trueup.world.replay.tracks import Tracks, lay_tracks

_DENSE = 2.5  # times the policy's rate
_SMOOTH_S = 0.015  # half width
_BASE = ("base_pos", "base_quat", "base_vel", "imu_gyro")


def is_free(robot: Robot, logs: Sequence[Log], cfg: DeltaCfg) -> bool:
    """Whether the base of these logs moves freely."""
    if cfg.base != "auto":
        return cfg.base == "free"
    return robot.spec.base.floating and all("imu_quat" in log or "base_pos" in log for log in logs)


def state_tracks(robot: Robot, logs: Sequence[Log], cfg: DeltaCfg) -> Tracks:
    """All logs at the policy's rate, end to end, with the state of the base if it is free."""
    rate, free = cfg.rate_hz or robot.spec.control_hz, is_free(robot, logs, cfg)
    parts, dense = [], True
    for log in (in_order(robot, one) for one in logs):
        if rate_of(log) < 0.98 * rate:
            raise TrueupError(f"a log has {rate_of(log):.0f} Hz, the policy {rate:g} Hz: give --rate-hz or denser logs")
        whole = with_base(robot, log) if free else log
        dense = dense and rate_of(log) > _DENSE * rate
        parts.append(whole)
    laid = [at_rate(_smoothed(one) if dense else one, rate) for one in parts]
    return lay_tracks(robot, laid, start="measured" if dense else "smoothed", free_base=free)


def _smoothed(log: Log) -> Log:
    """Smoothed at the log's own rate by a parabola over 30 ms: a wider one flattens what an impact does."""
    dt = 1.0 / rate_of(log)
    width = 2 * max(2, round(_SMOOTH_S / dt)) + 1
    if len(log) <= width:
        return log
    pos = savgol_filter(log["joint_pos"], width, 2, axis=0)
    vel = savgol_filter(log["joint_pos"], width, 2, deriv=1, delta=dt, axis=0)
    return replace(log, signals={**log.signals, "joint_pos": pos, "joint_vel": vel})


def with_base(robot: Robot, log: Log) -> Log:
    """The log with pose and velocity of its base: as logged (motion capture, odometry), or from legs and IMU."""
    if all(name in log for name in _BASE):
        return log
    path = leg_odometry(robot, log)
    quat, dt = path.qpos[:, 3:7], 1.0 / rate_of(log)
    moved = {
        "base_pos": path.qpos[:, :3],
        "base_quat": quat,
        "base_vel": _smooth_velocity(path.qpos[:, :3], dt),
        "imu_gyro": log["imu_gyro"] if "imu_gyro" in log else rotate(conjugate(quat), spin(quat, 1.0 / dt)),
    }
    return replace(log, signals={**log.signals, **moved})


def _smooth_velocity(pos: FloatArray, dt: float) -> FloatArray:
    width = 2 * max(2, round(0.04 / dt)) + 1
    return (
        np.asarray(savgol_filter(pos, width, 2, deriv=1, delta=dt, axis=0))
        if len(pos) > width
        else np.gradient(pos, dt, axis=0)
    )
