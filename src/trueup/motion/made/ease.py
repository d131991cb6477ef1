"""Smooth paths through time: minimum-jerk steps, bumps, and a centre of mass that balances over given supports."""

from __future__ import annotations

import numpy as np
from scipy.linalg import solve_banded

from trueup.core.arrays import FloatArray

GRAVITY = 9.81


def ease(time: FloatArray, start: float, end: float) -> FloatArray:
    """0 before `start`, 1 after `end`, at rest at both: 10 s^3 - 15 s^4 + 6 s^5."""
    s = np.clip((time - start) / max(end - start, 1e-9), 0.0, 1.0)
    return s**3 * (10.0 - 15.0 * s + 6.0 * s * s)


def bump(time: FloatArray, start: float, end: float) -> FloatArray:
    """0 outside, 1 in the middle, at rest at both ends: 64 s^3 (1 - s)^3."""
    s = np.clip((time - start) / max(end - start, 1e-9), 0.0, 1.0)
    return 64.0 * s**3 * (1.0 - s) ** 3


def balanced(support: FloatArray, height_m: float, rate_hz: float) -> FloatArray:
    """Centre of mass (T, k) whose point of zero moment is `support` (T, k): c - (h/g) c'' = p, at rest at the ends.

    The linear inverted pendulum (Kajita et al. 2003), solved for all rows at once.
    """
    stiff = height_m / GRAVITY * rate_hz**2
    rows = len(support)
    bands = np.zeros((3, rows))
    bands[1] = 1.0 + 2.0 * stiff
    bands[0, 1:] = bands[2, :-1] = -stiff
    bands[1, [0, -1]] = 1.0 + stiff  # the row before the first, and after the last, is like it
    out: FloatArray = solve_banded((1, 1), bands, support)  # type: ignore[no-untyped-call]
    return out
