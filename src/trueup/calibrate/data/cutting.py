"""Cuts logs into windows, and weighs their samples: channels, noise levels, saturation.

Windows end where gains change; only where gains never stay for the length of a window do windows run across changes,
and the simulation follows the gains.

Position noise: a sixth difference removes motion (a 10 Hz motion at 200 Hz by 1e-3) and passes white noise with a known
gain; its median absolute value ignores the few samples at which commands jump. Velocity noise: the difference between
the logged velocity and the derivative of position, so that a lagging velocity has little weight.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trueup.core.arrays import FloatArray
from trueup.core.errors import TrueupError
from trueup.data.log import Log
from trueup.data.resample import rate_of
from trueup.motion.rotations import conjugate, multiply, rotation_vector
from trueup.robot.load import Robot

Rows = NDArray[np.intp]
BASE_CHANNELS = 12  # position, rotation vector, velocity, angular velocity; three each
_BASE_SIGNALS = ("base_pos", "base_quat", "base_vel", "imu_gyro")
_ORDER = 6  # of the difference that shows noise
_GAIN = math.sqrt(math.comb(2 * _ORDER, _ORDER))
_MAD = 1.4826  # standard deviations per median absolute deviation of a normal
_FOLLOWS, _SCALE = 0.95, 0.05  # correlation of a velocity that may be rescaled, error of its scale
SATURATED = 0.98  # of the torque limit
_ALWAYS = 0.5  # of the samples
_AFTER_S = 0.05  # a joint carries the error of saturation for about this long


@dataclass(frozen=True, kw_only=True)
class Cut:
    """Lengths of windows for logs of one rate, in rows.

    compared   rows of a window that are compared; None: whole logs
    warm     before them, not compared
    past     commands before a window's start
    follows  windows run across changes of gains
    """

    compared: int | None
    warm: int
    past: int
    follows: bool

    @property
    def least(self) -> int:
        """Number of rows that one window needs."""
        return self.warm + (2 if self.compared is None else self.compared) + 1

    def stretches(self, log: Log) -> list[tuple[int, int]]:
        """(first, end) of the stretches of a log in which windows may lie."""
        pieces = [(0, len(log))] if self.follows else gain_pieces(log)
        return [(a, b) for a, b in pieces if b - a >= self.least]


def gain_pieces(log: Log) -> list[tuple[int, int]]:
    """(first, end) of the stretches of constant gains."""
    change = np.zeros(max(len(log) - 1, 0), bool)
    for name in ("target_kp", "target_kd"):
        if name in log:
            change |= (log[name][1:] != log[name][:-1]).any(axis=1)
    return list(pairwise([0, *(np.flatnonzero(change) + 1).tolist(), len(log)]))


def window_rows(logs: Sequence[Log], cut: Cut) -> tuple[Rows, NDArray[np.bool_]]:
    """Start rows (n,) of all windows of logs laid end to end, and which samples (n, L) after them are compared."""
    starts, keeps, before = [], [], 0
    for log in logs:
        for first, end in cut.stretches(log):
            length = end - first - 1 if cut.compared is None else cut.warm + cut.compared
            start = np.arange(first, end - length, length - cut.warm)
            keep = np.ones((len(start), length), bool)
            keep[:, : cut.warm] = False
            rest = end - 1 - length  # start of the last window, so that it reaches the end
            if start[-1] < rest:  # it overlaps the window before
                again = rest + np.arange(length) <= start[-1] + length - 1
                keep = np.concatenate([keep, (keep[:1] & ~again[None])])
                start = np.append(start, rest)
            starts.append(before + start)
            keeps.append(keep)
        before += len(log)
    longest = max(keep.shape[1] for keep in keeps)
    return np.concatenate(starts), np.concatenate([np.pad(k, ((0, 0), (0, longest - k.shape[1]))) for k in keeps])


class Sensed(NamedTuple):
    """Measured channels of a log, row by row.

    values  (T, nchannel); fine: (T, nchannel) samples that may be compared; sigma: (nchannel,) noise
    moved   (njoint,) motion in noises; always: (njoint,) at the torque limit for most of the time
    """

    values: FloatArray
    fine: NDArray[np.bool_]
    sigma: FloatArray
    moved: FloatArray
    always: NDArray[np.bool_]


def sensed(
    robot: Robot, log: Log, state: FloatArray, *, with_velocity: bool, free_base: bool, mask_saturated: bool
) -> Sensed:
    """The channels of a log; `state` (2, T, njoint) is its smoothed position and that position's derivative."""
    position, velocity = state
    values, sigma = [log["joint_pos"]], [position_noise(log["joint_pos"])]
    moved = np.ptp(position, axis=0) / np.maximum(sigma[0], 1e-4)
    if with_velocity:
        values.append(true_velocity(log["joint_vel"], velocity))
        sigma.append(velocity_noise(values[1], velocity))
    full = saturated(robot, log, velocity) if mask_saturated else np.zeros_like(velocity, bool)
    # always at the limit: then the gains are not the servo's, and masking would leave nothing
    always = full.mean(axis=0) > _ALWAYS
    fine = [~full | always] * len(values)
    if free_base:
        noise = {name: position_noise(log[name]) for name in _BASE_SIGNALS}
        values += [log["base_pos"], np.zeros_like(log["base_pos"]), log["base_vel"], log["imu_gyro"]]
        turn = np.full(3, 2.0 * noise["base_quat"].max())
        sigma += [noise["base_pos"], turn, noise["base_vel"], noise["imu_gyro"]]
        fine.append(np.ones((len(log), BASE_CHANNELS), bool))
    return Sensed(np.concatenate(values, 1), np.concatenate(fine, 1), np.concatenate(sigma), moved, always)


