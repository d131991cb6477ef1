"""Logs cut into windows for multiple shooting: start states, commands before and within, measurements, weights.

Windows of all logs are stacked, so that one batch carries them all. Each begins `warm_up_s` before the samples that are
compared: there the error of a measured start state decays, instead of entering the parameters.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from trueup.calibrate.config import WindowCfg
from trueup.calibrate.data.cutting import Cut, need_base, sensed, window_rows
from trueup.core.arrays import FloatArray
from trueup.core.errors import TrueupError
from trueup.data.log import Log
from trueup.data.resample import at_rate, common_rate, rate_of
from trueup.robot.load import Robot
from trueup.world.replay.playback import RecordedStretch
from trueup.world.replay.tracks import lay_tracks, require_finite

_WINDOWS = 8
_FREE_WINDOW_S = 0.1
_SHORTEST_S = 0.5  # of windows whose length is not given
_MOST_OF_DATA = 0.5
_STILL_NOISES = 30.0  # a joint whose motion is below this many noises does not identify its dynamics
_PLAYED = tuple(field_.name for field_ in fields(RecordedStretch) if field_.name != "history")


@dataclass(frozen=True, kw_only=True)
class FitWindows(RecordedStretch):
    """Stacked windows of L samples after the start, warm-up and compared ones, with what was measured there.

    Channels are joint positions, joint velocities (if logged), and with a free base its position, rotation (a vector,
    simulated against measured), velocity and angular velocity.

    measured  (nwindow, L, nchannel)
    compared    (nwindow, L, nchannel) bool: samples that are compared
    sigma     (nchannel,) noise
    still     (njoint,) joints that hardly moved
    base_quat (nwindow, L, 4) measured, reference of the rotation channels; None: a fixed base
    notes     warnings about the data for the result
    """

    rate_hz: float
    joint_names: tuple[str, ...]
    measured: FloatArray
    compared: NDArray[np.bool_]
    sigma: FloatArray
    still: NDArray[np.bool_]
    base_quat: FloatArray | None = None
    notes: tuple[str, ...] = ()

    @property
    def count(self) -> int:
        return len(self.target)

    @property
    def recorded(self) -> RecordedStretch:
        """The windows as a simulation plays them."""
        return RecordedStretch(**{name: getattr(self, name) for name in _PLAYED})


def cut_windows(
    robot: Robot, logs: Sequence[Log], cfg: WindowCfg, *, free_base: bool = False, mask_saturated: bool = True
) -> FitWindows:
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
    tracks = lay_tracks(robot, enough, free_base=free_base)
    start, keep = window_rows(enough, cut)
    if len(start) > most:  # thinned evenly
        thin = np.round(np.linspace(0, len(start) - 1, most)).astype(np.intp)
        start, keep = start[thin], keep[thin]
    after = np.minimum(start[:, None] + 1 + np.arange(keep.shape[1]), tracks.last[start][:, None] - 1)
    with_velocity, ends = all("joint_vel" in log for log in enough), np.cumsum([len(log) for log in enough])
    how = {"with_velocity": with_velocity, "free_base": free_base, "mask_saturated": mask_saturated}
    states = np.split(np.stack([tracks.pos, tracks.vel]), ends[:-1], axis=1)
    parts = [sensed(robot, log, state, **how) for log, state in zip(enough, states, strict=True)]
    recorded = tracks.recorded(start, keep.shape[1], past=cut.past)
    notes = _gain_note(robot, np.max([part.always for part in parts], axis=0))
    if len(enough) < len(logs):
        left = f"{len(logs) - len(enough)} of {len(logs)} logs are shorter than a window and were left out"
        notes = (*notes, left)
    return FitWindows(
        **{name: getattr(recorded, name) for name in _PLAYED},
        rate_hz=rate,
        joint_names=robot.spec.joint_names,
        measured=np.concatenate([part.values for part in parts])[after],
        compared=keep[:, :, None] & np.concatenate([part.fine for part in parts])[after],
        sigma=np.sqrt(np.mean([part.sigma**2 for part in parts], axis=0)),
        still=np.max([part.moved for part in parts], axis=0) < _STILL_NOISES,
        base_quat=None if tracks.base_pos is None else tracks.base_pos[after, 3:],
        notes=notes,
    )


def _cut(logs: Sequence[Log], cfg: WindowCfg, rate: float, *, free_base: bool) -> tuple[Cut, int]:
    """Rows of windows for these logs, and how many windows at most."""
    window_s, warm_up_s, most = cfg.window_s, cfg.warm_up_s, cfg.max_windows
    if window_s is None and free_base:
        # soon after a contact two motions no longer correlate
        window_s, warm_up_s, most = _FREE_WINDOW_S, 0.0, 4 * most
    elif window_s is None:  # enough windows for their scatter to mean something
        window_s = float(np.clip(sum(len(log) / rate_of(log) for log in logs) / _WINDOWS, 0.5, 2.0))
    warm, past = round(warm_up_s * rate), math.ceil(cfg.max_delay_s * rate) + 1
    if math.isinf(window_s):
        cut = Cut(compared=None, warm=warm, past=past, follows=True)
    else:
        compared = max(2, round(window_s * rate))
        shortest = compared if cfg.window_s is not None or free_base else max(2, round(_SHORTEST_S * rate))
        cut = _longest(logs, Cut(compared=compared, warm=warm, past=past, follows=False), shortest)
    if not any(cut.stretches(log) for log in logs):
        longest = max(len(log) for log in logs) / rate
        raise TrueupError(
            f"a log of {longest:.1f} s is too short for windows of {(cut.compared or 2) / rate:g} s after "
            f"{warm_up_s} s of warm-up; record at least 10 s, or ask for shorter windows"
        )
    return cut, most


def _longest(logs: Sequence[Log], cut: Cut, shortest: int) -> Cut:
    """The longest windows, down to `shortest` rows, that fit most of the data; across changes of gains if need be."""
    for follows in (False, True):
        for compared in dict.fromkeys([cut.compared or shortest, shortest]):
            longer = replace(cut, compared=compared, follows=follows)
            inside = sum(b - a for log in logs for a, b in longer.stretches(log))
            if inside >= _MOST_OF_DATA * sum(len(log) for log in logs):
                return longer
    return replace(cut, compared=shortest, follows=True)


def _gain_note(robot: Robot, always: NDArray[np.bool_]) -> tuple[str, ...]:
    names = [joint for joint, wrong in zip(robot.spec.joint_names, always, strict=True) if wrong]
    if not names:
        return ()
    return (
        f"with the spec's gain {', '.join(names)} would be at the torque limit most of the time, and yet followed: "
        "that gain is not the servo's. Fit the gains too: --params servo",
    )
