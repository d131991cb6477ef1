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

from trueup.calibrate.config import WindowCfg
from trueup.calibrate.data.cutting import Cut, Part, cut_log, need_base, padded
from trueup.core.errors import TrueupError
from trueup.data.log import Log
from trueup.data.resample import at_rate, common_rate, rate_of
from trueup.robot.load import Robot
from trueup.world.replay.playback import Recorded
from trueup.world.replay.tracks import require_finite

FloatArray = NDArray[np.float64]
_WINDOWS = 8
_FREE_WINDOW_S = 0.1
_SHORTEST_S = 0.5  # of windows whose length is not asked for
_MOST_OF_DATA = 0.5


@dataclass(frozen=True, kw_only=True)
class Windows:
    """Stacked windows of L samples after the start, warm-up and judged.

    Channels are joint positions, joint velocities (if logged), and with a free base its position, rotation (a vector,
    simulated against measured), velocity and turning rate.

    past      (nwindow, P, njoint) commands before the start
    target    (nwindow, L, njoint); target_vel and torque likewise, None when unused
    pos, vel  (nwindow, nq or njoint) start state, as measured
    base_pos, base_vel  (nwindow, 7 | 6) of a floating base; None when held
    kp, kd    (nwindow, njoint) gains in force, (nwindow, L, njoint) where they never rest; None: the spec's
    measured  (nwindow, L, nchannel)
    judged    (nwindow, L, nchannel) bool
    sigma     (nchannel,) noise
    still     (njoint,) joints that hardly moved
    base_quat (nwindow, L, 4) measured; what the rotation channels are relative to
    notes     what a reader of the result should know about the data
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
    still: NDArray[np.bool_]
    base_quat: FloatArray | None = None
    notes: tuple[str, ...] = ()

    @property
    def count(self) -> int:
        return len(self.target)

    @property
    def recorded(self) -> Recorded:
        """The windows as a simulation plays them."""
        names = ("pos", "vel", "past", "target", "target_vel", "torque", "kp", "kd", "base_pos", "base_vel")
        return Recorded(**{name: getattr(self, name) for name in names})


def cut_windows(
    robot: Robot, logs: Sequence[Log], cfg: WindowCfg, *, free_base: bool = False, mask_saturated: bool = True
) -> Windows:
    """Cut logs of one robot into windows on one clock; logs too short for a window are left out."""
    logs = [log.with_joint_order(robot.spec.joint_names) for log in logs]
    for log in logs:
        require_finite(log)
    rate = common_rate(logs)
    logs = [at_rate(log, rate) for log in logs]
    if free_base:
        need_base(logs)
    cut, most = _cut(logs, cfg, rate, free_base=free_base)
    enough = [log for log in logs if cut.stretches(log)]
    parts = [cut_log(robot, log, cut, free_base=free_base, mask_saturated=mask_saturated) for log in enough]
    windows = _thinned(_stack(robot, parts, rate, follows=cut.follows), most)
    if len(enough) == len(logs):
        return windows
    left = f"{len(logs) - len(enough)} of {len(logs)} logs are shorter than a window and were left out"
    return replace(windows, notes=(*windows.notes, left))


def _cut(logs: Sequence[Log], cfg: WindowCfg, rate: float, *, free_base: bool) -> tuple[Cut, int]:
    """Rows of windows for these logs, and how many windows at most."""
    window_s, warm_up_s, most = _judged_s(cfg, logs), cfg.warm_up_s, cfg.max_windows
    if free_base and cfg.window_s is None:
        # soon after a contact two motions have nothing in common any more
        window_s, warm_up_s, most = _FREE_WINDOW_S, 0.0, 4 * most
    warm, past = round(warm_up_s * rate), math.ceil(cfg.max_delay_s * rate) + 1
    if math.isinf(window_s):
        cut = Cut(judged=None, warm=warm, past=past, follows=True)
    else:
        judged = max(2, round(window_s * rate))
        shortest = judged if cfg.window_s is not None or free_base else max(2, round(_SHORTEST_S * rate))
        cut = _longest(logs, Cut(judged=judged, warm=warm, past=past, follows=False), shortest)
    if not any(cut.stretches(log) for log in logs):
        longest = max(len(log) for log in logs) / rate
        raise TrueupError(
            f"a log of {longest:.1f} s is too short for windows of {(cut.judged or 2) / rate:g} s after "
            f"{warm_up_s} s of warm-up; record at least 10 s, or ask for shorter windows"
        )
    return cut, most


def _judged_s(cfg: WindowCfg, logs: Sequence[Log]) -> float:
    """Length of the compared part of a window; enough windows for their scatter to mean something."""
    if cfg.window_s is not None:
        return cfg.window_s
    return float(np.clip(sum(len(log) / rate_of(log) for log in logs) / _WINDOWS, 0.5, 2.0))


def _longest(logs: Sequence[Log], cut: Cut, shortest: int) -> Cut:
    """The longest windows, down to `shortest` rows, that fit most of the data; across changes of gains if need be."""
    for follows in (False, True):
        for judged in dict.fromkeys([cut.judged or shortest, shortest]):
            one = replace(cut, judged=judged, follows=follows)
            inside = sum(b - a for log in logs for a, b in one.stretches(log))
            if inside >= _MOST_OF_DATA * sum(len(log) for log in logs):
                return one
    return replace(cut, judged=shortest, follows=True)


def _stack(robot: Robot, parts: list[Part], rate: float, *, follows: bool) -> Windows:
    """Windows of all logs in one; signals that only some logs have take part only if all have them."""

    def join(name: str) -> FloatArray | None:
        found = [part[name] for part in parts if name in part]
        if len(found) != len(parts):
            return None if not found else _filled(robot, name, parts, follows=follows)
        return np.concatenate(found)

    padded(parts)
    channels = _common_channels(parts, robot.spec.njoint)
    for part in parts:
        part["measured"], part["judged"] = part["measured"][..., channels], part["judged"][..., channels]
    must = {name: np.concatenate([part[name] for part in parts]) for name in _MUST}
    noise = np.sqrt(np.mean([part["sigma"][channels] ** 2 for part in parts], axis=0))
    return Windows(
        rate_hz=rate,
        joint_names=robot.spec.joint_names,
        target_vel=join("target_vel"),
        torque=join("target_torque"),
        kp=join("target_kp"),
        kd=join("target_kd"),
        base_pos=join("base_pos"),
        base_vel=join("base_vel"),
        base_quat=join("base_quat"),
        sigma=noise,
        notes=_gain_note(robot, np.max([part["always"] for part in parts], axis=0)),
        still=np.max([part["moved"] for part in parts], axis=0) < _MOVES_NOISES,
        **must,
    )


def _gain_note(robot: Robot, always: NDArray[np.bool_]) -> tuple[str, ...]:
    names = [joint for joint, wrong in zip(robot.spec.joint_names, always, strict=True) if wrong]
    if not names:
        return ()
    return (
        f"with the spec's gain {', '.join(names)} would be at the torque limit most of the time, and yet followed: "
        "that gain is not the servo's. Fit the gains too: --params servo",
    )


def _common_channels(parts: list[Part], njoint: int) -> NDArray[np.intp]:
    """All channels, or those without joint velocities when a log has none."""
    counts = [part["measured"].shape[-1] for part in parts]
    most, fewest = max(counts), min(counts)
    if most == fewest:
        return np.arange(most)
    for part, count in zip(parts, counts, strict=True):
        if count == most:
            keep = np.r_[0:njoint, 2 * njoint : most]
            part["measured"], part["judged"] = part["measured"][..., keep], part["judged"][..., keep]
            part["sigma"] = part["sigma"][keep]
    return np.arange(fewest)


def _thinned(windows: Windows, most: int) -> Windows:
    """At most so many windows, evenly spread over the logs."""
    if windows.count <= most:
        return windows
    keep = np.round(np.linspace(0, windows.count - 1, most)).astype(np.intp)
    arrays = {name: getattr(windows, name) for name in (*_MUST, *_MAY)}
    return replace(windows, **{name: a[keep] for name, a in arrays.items() if a is not None})


_MAY = ("target_vel", "torque", "kp", "kd", "base_pos", "base_vel", "base_quat")
_MUST = ("past", "target", "pos", "vel", "measured", "judged")
_MOVES_NOISES = 30.0  # a joint whose whole motion is below this many noises says nothing about its motion


def _filled(robot: Robot, name: str, parts: list[Part], *, follows: bool) -> FloatArray:
    """A command that only some logs have: the spec's gain, or zero, elsewhere."""
    spec = robot.spec
    default = {"target_kp": spec.kp, "target_kd": spec.kd}.get(name, np.zeros(spec.njoint))
    out = []
    for part in parts:
        is_gain = name in ("target_kp", "target_kd")
        like = part["pos"] if is_gain and not follows else part["target"]
        out.append(part.get(name, np.broadcast_to(default, like.shape)))
    return np.concatenate(out)
