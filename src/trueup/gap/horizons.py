"""Mismatch by signal and horizon: one step, 0.1 s, 1 s from measured states, and the whole log from its first."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trueup.core.arrays import FloatArray
from trueup.data.log import Log
from trueup.gap.mismatch import Model, base_seen
from trueup.gap.result import Horizon
from trueup.gap.windows import LogWindows, cut
from trueup.world.replay.playback import joint_seen, play

_AT = {"one step": 0.0, "0.1 s": 0.1, "1 s": 1.0}
_WINDOWS = 16
_WHOLE_S = 20.0  # of a log that is replayed open loop


def horizons(model: Model, logs: Sequence[Log], windows: LogWindows) -> list[Horizon]:
    """Root mean square mismatch of every signal at every horizon within the logs' length."""
    log, out = logs[0], []
    seconds = float(log.time[-1] - log.time[0])
    for name, horizon_s in _AT.items():
        if seconds > 3.0 * horizon_s + 0.5:
            length_s = max(horizon_s, 2.0 / windows.rate_hz)
            some = cut(model.robot, log, walking=model.walking, window_s=length_s, most=_WINDOWS)
            out += _at(model, some, name, 0 if horizon_s == 0.0 else -1)
    if not model.walking and seconds > 2.0:
        length_s = min(seconds - 0.5, _WHOLE_S)
        whole = cut(model.robot, log, walking=False, window_s=length_s, most=2)
        out += _at(model, whole, "whole log", None)
    return out


def _at(model: Model, windows: LogWindows, name: str, row: int | None) -> list[Horizon]:
    sim = model.sim(windows.count, windows.rate_hz, windows, 1)
    out = play(sim, windows.recorded)
    rows = slice(None) if row is None else slice(row, None if row == -1 else row + 1)
    found = [_rms("joint_pos", "rad", name, joint_seen(sim, out["qpos"])[:, rows], windows.measured[:, rows],
                  windows.recorded.pos[:, None])]  # fmt: skip
    down, spin = base_seen(sim, out)
    if windows.gravity is not None:
        found.append(_rms("gravity", "1", name, down[:, rows], windows.gravity[:, rows], windows.gravity[:, :1]))
    if windows.gyro is not None:
        found.append(_rms("imu_gyro", "rad/s", name, spin[:, rows], windows.gyro[:, rows], windows.gyro[:, :1]))
    return found


def _rms(signal: str, unit: str, name: str, simulated: FloatArray, measured: FloatArray, start: FloatArray) -> Horizon:
    def root(values: FloatArray) -> float:
        return float(np.sqrt(np.mean(np.square(np.nan_to_num(values, nan=1e3)))))

    return Horizon(
        signal=signal, unit=unit, horizon=name, error=root(simulated - measured), moved=root(measured - start)
    )
