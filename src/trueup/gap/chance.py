"""What a search gains by chance: on windows that the model itself made, with the noise of the log's encoders."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from trueup.gap.causes.hypotheses import HYPOTHESES
from trueup.gap.causes.search import Search
from trueup.gap.windows import Windows
from trueup.world.replay.playback import joint_seen, play


def by_chance(search: Search, causes: Sequence[str], seed: int) -> dict[str, float]:
    """Share of the log's mismatch that each cause's search explains of a log in which nothing is wrong."""
    chosen = [one for one in HYPOTHESES if one.cause in causes]
    if not chosen:
        return {}
    clean = own_windows(search, seed)
    again = Search(search.model, clean)
    whole = float(search.before[clean.held].sum())
    out: dict[str, float] = {}
    for one in chosen:
        tested = again.test(one)
        gained = float((tested.before[clean.held] - tested.after[clean.held]).sum())
        out[one.cause] = max(out.get(one.cause, 0.0), gained / max(whole, 1e-12))
    return out


def own_windows(search: Search, seed: int) -> Windows:
    """The windows with joint positions as the model makes them, plus noise; the base's sensors without."""
    windows, model = search.windows, search.model
    sim = model.sim(windows.count, windows.rate_hz, windows, 1)
    out = play(sim, windows.recorded)
    pos = joint_seen(sim, out["qpos"])
    pos = np.where(np.isfinite(pos), pos, windows.measured)
    noise = encoder_noise(windows)
    drawn = np.random.default_rng(seed).standard_normal(pos.shape)
    return replace(windows, measured=pos + noise * drawn, gyro=None, gravity=None)


def encoder_noise(windows: Windows) -> float:
    """Standard deviation of white noise in measured positions, rad, by third differences."""
    third = np.diff(windows.measured, n=3, axis=1)
    return float(np.median(np.abs(third)) / 0.6745 / np.sqrt(20.0))
