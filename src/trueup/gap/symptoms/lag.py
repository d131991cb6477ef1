"""Delay from a command to the motor's answer, in rows of a log whose torque is reported.

A servo's torque is tau = a heard - b q - c dq + e with the target `heard` that was in force at the motor. The number of
rows by which targets must be shifted to explain the torques best is the delay, up to one row: a command of row t that
is heard before row t + k is read acts there. So the delay lies between (k - 1) and k rows.
"""

from __future__ import annotations

import numpy as np

from trueup.core.arrays import FloatArray
from trueup.data.log import Log

_LONGEST_S = 0.15
_CONTRAST = 0.8  # residual of the best shift against the next best but one, beyond which it does not tell


def least_delay_s(log: Log) -> float:
    """Least delay that explains the torques, s; NaN where the log does not tell."""
    if any(name not in log for name in ("joint_torque", "joint_vel", "target_pos")) or len(log) < 50:
        return float("nan")
    most = max(3, round(_LONGEST_S * log.rate_hz))
    shifts = range(1, most + 1)
    residual = np.array([_residual(log, shift, most) for shift in shifts])
    best = int(np.argmin(residual))
    others = np.delete(residual, slice(max(0, best - 1), best + 2))
    if not len(others) or residual[best] > _CONTRAST * others.min():
        return float("nan")
    return best / log.rate_hz


def _residual(log: Log, shift: int, most: int) -> float:
    """Sum over joints of the share of the torque's variance that a servo with this delay leaves open."""
    heard = log["target_pos"][most - shift : len(log) - shift]
    rest = [log[name][most:] for name in ("joint_pos", "joint_vel")]
    torque = log["joint_torque"][most:]
    return float(
        np.mean([_open(torque[:, j], heard[:, j], *(one[:, j] for one in rest)) for j in range(heard.shape[1])])
    )


def _open(torque: FloatArray, *causes: FloatArray) -> float:
    design = np.column_stack([*causes, np.ones(len(torque))])
    left = torque - design @ np.linalg.lstsq(design, torque, rcond=None)[0]
    return float(left.var() / max(float(torque.var()), 1e-12))
