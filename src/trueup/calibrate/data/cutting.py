"""One log cut into windows: start rows, what is judged, commands before and within.

The arrays of a log are a `Part`; `windows` stacks the parts of all logs. Windows end where gains change; only where
they never rest for the length of a window do windows run across changes, and the simulation follows the gains.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from trueup.calibrate.data.base_channels import base_part
from trueup.calibrate.data.noise import position_noise, true_velocity, velocity_noise
from trueup.data.log import Log
from trueup.data.resample import rate_of
from trueup.robot.load import Robot
from trueup.world.replay.smoothing import smooth

FloatArray = NDArray[np.float64]
Rows = NDArray[np.intp]
Part = dict[str, "FloatArray | NDArray[np.bool_]"]
SATURATED = 0.98  # of the torque limit
_ALWAYS = 0.5  # of the samples
_AFTER_S = 0.05  # a joint still carries the error of a saturated moment for about this long


@dataclass(frozen=True, kw_only=True)
class Cut:
    """How logs of one rate are cut, in rows.

    judged   of a window; None: whole logs
    warm     before them, not judged
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
    """(first, end) of the stretches in which gains stay."""
    change = np.zeros(max(len(log) - 1, 0), bool)
    for name in ("target_kp", "target_kd"):
        if name in log:
            change |= (log[name][1:] != log[name][:-1]).any(axis=1)
    return list(pairwise([0, *(np.flatnonzero(change) + 1).tolist(), len(log)]))


def cut_log(robot: Robot, log: Log, cut: Cut, *, free_base: bool, mask_saturated: bool) -> Part:
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
    part: Part = {
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
    for name in ("target_vel", "target_torque"):
        if name in log and np.any(log[name]):
            part[name] = log[name][rows]
    for name in ("target_kp", "target_kd"):
        if name in log:
            part[name] = log[name][rows] if cut.follows else log[name][start]
    return base_part(part, log, start, rows, keep) if free_base else part


def _rows(stretches: Sequence[tuple[int, int]], cut: Cut) -> tuple[Rows, Rows, NDArray[np.bool_]]:
    """Start rows (n,), rows of commands (n, L), and which of them are judged (n, L)."""
    starts, keeps = [], []
    for first, end in stretches:
        length = end - first - 1 if cut.judged is None else cut.warm + cut.judged
        start = np.arange(first, end - length, length - cut.warm)
        keep = np.ones((len(start), length), bool)
        keep[:, : cut.warm] = False
        rest = end - 1 - length  # where a window must start to reach the end
        if start[-1] < rest:  # the rest, in a window that overlaps the last one
            again = rest + np.arange(length) <= start[-1] + length - 1
            keep = np.concatenate([keep, (keep[:1] & ~again[None])])
            start = np.append(start, rest)
        starts.append(start)
        keeps.append(keep)
    start, keep = np.concatenate(starts), np.concatenate(keeps)
    return start, start[:, None] + np.arange(keep.shape[1]), keep


def padded(parts: list[Part]) -> None:
    """Give whole logs of different lengths one length: commands are held at the end and nothing more is judged."""
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


_IN_TIME = (
    "target",
    "target_vel",
    "target_torque",
    "target_kp",
    "target_kd",
    "measured",
    "base_quat",
    "judged",
)


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
