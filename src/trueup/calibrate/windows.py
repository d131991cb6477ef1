"""Logs cut into windows for multiple shooting: start states, commands before and within, measurements, weights.

Windows of all logs are stacked, so that one batch carries them all. Each begins `warm_up_s` before the samples that it
is judged on: there the error of a measured start state dies away, instead of entering the parameters.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from trueup.calibrate.noise import position_noise, smooth, velocity_noise
from trueup.core.errors import TrueupError
from trueup.data.log import Log
from trueup.data.resample import is_uniform, resample
from trueup.robot.load import Robot

FloatArray = NDArray[np.float64]
SATURATED = 0.98  # of the torque limit
_WINDOWS = 8
_AFTER_S = 0.05  # a joint still carries the error of a saturated moment for about this long


@dataclass(frozen=True, kw_only=True)
class WindowCfg:
    """How logs are cut.

    window_s   judged part of a window; None: an eighth of the data, between 0.5 and 2 s
    warm_up_s  simulated before it and not judged
    max_windows  more than these are thinned evenly: minutes of data say little more and cost as much
    max_delay_s  commands this old may still be under way at a window's start
    """

    window_s: float | None = None
    warm_up_s: float = 0.3
    max_windows: int = 40
    max_delay_s: float = 0.04

    def __post_init__(self) -> None:
        if self.max_windows < 1:
            raise TrueupError("max_windows must be at least 1")
        if (self.window_s is not None and self.window_s <= 0) or self.warm_up_s < 0:
            raise TrueupError("window_s must be positive, warm_up_s not negative")

    def judged_s(self, logs: Sequence[Log]) -> float:
        """Length of a window's judged part for these logs; enough windows for their scatter to mean something."""
        if self.window_s is not None:
            return self.window_s
        return float(np.clip(sum(len(log) / log.rate_hz for log in logs) / _WINDOWS, 0.5, 2.0))


@dataclass(frozen=True, kw_only=True)
class Windows:
    """Stacked windows; L judged or warm-up samples after the start, channels = positions then velocities.

    past      (nwindow, P, njoint) commands before the start
    target    (nwindow, L, njoint); target_vel and torque likewise, None when unused
    pos, vel  (nwindow, nq or njoint) start state, as measured
    base_pos, base_vel  (nwindow, 7 | 6) of a floating base; None when held
    kp, kd    (nwindow, njoint) gains in force; None: the spec's
    measured  (nwindow, L, nchannel)
    judged    (nwindow, L, nchannel) bool
    sigma     (nchannel,) noise
    """

    rate_hz: float
    joint_names: tuple[str, ...]
    past: FloatArray
    target: FloatArray
    target_vel: FloatArray | None
    torque: FloatArray | None
    pos: FloatArray
    vel: FloatArray
    base_pos: FloatArray | None
    base_vel: FloatArray | None
    kp: FloatArray | None
    kd: FloatArray | None
    measured: FloatArray
    judged: NDArray[np.bool_]
    sigma: FloatArray
    still: NDArray[np.bool_]  # (njoint,) joints that hardly moved

    @property
    def count(self) -> int:
        return len(self.target)


def cut_windows(
    robot: Robot, logs: Sequence[Log], cfg: WindowCfg, *, free_base: bool = False, mask_saturated: bool = True
) -> Windows:
    """Cut logs of one robot into windows on one clock; the first log's rate is used for all."""
    logs = [log.with_joint_order(robot.spec.joint_names) for log in logs]
    rate = logs[0].rate_hz
    logs = [_on_clock(log, rate) for log in logs]
    cfg = replace(cfg, window_s=cfg.judged_s(logs))
    parts = [_cut(robot, log, cfg, free_base, mask_saturated) for log in logs]
    return _thinned(_stack(robot, logs, parts, rate), cfg.max_windows)


def _on_clock(log: Log, rate: float) -> Log:
    for name in ("joint_pos", "target_pos"):
        if not np.isfinite(log[name]).all():
            raise TrueupError(f"{name!r} holds values that are not finite; run `trueup data check`")
    if is_uniform(log) and abs(log.rate_hz / rate - 1) < 1e-3:
        return log
    return resample(log, rate)


_Part = dict[str, "FloatArray | NDArray[np.bool_]"]


