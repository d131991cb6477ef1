"""Logs as a learned actuator's training sees them: one clock, constant gains, start states with their noise taken out.

All logs are laid end to end; a window is a start row from which enough rows of the same log follow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trueup.calibrate.holdout import by_gain
from trueup.calibrate.noise import position_noise, smooth
from trueup.calibrate.prepare import in_order
from trueup.core.errors import TrueupError
from trueup.data.log import Log
from trueup.data.resample import resample
from trueup.robot.load import Robot

FloatArray = NDArray[np.float64]
Rows = NDArray[np.intp]


@dataclass(frozen=True, kw_only=True)
class Tracks:
    """Logs end to end, (T, njoint) each.

    first, last   (T,) first row of the log that a row belongs to, and the row after its last
    pos, vel      state with noise taken out; measured: as the encoder reported it
    noise         (njoint,) of the encoder, rad
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
    noise: FloatArray

    def starts(self, length: int, part: tuple[float, float] = (0.0, 1.0)) -> Rows:
        """Rows from which `length` more follow within the given part of their log."""
        size = self.last - self.first
        low, high = (np.round(self.first + share * size).astype(np.intp) for share in part)
        rows = np.arange(len(self.target))
        return np.flatnonzero((rows >= low) & (rows + length < high))


def make_tracks(robot: Robot, logs: Sequence[Log]) -> Tracks:
    """Lay logs end to end on the first one's clock, cut where gains change."""
    ordered = [in_order(robot, log) for log in logs]
    rate = ordered[0].rate_hz
    parts = [part for log in ordered for part in by_gain(_at_rate(log, rate))]
    lengths = np.array([len(part) for part in parts])
    ends = np.cumsum(lengths)
    states = [smooth(part) for part in parts]
    noise = np.sqrt(np.mean([position_noise(part["joint_pos"]) ** 2 for part in parts], axis=0))
    for part in parts:
        for name in ("joint_pos", "target_pos"):
            if not np.isfinite(part[name]).all():
                raise TrueupError(
                    f"{name!r} holds values that are not finite; run `trueup data check`", place=name
                )
    return Tracks(
        rate_hz=rate,
        first=np.repeat(ends - lengths, lengths),
        last=np.repeat(ends, lengths),
        target=np.concatenate([part["target_pos"] for part in parts]),
        target_vel=_used(parts, "target_vel"),
        torque=_used(parts, "target_torque"),
        measured=np.concatenate([part["joint_pos"] for part in parts]),
        pos=np.concatenate([pos for pos, _ in states]),
        vel=np.concatenate([vel for _, vel in states]),
        kp=_gain(parts, "target_kp", robot.spec.kp),
        kd=_gain(parts, "target_kd", robot.spec.kd),
        noise=noise,
    )


def _at_rate(log: Log, rate: float) -> Log:
    return log if abs(log.rate_hz / rate - 1.0) < 1e-3 else resample(log, rate)


def _used(parts: Sequence[Log], name: str) -> FloatArray | None:
    if not any(name in part and np.any(part[name]) for part in parts):
        return None
    return np.concatenate(
        [part[name] if name in part else np.zeros_like(part["joint_pos"]) for part in parts]
    )


def _gain(parts: Sequence[Log], name: str, default: FloatArray) -> FloatArray:
    return np.concatenate(
        [part[name] if name in part else np.broadcast_to(default, part["joint_pos"].shape) for part in parts]
    )
