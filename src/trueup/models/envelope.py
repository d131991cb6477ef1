"""What a motor can give at a speed: the torque-speed envelope and the power limit of arXiv 2502.10894."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trueup.core.arrays import FloatArray
from trueup.models.values import Values, require_positive


@dataclass(frozen=True, kw_only=True, eq=False)
class Envelope:
    """Limits of a motor at the joint: stall torque (N m), no-load speed (rad/s), mechanical power (W).

    Floats, or arrays that broadcast against the torque. The infinite defaults switch a limit off.
    """

    torque_max: Values
    speed_max: Values = np.inf
    power_max: Values = np.inf

    def __post_init__(self) -> None:
        require_positive("torque_max", self.torque_max, finite=False)
        require_positive("speed_max", self.speed_max, finite=False)
        require_positive("power_max", self.power_max, or_zero=True, finite=False)


def torque_range(envelope: Envelope, dq: Values) -> tuple[FloatArray, FloatArray]:
    """Return the lowest and the highest torque available at velocity `dq`, N m.

    low  = -tmax (1 + clip(dq/dqmax, -1, 0))
    high =  tmax (1 - clip(dq/dqmax,  0, 1))

    then both within +-Pmax/|dq|. Torque along the motion falls linearly to zero at no-load speed; braking
    torque stays at tmax.
    """
    speed = np.asarray(np.divide(dq, envelope.speed_max), np.float64)
    low = -envelope.torque_max * (1.0 + np.clip(speed, -1.0, 0.0))
    high = envelope.torque_max * (1.0 - np.clip(speed, 0.0, 1.0))
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):  # at rest no torque does work: no bound
        bound = np.where(np.equal(dq, 0.0), np.inf, np.divide(envelope.power_max, np.abs(dq)))
    return np.maximum(low, -bound), np.minimum(high, bound)


def limit_torque(envelope: Envelope, tau: Values, dq: Values) -> FloatArray:
    """Return `tau` clipped to what the motor can give at velocity `dq`."""
    low, high = torque_range(envelope, dq)
    return np.asarray(np.clip(tau, low, high), np.float64)
