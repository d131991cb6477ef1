"""One log cut into windows: start rows, compared samples, commands before and within, and noise levels.

The arrays of a log are a dict by the field names of `Windows`; `windows` stacks those of all logs. Windows end where
gains change; only where gains never stay for the length of a window do windows run across changes, and the simulation
follows the gains.

Position noise: a sixth difference removes motion (a 10 Hz motion at 200 Hz by 1e-3) and passes white noise with a known
gain; its median absolute value ignores the few samples at which commands jump. Velocity noise: the difference between
the logged velocity and the derivative of position, so that a velocity that lags counts for little.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueup.core.errors import TrueupError
from trueup.data.log import Log
from trueup.data.resample import rate_of
from trueup.robot.load import Robot
from trueup.world.replay.tracks import smooth

FloatArray = NDArray[np.float64]
Rows = NDArray[np.intp]
LogArrays = dict[str, NDArray[Any]]
BASE_CHANNELS = 12  # position, rotation vector, velocity, angular velocity; three each
_BASE_SIGNALS = ("base_pos", "base_quat", "base_vel", "imu_gyro")
_ORDER = 6  # of the difference that shows noise
_GAIN = math.sqrt(math.comb(2 * _ORDER, _ORDER))
_MAD = 1.4826  # standard deviations per median absolute deviation of a normal
_FOLLOWS, _SCALE = 0.95, 0.05  # correlation of a velocity that may be rescaled, error of its scale
SATURATED = 0.98  # of the torque limit
_ALWAYS = 0.5  # of the samples
_AFTER_S = 0.05  # a joint still carries the error of a saturated moment for about this long
_IN_TIME = ("target", "target_vel", "torque", "kp", "kd", "measured", "base_quat", "judged")


@dataclass(frozen=True, kw_only=True)
class Cut:
    """How logs of one rate are cut, in rows.

    judged   rows of a window that are compared; None: whole logs
    warm     before them, not compared
    past     commands before a window's start
    follows  windows run across changes of gains
    """

    judged: int | None
    warm: int
    past: int
    follows: bool

    @property
    def least(self) -> int:
        """Rows that a stretch needs for one window."""
        return self.warm + (2 if self.judged is None else self.judged) + 1

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


def cut_log(robot: Robot, log: Log, cut: Cut, *, free_base: bool, mask_saturated: bool) -> LogArrays:
    """The arrays of one log's windows; it must have a stretch that is long enough."""
    start, rows, keep = _rows(cut.stretches(log), cut)
    position, velocity = smooth(log)
    sensed, sigma = [log["joint_pos"]], [position_noise(log["joint_pos"])]
    if "joint_vel" in log:
        sensed.append(true_velocity(log["joint_vel"], velocity))
        sigma.append(velocity_noise(sensed[1], velocity))
    full = saturated(robot, log, velocity) if mask_saturated else np.zeros_like(position, bool)
    # always at the limit: then the gains are not the servo's, and masking would leave nothing
    always = full.mean(axis=0) > _ALWAYS
    fine = np.concatenate([~full | always] * len(sensed), axis=1)
    out: LogArrays = {
        "past": log["target_pos"][np.maximum(start[:, None] + np.arange(-cut.past, 0), 0)],
        "target": log["target_pos"][rows],
        "pos": position[start],
        "vel": velocity[start],
        "measured": np.concatenate(sensed, axis=1)[rows + 1],
        "judged": keep[:, :, None] & fine[rows + 1],
        "sigma": np.concatenate(sigma),
        "moved": np.ptp(position, axis=0) / np.maximum(sigma[0], 1e-4),
        "always": always,
    }
    for name, signal in (("target_vel", "target_vel"), ("torque", "target_torque")):
        if signal in log and np.any(log[signal]):
            out[name] = log[signal][rows]
    for name in ("kp", "kd"):
        if f"target_{name}" in log:
            out[name] = log[f"target_{name}"][rows if cut.follows else start]
    if free_base:
        _add_base(out, log, start, rows, keep)
    return out


