"""Limits of each joint's excitation: from the spec and fractions of its limits.

The spec has no inertia, so torque is bounded by an acceleration limit here and predicted in the model by
`world.rehearse`, which makes the motion smaller where the prediction says so.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trueup.core.arrays import FloatArray
from trueup.core.errors import TrueupError
from trueup.robot.spec import RobotSpec

RATES_HZ = (200.0, 400.0, 500.0)
WALKING_PACE = 1.0  # rad/s


@dataclass(frozen=True, kw_only=True)
class LimitCfg:
    """Parts of the spec's limits that an excitation may use.

    amplitude_rad      largest distance from the excitation pose
    range_fraction     and at most this part of the way from that pose to the nearer position limit
    velocity_fraction  part of the velocity limit
    burst_fraction     part of the torque limit with which a servo may answer a new row: at a velocity v the target
                       jumps by v dt from row to row, and torque swings by kp v dt / 2 about its mean
    rise_s             acceleration limit: the allowed velocity may be reached in this time
    """

    amplitude_rad: float = 0.4
    range_fraction: float = 0.8
    velocity_fraction: float = 0.5
    burst_fraction: float = 0.5
    rise_s: float = 0.08

    def __post_init__(self) -> None:
        if not all(0.0 < number < np.inf for number in (self.amplitude_rad, self.burst_fraction, self.rise_s)):
            raise TrueupError("amplitude_rad, burst_fraction and rise_s must be positive")
        if not (0.0 < self.range_fraction <= 1.0 and 0.0 < self.velocity_fraction <= 1.0):
            raise TrueupError("range_fraction and velocity_fraction must lie in (0, 1]")


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """What one joint's deviation from the excitation pose may do: rad, rad/s, rad/s^2."""

    amplitude: float
    velocity: float
    acceleration: float

    def at(self, frequency_hz: FloatArray | float) -> FloatArray:
        """Largest amplitude A of a sine: A <= amplitude, A w <= velocity, A w^2 <= acceleration."""
        omega = 2.0 * np.pi * np.asarray(frequency_hz, np.float64)
        return np.minimum(self.amplitude, np.minimum(self.velocity / omega, self.acceleration / omega**2))


def joint_bounds(spec: RobotSpec, cfg: LimitCfg, *, rate_hz: float) -> tuple[Bounds, ...]:
    """Bounds of every joint in spec order; a joint whose middle lies on a limit gets no room."""
    smooth = 2.0 * rate_hz * cfg.burst_fraction * spec.torque_limit / np.maximum(spec.kp, 1e-9)
    rooms = np.minimum(spec.excitation_pose - spec.position_low, spec.position_high - spec.excitation_pose)
    return tuple(
        Bounds(
            amplitude=min(cfg.amplitude_rad, cfg.range_fraction * float(room)),
            velocity=min(cfg.velocity_fraction * float(limit), float(slow)),
            acceleration=cfg.velocity_fraction * float(limit) / cfg.rise_s,
        )
        for room, limit, slow in zip(rooms, spec.velocity_limit, smooth, strict=True)
    )


def sensible_rate_hz(spec: RobotSpec, cfg: LimitCfg | None = None) -> float:
    """The lowest customary command rate at which stiff servos still allow fast enough targets.

    See `burst_fraction`: the allowed velocity rises with the rate. One that lets every joint move at WALKING_PACE (or
    at what its own limit grants) will do.
    """
    cfg = cfg or LimitCfg()
    wanted = np.minimum(WALKING_PACE, cfg.velocity_fraction * spec.velocity_limit)
    per_hz = 2.0 * cfg.burst_fraction * spec.torque_limit / np.maximum(spec.kp, 1e-9)
    return next((rate for rate in RATES_HZ if (rate * per_hz >= wanted).all()), RATES_HZ[-1])


def fit_into(wave: FloatArray, bounds: Bounds, dt: float) -> FloatArray:
    """Scale a deviation (T,) down until distance, speed and acceleration of its rows are inside; never up."""
    if len(wave) < 3:
        return wave
    peaks = (
        (np.abs(wave).max(), bounds.amplitude),
        (np.abs(np.diff(wave)).max() / dt, bounds.velocity),
        (np.abs(np.diff(wave, n=2)).max() / dt**2, bounds.acceleration),
    )
    return wave * min([1.0, *(limit / float(peak) for peak, limit in peaks if peak > limit)])
