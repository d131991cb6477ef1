"""A log on another clock: measured signals interpolated, commands held."""

from __future__ import annotations

import numpy as np

from trueup.core.errors import TrueupError
from trueup.data.log import Log


def resample(log: Log, rate_hz: float) -> Log:
    """Return the log on a uniform clock of `rate_hz` from its first to its last sample.

    Measured signals are interpolated linearly, commands (`target_*`) keep the last value sent.
    """
    if not 0 < rate_hz <= 1e6:
        raise TrueupError(f"a rate must lie between 0 and 1 MHz, found {rate_hz}")
    if len(log) < 2 or not (np.diff(log.time) > 0).all():
        raise TrueupError(
            "resampling needs at least two samples whose time only rises; run `trueup data check`"
        )
    count = int(np.floor((log.time[-1] - log.time[0]) * rate_hz + 1e-6)) + 1
    time = log.time[0] + np.arange(count) / rate_hz
    held = np.clip(np.searchsorted(log.time, time + 1e-9, side="right") - 1, 0, len(log) - 1)
    signals = {
        name: values[held]
        if name.startswith("target_")
        else np.stack([np.interp(time, log.time, column) for column in values.T], axis=1)
        for name, values in log.signals.items()
    }
    return Log(time=time, joint_names=log.joint_names, signals=signals, meta=log.meta)


def is_uniform(log: Log, tolerance: float = 0.25) -> bool:
    """Whether every sample lies within `tolerance` of a sampling period of a uniform clock."""
    if len(log) < 3:
        return True
    grid = np.linspace(log.time[0], log.time[-1], len(log))
    return bool(np.abs(log.time - grid).max() <= tolerance * (grid[1] - grid[0]))