def _rows(stretches: Sequence[tuple[int, int]], cut: Cut) -> tuple[Rows, Rows, NDArray[np.bool_]]:
    """Start rows (n,), rows of commands (n, L), and which of them are compared (n, L)."""
    starts, keeps = [], []
    for first, end in stretches:
        length = end - first - 1 if cut.judged is None else cut.warm + cut.judged
        start = np.arange(first, end - length, length - cut.warm)
        keep = np.ones((len(start), length), bool)
        keep[:, : cut.warm] = False
        rest = end - 1 - length  # start of the last window, so that it reaches the end
        if start[-1] < rest:  # it overlaps the window before
            again = rest + np.arange(length) <= start[-1] + length - 1
            keep = np.concatenate([keep, (keep[:1] & ~again[None])])
            start = np.append(start, rest)
        starts.append(start)
        keeps.append(keep)
    start, keep = np.concatenate(starts), np.concatenate(keeps)
    return start, start[:, None] + np.arange(keep.shape[1]), keep


def pad(parts: list[LogArrays]) -> None:
    """Give whole logs of different lengths one length: commands are held at the end and nothing more is compared."""
    longest = max(part["target"].shape[1] for part in parts)
    for part in parts:
        more = longest - part["target"].shape[1]
        if more == 0:
            continue
        for name in _IN_TIME:
            if name in part and part[name].ndim == 3:
                end = np.repeat(part[name][:, -1:], more, axis=1)
                part[name] = np.concatenate([part[name], end], axis=1)
        part["judged"][:, -more:] = False


def saturated(robot: Robot, log: Log, velocity: FloatArray) -> NDArray[np.bool_]:
    """(T, njoint): the servo is at its torque limit, or was a moment ago."""
    spec = robot.spec
    kp = log.signals.get("target_kp", spec.kp)
    kd = log.signals.get("target_kd", spec.kd)
    asked = kp * (log["target_pos"] - log["joint_pos"]) - kd * velocity
    full = np.abs(asked) >= SATURATED * spec.torque_limit
    if "joint_torque" in log:
        full |= np.abs(log["joint_torque"]) >= SATURATED * spec.torque_limit
    after = full.copy()
    for shift in range(1, round(_AFTER_S * rate_of(log)) + 1):
        after[shift:] |= full[:-shift]
    return after


# --- noise, from a log alone ---
def position_noise(position: FloatArray) -> FloatArray:
    """Return the standard deviation of the noise of each column, at least what its quantisation makes."""
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
    """Velocity columns rescaled where their scale is plainly wrong against the derivative of position.

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


def _add_base(out: LogArrays, log: Log, start: Rows, rows: Rows, keep: NDArray[np.bool_]) -> None:
    """Add start state and channels of the base to a log's windows."""
    after = rows + 1
    moving = [log[name][after] for name in ("base_pos", "base_vel", "imu_gyro")]
    measured = [moving[0], np.zeros_like(moving[0]), *moving[1:]]
    turn = np.full(3, 2.0 * position_noise(log["base_quat"]).max())
    noise = [position_noise(log[name]) for name in ("base_pos", "base_vel", "imu_gyro")]
    out["base_pos"] = np.concatenate([log["base_pos"], log["base_quat"]], axis=1)[start]
    out["base_vel"] = np.concatenate([log["base_vel"], log["imu_gyro"]], axis=1)[start]
    out["base_quat"] = log["base_quat"][after]
    out["measured"] = np.concatenate([out["measured"], *measured], axis=-1)
    out["judged"] = np.concatenate([out["judged"], np.repeat(keep[:, :, None], BASE_CHANNELS, axis=2)], axis=-1)
    out["sigma"] = np.concatenate([out["sigma"], noise[0], turn, noise[1], noise[2]])


def base_seen(qpos: FloatArray, qvel: FloatArray, measured_quat: FloatArray) -> FloatArray:
    """(..., 12) channels of a simulated base: qpos (..., 7), qvel (..., 6), against measured (..., 4)."""
    turn = rotation_between(measured_quat, qpos[..., 3:7])
    return np.concatenate([qpos[..., :3], turn, qvel], axis=-1)


def rotation_between(a: FloatArray, b: FloatArray) -> FloatArray:
    """Rotation vector (..., 3) that takes orientation a to b (w x y z), in a's frame."""
    aw, av = a[..., :1], -a[..., 1:]
    bw, bv = b[..., :1], b[..., 1:]
    w = aw * bw - (av * bv).sum(axis=-1, keepdims=True)
    v = aw * bv + bw * av + np.cross(av, bv)
    v, w = np.where(w < 0, -v, v), np.abs(w)
    size = np.linalg.norm(v, axis=-1, keepdims=True)
    angle = 2.0 * np.arctan2(size, w)
    scale: FloatArray = np.where(size > 1e-9, angle / np.maximum(size, 1e-12), 2.0)
    return scale * v
