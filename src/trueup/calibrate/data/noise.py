"""How noisy a log is, from the log alone.

Position noise: a sixth difference kills motion (a 10 Hz motion at 200 Hz by 1e-3) and passes white noise with a known
gain; its median absolute value is blind to the few samples at which commands jump. Velocity noise: what is left between
the logged velocity and the derivative of position, so that a velocity that lags counts for little.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
_ORDER = 6
_GAIN = math.sqrt(math.comb(2 * _ORDER, _ORDER))
_MAD = 1.4826  # standard deviations per median absolute deviation of a normal


def position_noise(position: FloatArray) -> FloatArray:
    """Return the standard deviation of the noise of each column, at least what its quantisation makes."""
    step = quantum(position)
    if len(position) <= 4 * _ORDER:
        return np.maximum(step / math.sqrt(12), 1e-5)
    left = np.diff(position, _ORDER, axis=0)
    spread = _MAD * np.median(np.abs(left), axis=0) / _GAIN
    return np.maximum(np.maximum(spread, step / math.sqrt(12)), 1e-5)


def quantum(values: FloatArray) -> FloatArray:
    """Return the step of which all differences in a column are multiples, 0 where there is none."""
    out = np.zeros(values.shape[1])
    for k, column in enumerate(values.T):
        steps = np.diff(np.unique(column))
        steps = steps[steps > 1e-9]
        if len(steps) >= 2:
            parts = steps / steps.min()
            out[k] = steps.min() if np.abs(parts - np.round(parts)).max() < 0.01 else 0.0
    return out


def velocity_noise(velocity: FloatArray, derivative: FloatArray) -> FloatArray:
    """Return the standard deviation of each velocity column about the derivative of position."""
    return np.maximum(np.sqrt(((velocity - derivative) ** 2).mean(axis=0)), 1e-3)


def true_velocity(velocity: FloatArray, derivative: FloatArray) -> FloatArray:
    """Velocity columns whose scale is plainly wrong against the derivative of position, brought to it.

    Only a velocity that follows the derivative closely is touched, and only by a constant factor.
    """
    power = np.maximum((derivative**2).sum(axis=0), 1e-12)
    both = (velocity * derivative).sum(axis=0)
    alike = both / np.sqrt(power * np.maximum((velocity**2).sum(axis=0), 1e-12))
    scale = both / power
    wrong = (alike > _ALIKE) & (np.abs(scale - 1.0) > _SCALE)
    return velocity / np.where(wrong, scale, 1.0)


_ALIKE, _SCALE = 0.95, 0.05