def _cut(robot: Robot, log: Log, cfg: WindowCfg, free_base: bool, mask_saturated: bool) -> _Part:
    """The arrays of one log's windows."""
    rate = log.rate_hz
    window_s = cfg.judged_s([log])
    warm, judged = round(cfg.warm_up_s * rate), max(2, round(window_s * rate))
    length = warm + judged
    if len(log) < length + 1:
        raise TrueupError(
            f"a log of {len(log) / rate:.1f} s is too short for windows of {window_s:g} s after "
            f"{cfg.warm_up_s} s of warm-up; record at least 10 s, or ask for shorter windows"
        )
    start = np.arange(0, len(log) - 1 - length + 1, judged)
    if start[-1] + length < len(log) - 1:  # the rest, in a window that overlaps the last one
        start = np.append(start, len(log) - 1 - length)
    rows = start[:, None] + np.arange(length)
    keep = np.ones((len(start), length), bool)
    keep[:, :warm] = False
    if len(start) > 1:
        keep[-1] &= rows[-1] > rows[-2, -1]
    past = math.ceil(cfg.max_delay_s * rate) + 1
    position, velocity = smooth(log)
    has_vel = "joint_vel" in log
    sensed = [log["joint_pos"]] + ([log["joint_vel"]] if has_vel else [])
    fine = np.ones_like(log["joint_pos"], bool)
    if mask_saturated:
        fine = ~saturated(robot, log, velocity)
    fine = np.concatenate([fine] * len(sensed), axis=1)
    sigma = [position_noise(log["joint_pos"])]
    if has_vel:
        sigma.append(velocity_noise(log["joint_vel"], velocity))
    part: _Part = {
        "past": log["target_pos"][np.maximum(start[:, None] + np.arange(-past, 0), 0)],
        "target": log["target_pos"][rows],
        "pos": position[start],
        "vel": velocity[start],
        "measured": np.concatenate(sensed, axis=1)[rows + 1],
        "judged": keep[:, :, None] & fine[rows + 1],
        "sigma": np.concatenate(sigma),
        "moved": np.ptp(position, axis=0) / np.maximum(sigma[0], 1e-4),
    }
    for name in ("target_vel", "target_torque"):
        if name in log and np.any(log[name]):
            part[name] = log[name][rows]
    for name in ("target_kp", "target_kd"):
        if name in log:
            part[name] = _constant(log, name, rows)
    if free_base:
        part["base_pos"] = np.concatenate([log["base_pos"], log["base_quat"]], axis=1)[start]
        part["base_vel"] = np.concatenate([log["base_vel"], log["imu_gyro"]], axis=1)[start]
    return part


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


def _stack(robot: Robot, logs: Sequence[Log], parts: list[_Part], rate: float) -> Windows:
    """Windows of all logs in one; signals that only some logs have take part only if all have them."""

    def join(name: str) -> FloatArray | None:
        found = [part[name] for part in parts if name in part]
        if len(found) != len(parts):
            return None if not found else _filled(robot, name, parts)
        return np.concatenate(found)

    channels = min(part["measured"].shape[-1] for part in parts)
    for part in parts:
        part["measured"], part["judged"] = part["measured"][..., :channels], part["judged"][..., :channels]
    must = {name: np.concatenate([part[name] for part in parts]) for name in _MUST}
    noise = np.sqrt(np.mean([part["sigma"][:channels] ** 2 for part in parts], axis=0))
    return Windows(
        rate_hz=rate,
        joint_names=robot.spec.joint_names,
        target_vel=join("target_vel"),
        torque=join("target_torque"),
        kp=join("target_kp"),
        kd=join("target_kd"),
        base_pos=join("base_pos"),
        base_vel=join("base_vel"),
        sigma=noise,
        still=np.max([part["moved"] for part in parts], axis=0) < _MOVES_NOISES,
        **must,
    )


def _thinned(windows: Windows, most: int) -> Windows:
    """At most so many windows, evenly spread over the logs."""
    if windows.count <= most:
        return windows
    keep = np.round(np.linspace(0, windows.count - 1, most)).astype(np.intp)
    arrays = {name: getattr(windows, name) for name in (*_MUST, *_MAY)}
    return replace(windows, **{name: a[keep] for name, a in arrays.items() if a is not None})


_MAY = ("target_vel", "torque", "kp", "kd", "base_pos", "base_vel")
_MUST = ("past", "target", "pos", "vel", "measured", "judged")
_MOVES_NOISES = 30.0  # a joint whose whole motion is below this many noises says nothing about its motion


def _filled(robot: Robot, name: str, parts: list[_Part]) -> FloatArray:
    """A command that only some logs have: the spec's gain, or zero, elsewhere."""
    spec = robot.spec
    default = {"target_kp": spec.kp, "target_kd": spec.kd}.get(name, np.zeros(spec.njoint))
    out = []
    for part in parts:
        like = part["pos"] if name in ("target_kp", "target_kd") else part["target"]
        out.append(part.get(name, np.broadcast_to(default, like.shape)))
    return np.concatenate(out)
