"""Rates of logs, and a log on another clock: measured signals interpolated, commands held."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trueup.core.arrays import FloatArray
from trueup.core.errors import TrueupError
from trueup.data.log import Log

# Clocks that differ by less count as one rate: stretching time by so little changes an inertia by 0.5 %, while
# resampling would move held commands by up to a whole sample.
SAME_RATE = 2.5e-3
_WHOLE_HZ = 1.5e-3


def rate_of(log: Log) -> float:
    """Sampling rate of a log, Hz: the mean of an even clock, the median of an uneven one.

    A rate near a whole number is that number, so that parts of one log have exactly one rate.
    """
    if len(log) < 2 or not (np.isfinite(log.time).all() and log.time[-1] > log.time[0]):
        raise TrueupError("a log needs at least two samples and a clock that runs; run `trueup data check`")
    mean = (len(log) - 1) / float(log.time[-1] - log.time[0])
    rate = mean if is_uniform(log) else _median_rate(log)
    whole = float(round(rate))
    return whole if whole > 0 and abs(rate / whole - 1.0) < _WHOLE_HZ else rate


def _median_rate(log: Log) -> float:
    step = float(np.median(np.diff(log.time)))
    if step <= 0.0:
        raise TrueupError("most time stamps of the log do not rise; run `trueup data check`", place="time")
    return 1.0 / step


def common_rate(logs: Sequence[Log]) -> float:
    """The rate at which most of the recorded time was sampled; the first log's when it is a tie."""
    rates = np.array([rate_of(log) for log in logs])
    seconds = np.array([len(log) for log in logs]) / rates
    alike = np.abs(rates[:, None] / rates - 1.0) <= SAME_RATE
    return float(rates[int((alike * seconds).sum(axis=1).argmax())])


def at_rate(log: Log, rate_hz: float) -> Log:
    """The log itself if it has this rate already (see SAME_RATE) on an even clock, else resampled."""
    same = is_uniform(log) and abs(rate_of(log) / rate_hz - 1.0) <= SAME_RATE
    return log if same else resample(log, rate_hz)


def resample(log: Log, rate_hz: float) -> Log:
    """Return the log on a uniform clock of `rate_hz` from its first to its last sample.

    Measured signals are interpolated linearly, commands (`target_*`) keep the last value sent.
    """
    if not 0 < rate_hz <= 1e6:
        raise TrueupError(f"a rate must lie between 0 and 1 MHz, found {rate_hz}")
    if len(log) < 2 or not (np.diff(log.time) > 0).all():
        raise TrueupError("resampling needs at least two samples whose time only rises; run `trueup data check`")
    count = int(np.floor((log.time[-1] - log.time[0]) * rate_hz + 1e-6)) + 1
    time = log.time[0] + np.arange(count) / rate_hz
    signals = {
        name: held(log.time, values, time + 1e-9)
        if name.startswith("target_")
        else interpolated(log.time, values, np.minimum(time, log.time[-1]))
        for name, values in log.signals.items()
    }
    return Log(time=time, joint_names=log.joint_names, signals=signals, meta=log.meta)


def held(own: FloatArray, values: FloatArray, at: FloatArray) -> FloatArray:
    """The last of `values` (n, k) at or before each time `at`; NaN before the first. `own` (n,) rises."""
    place = np.searchsorted(own, at, side="right") - 1
    out = values[np.maximum(place, 0)]
    out[place < 0] = np.nan
    return out


def interpolated(own: FloatArray, values: FloatArray, at: FloatArray) -> FloatArray:
    """`values` (n, k) at the times `at`, linear between those at `own`; NaN outside of them."""
    columns = [np.interp(at, own, column, left=np.nan, right=np.nan) for column in values.T]
    return np.stack(columns, axis=1) if columns else np.zeros((len(at), 0))


def is_uniform(log: Log, tolerance: float = 0.25) -> bool:
    """Whether every sample lies within `tolerance` of a sampling period of a uniform clock."""
    if len(log) < 3:
        return True
    grid = np.linspace(log.time[0], log.time[-1], len(log))
    return bool(np.abs(log.time - grid).max() <= tolerance * (grid[1] - grid[0]))
