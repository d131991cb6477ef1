"""One log cut into windows: start rows, what is judged, commands before and within.

The arrays of a log are a `Part`; `windows` stacks the parts of all logs.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from trueup.calibrate.base_channels import base_part
from trueup.calibrate.noise import position_noise, smooth, true_velocity, velocity_noise
from trueup.core.errors import TrueupError
from trueup.data.log import Log
from trueup.robot.load import Robot

FloatArray = NDArray[np.float64]
Part = dict[str, "FloatArray | NDArray[np.bool_]"]
SATURATED = 0.98  # of the torque limit
_ALWAYS = 0.5  # of the samples
_AFTER_S = 0.05  # a joint still carries the error of a saturated moment for about this long


def cut_log(
    robot: Robot,
    log: Log,
    *,
    window_s: float,
    warm_up_s: float,
    max_delay_s: float,
    free_base: bool,
    mask_saturated: bool,
) -> Part:
    """The arrays of one log's windows."""
    start, warm, length = _starts(log, window_s, warm_up_s)
    rows = start[:, None] + np.arange(length)
    keep = np.ones((len(start), length), bool)
    keep[:, :warm] = False
    if len(start) > 1:
        keep[-1] &= rows[-1] > rows[-2, -1]
    past = math.ceil(max_delay_s * log.rate_hz) + 1
    position, velocity = smooth(log)
    sensed, sigma = [log["joint_pos"]], [position_noise(log["joint_pos"])]
    if "joint_vel" in log:
        sensed.append(true_velocity(log["joint_vel"], velocity))
        sigma.append(velocity_noise(sensed[1], velocity))
    full = saturated(robot, log, velocity) if mask_saturated else np.zeros_like(position, bool)
    always = (
        full.mean(axis=0) > _ALWAYS
    )  # then the gains are not the servo's, and masking would leave nothing
    fine = ~full | always
    fine = np.concatenate([fine] * len(sensed), axis=1)
    part: Part = {
        "past": log["target_pos"][np.maximum(start[:, None] + np.arange(-past, 0), 0)],
        "target": log["target_pos"][rows],
        "pos": position[start],
        "vel": velocity[start],
        "measured": np.concatenate(sensed, axis=1)[rows + 1],
        "judged": keep[:, :, None] & fine[rows + 1],
        "sigma": np.concatenate(sigma),
        "moved": np.ptp(position, axis=0) / np.maximum(sigma[0], 1e-4),
        "always": always,
    }
    for name in ("target_vel", "target_torque"):
        if name in log and np.any(log[name]):
            part[name] = log[name][rows]
    for name in ("target_kp", "target_kd"):
        if name in log:
            part[name] = _constant(log, name, rows)
    return base_part(part, log, start, rows, keep) if free_base else part


def _starts(log: Log, window_s: float, warm_up_s: float) -> tuple[NDArray[np.intp], int, int]:
    """Start rows, samples of warm-up, samples of a window."""
    rate, warm = log.rate_hz, round(warm_up_s * log.rate_hz)
    judged = len(log) - 1 - warm if math.isinf(window_s) else max(2, round(window_s * rate))
    length = warm + judged
    if judged < 2 or len(log) < length + 1:
        raise TrueupError(
            f"a log of {len(log) / rate:.1f} s is too short for windows of {window_s:g} s after "
            f"{warm_up_s} s of warm-up; record at least 10 s, or ask for shorter windows"
        )
    start = np.arange(0, len(log) - 1 - length + 1, judged)
    if start[-1] + length < len(log) - 1:  # the rest, in a window that overlaps the last one
        start = np.append(start, len(log) - 1 - length)
    return start, warm, length


def padded(parts: list[Part]) -> None:
    """Give whole logs of different lengths one length: commands are held at the end and nothing more is judged."""
    longest = max(part["target"].shape[1] for part in parts)
    for part in parts:
        more = longest - part["target"].shape[1]
        if more == 0:
            continue
        for name in ("target", "target_vel", "target_torque", "measured", "base_quat", "judged"):
            if name in part:
                end = np.repeat(part[name][:, -1:], more, axis=1)
                part[name] = np.concatenate([part[name], end], axis=1)
        part["judged"][:, -more:] = False


def _constant(log: Log, name: str, rows: NDArray[np.intp]) -> FloatArray:
    values = log[name][rows]
    if (values != values[:, :1]).any():
        raise TrueupError(f"{name!r} changes within a window: cut the log where the gains change", place=name)
    return values[:, 0]


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
    for shift in range(1, round(_AFTER_S * log.rate_hz) + 1):
        after[shift:] |= full[:-shift]
    return after
