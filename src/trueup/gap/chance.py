"""Gain of a search by chance: measured on windows simulated by the model itself, with the log's noise.

Noise of the encoders, and of the base's state where it comes from legs and IMU: a foot that lands a moment early or
late changes a whole window, and some change of the model always seems to explain a few such windows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from trueup.gap.causes.hypotheses import HYPOTHESES
from trueup.gap.causes.search import CauseSearch
from trueup.gap.mismatch import base_seen
from trueup.gap.windows import LogWindows
from trueup.world.replay.playback import RecordedStretch, joint_seen, play


def by_chance(search: CauseSearch, causes: Sequence[str], seed: int) -> dict[str, float]:
    """Mismatch that each cause's search explains on held-out windows of a log without any fault."""
    chosen = [one for one in HYPOTHESES if one.cause in causes]
    if not chosen:
        return {}
    clean = own_windows(search, seed)
    again = CauseSearch(search.model, clean)
    out: dict[str, float] = {}
    for one in chosen:
        tested = again.test(one)
        gained = float((tested.before[clean.held] - tested.after[clean.held]).sum())
        out[one.cause] = max(out.get(one.cause, 0.0), gained)
    return out


def own_windows(search: CauseSearch, seed: int) -> LogWindows:
    """The windows with the model's simulated sensor readings plus noise."""
    windows, model, rng = search.windows, search.model, np.random.default_rng(seed)
    sim = model.sim(windows.count, windows.rate_hz, windows, 1)
    out = play(sim, _elsewhere(windows, rng))
    pos = joint_seen(sim, out["qpos"])
    pos = np.where(np.isfinite(pos), pos, windows.measured)
    pos += encoder_noise(windows) * rng.standard_normal(pos.shape)
    down, spin = base_seen(sim, out)
    gravity = None if windows.gravity is None else down
    return replace(windows, measured=pos, gyro=None if windows.gyro is None else spin, gravity=gravity)


def _elsewhere(windows: LogWindows, rng: np.random.Generator) -> RecordedStretch:
    """The starts of the windows disturbed by the error of the base's state estimate."""
    recorded, (up, along) = windows.recorded, windows.base_noise
    if recorded.base_pos is None or recorded.base_vel is None or max(up, along) == 0.0:
        return recorded
    pos, vel = recorded.base_pos.copy(), recorded.base_vel.copy()
    pos[:, 2] += up * rng.standard_normal(len(pos))
    vel[:, :3] += along * rng.standard_normal((len(vel), 3))
    return replace(recorded, base_pos=pos, base_vel=vel)


def encoder_noise(windows: LogWindows) -> float:
    """Standard deviation of white noise in measured positions, rad, by third differences."""
    third = np.diff(windows.measured, n=3, axis=1)
    return float(np.median(np.abs(third)) / 0.6745 / np.sqrt(20.0))
