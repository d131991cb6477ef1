"""WiggleCfg: how far, how fast and how hard the wiggle test moves a robot, and what it calls a fault."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

from trueup.core.errors import TrueupError


@dataclass(frozen=True, kw_only=True)
class WiggleCfg:
    """Motion and thresholds of a wiggle test. Commands stay within the spec's position limits."""

    stops: bool = True
    """Drive every joint gently through its whole range; off: only the small wiggle, which shows no offsets."""
    rate_hz: float = 100.0
    """Commands a second."""
    speed: float = 1.3
    """Of sweeps, rad/s (m/s for slides); slow joints at most at 18 % of their velocity limit."""
    gain: float = 1.0
    """Share of the spec's kp and kd."""
    torque_fraction: float = 0.8
    """No servo is asked for more than this share of its torque limit."""
    wiggle_rad: float = 0.08
    """A joint that moved so far has answered."""
    offset_rad: float = 0.1
    """Encoder offsets above this are found. Alarm is given from three quarters of it on."""
    tilt_rad: float = 0.35
    """How far from level the base may hang."""
    limp_s: float = 2.5
    """Longest time given to the damped joints to come to rest before the test."""

    def __post_init__(self) -> None:
        for field in fields(WiggleCfg):
            value = getattr(self, field.name)
            if not (math.isfinite(value) and (value > 0 or field.name in ("stops", "limp_s"))):
                raise TrueupError(f"must be finite and above 0, found {value}", place=field.name)
        if self.torque_fraction > 1.0 or self.gain > 1.0:
            raise TrueupError("torque_fraction and gain are shares of what the robot has: 1 at most")
        if not 20.0 <= self.rate_hz <= 1000.0:
            raise TrueupError(f"rate_hz lies between 20 and 1000, found {self.rate_hz:g}", place="rate_hz")

    @property
    def alarm_rad(self) -> float:
        """Estimated offset from which on a fault is reported: room for the estimate's own error on both sides."""
        return 0.75 * self.offset_rad