def saturated(robot: Robot, log: Log, velocity: FloatArray) -> NDArray[np.bool_]:
    """(T, njoint): the servo is at its torque limit, or was a moment ago."""
    spec = robot.spec
    kp = log.signals.get("target_kp", spec.kp)
    kd = log.signals.get("target_kd", spec.kd)
    torque = kp * (log["target_pos"] - log["joint_pos"]) - kd * velocity
    full = np.abs(torque) >= SATURATED * spec.torque_limit
    if "joint_torque" in log:
        full |= np.abs(log["joint_torque"]) >= SATURATED * spec.torque_limit
    after = full.copy()
    for shift in range(1, round(_AFTER_S * rate_of(log)) + 1):
        after[shift:] |= full[:-shift]
    return after


# --- noise, from a log alone ---
def position_noise(position: FloatArray) -> FloatArray:
    """Return the standard deviation of each column's noise, at least that of its quantisation."""
    step = quantum(position)
    if len(position) <= 4 * _ORDER:
        return np.maximum(step / math.sqrt(12), 1e-5)
    left = np.diff(position, _ORDER, axis=0)
    spread = _MAD * np.median(np.abs(left), axis=0) / _GAIN
    return np.maximum(np.maximum(spread, step / math.sqrt(12)), 1e-5)


def quantum(values: FloatArray) -> FloatArray:
    """Return the step of which all differences in a column are multiples, 0 where there is none."""
    out = np.zeros(values.shape[1])
    for k, column in enumerate(values.T):
        steps = np.diff(np.unique(column))
        steps = steps[steps > 1e-9]
        if len(steps) >= 2:
            parts = steps / steps.min()
            out[k] = steps.min() if np.abs(parts - np.round(parts)).max() < 0.01 else 0.0
    return out


def velocity_noise(velocity: FloatArray, derivative: FloatArray) -> FloatArray:
    """Return the standard deviation of each velocity column about the derivative of position."""
    return np.maximum(np.sqrt(((velocity - derivative) ** 2).mean(axis=0)), 1e-3)


def true_velocity(velocity: FloatArray, derivative: FloatArray) -> FloatArray:
    """Velocity columns rescaled where their scale clearly disagrees with the derivative of position.

    Only a velocity that follows the derivative closely is changed, and only by a constant factor.
    """
    power = np.maximum((derivative**2).sum(axis=0), 1e-12)
    both = (velocity * derivative).sum(axis=0)
    correlation = both / np.sqrt(power * np.maximum((velocity**2).sum(axis=0), 1e-12))
    scale = both / power
    wrong = (correlation > _FOLLOWS) & (np.abs(scale - 1.0) > _SCALE)
    return velocity / np.where(wrong, scale, 1.0)


# --- a floating base ---
def need_base(logs: Sequence[Log]) -> None:
    """Refuse logs without the state of their base."""
    for log in logs:
        for name in _BASE_SIGNALS:
            if name not in log:
                raise TrueupError(
                    f"a free base needs {', '.join(_BASE_SIGNALS)} in the log, {name!r} is missing; record with "
                    "odometry (or motion capture), or hold the base in the air and fit with base fixed",
                    place=name,
                )


def base_seen(qpos: FloatArray, qvel: FloatArray, measured_quat: FloatArray) -> FloatArray:
    """(..., 12) channels of a simulated base: qpos (..., 7), qvel (..., 6), against measured (..., 4)."""
    turn = rotation_between(measured_quat, qpos[..., 3:7])
    return np.concatenate([qpos[..., :3], turn, qvel], axis=-1)


def rotation_between(a: FloatArray, b: FloatArray) -> FloatArray:
    """Rotation vector (..., 3) that takes orientation a to b (w x y z), in a's frame."""
    return rotation_vector(multiply(conjugate(a), b))
