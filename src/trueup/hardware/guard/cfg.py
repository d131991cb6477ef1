"""GuardCfg: every threshold of the motor guard, with its default. Options of a command line are read from here."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

from trueup.core.errors import TrueupError

LONGEST_STALE_S = 0.1  # a robot's state is never trusted for longer


@dataclass(frozen=True, kw_only=True)
class GuardCfg:
    """When the guard changes a command, and when it stops the robot. SI units."""

    # --- limits of a command ---
    torque_fraction: float = 0.8
    """Share of each torque limit that kp (target - q) + kd (target_vel - dq) + torque may ask for."""
    max_step_rad: float = 0.1
    """How far a target may move within one control step."""
    gain_factor: float = 1.0
    """Multiplies kp, kd and feed-forward torque of every command; 0.2 for a robot that hangs."""
    max_gain: float = 2.0
    """Largest kp and kd, as multiples of the robot's own."""
    soft_zone_rad: float = 0.05
    """Distance from a position limit at which torque towards the limit begins to fade; zero torque at the limit."""
    command_margin_rad: float = 1.5
    """A target this far outside the position limits is no command of a sane policy: trip. Less is clipped."""

    # --- age of states and commands ---
    stale_s: float | None = None
    """Oldest state that is acted on. Default: two control periods; at most 0.1 s in any case."""
    silence_s: float | None = None
    """Longest time without a command of the policy. Default: two control periods."""
    linger_s: float = 1.0
    """How long damping is sent after the policy process has ended."""

    # --- sensors ---
    jump_rad: float = 0.1
    """Step of a joint (or of the IMU's orientation) between two reports that its velocity does not explain."""
    bridge_reports: int = 2
    """Reports with such a jump that are left out before the guard trips."""
    frozen_report_s: float = 0.04
    """Time for which a whole report may stay the same to the last bit while the robot is told, or says, to move."""
    frozen_joint_s: float = 0.1
    """The same for the position of one joint."""

    # --- limits of the robot ---
    position_margin_rad: float = 0.1
    """Trip beyond a position limit (or beyond the pose at the start, where that lies outside)."""
    velocity_fraction: float = 1.2
    """Trip at this multiple of a joint's velocity limit."""
    overload_fraction: float | None = 1.5
    """Trip when a motor reports this multiple of its torque limit."""
    patience_s: float = 0.02
    """Velocity and torque must be beyond their limits for so long."""
    tracking_rad: float | None = 0.35
    """Trip when a joint stays this far from everything it was told lately, at the torque that is allowed: blocked."""
    tracking_s: float = 0.5
    """For so long."""
    tilt_rad: float | None = 1.0
    """Trip when the IMU's z axis leans this far from upright; floating bases only."""

    # --- health ---
    temperature_derate_c: float = 70.0
    """From here on less torque is allowed, down to a third at the stop."""
    temperature_stop_c: float = 85.0
    """Trip."""
    voltage_derate: float | None = None
    """Battery voltage below which less torque is allowed, down to a third at the stop."""
    voltage_stop: float | None = None
    """Battery voltage below which the guard trips."""

    # --- process ---
    guard_hz: float | None = None
    """Rate of commands to the robot. Default: the driver's own rate; at most 500."""
    realtime_priority: bool = True
    """Ask for SCHED_FIFO; goes on without where it is not allowed."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value is not None and not (math.isfinite(value) and value >= 0.0):
                raise TrueupError(f"must be finite and not negative, found {value}", place=field.name)
        _require(0.0 < self.torque_fraction <= 1.0, "torque_fraction", "lies above 0 and up to 1", self.torque_fraction)
        _require(self.gain_factor <= 1.0, "gain_factor", "lies between 0 and 1", self.gain_factor)
        _require(self.max_step_rad > 0.0, "max_step_rad", "must be above 0", self.max_step_rad)
        stale = LONGEST_STALE_S if self.stale_s is None else self.stale_s
        _require(0.0 < stale <= LONGEST_STALE_S, "stale_s", f"lies above 0 and up to {LONGEST_STALE_S} s", stale)
        _require(self.silence_s is None or self.silence_s > 0.0, "silence_s", "must be above 0", self.silence_s)
        hz = 500.0 if self.guard_hz is None else self.guard_hz
        _require(1.0 <= hz <= 500.0, "guard_hz", "lies between 1 and 500 Hz", hz)
        hot = self.temperature_derate_c <= self.temperature_stop_c
        _require(hot, "temperature_derate_c", "must not be above temperature_stop_c", self.temperature_derate_c)
        if self.voltage_derate is not None and self.voltage_stop is not None:
            high = self.voltage_derate >= self.voltage_stop
            _require(high, "voltage_derate", "must not be below voltage_stop", self.voltage_derate)

    def stale_limit_s(self, control_hz: float) -> float:
        """Oldest state that is acted on at this control rate."""
        return min(2.0 / control_hz, LONGEST_STALE_S) if self.stale_s is None else self.stale_s

    def silence_limit_s(self, control_hz: float) -> float:
        """Longest silence of the policy at this control rate."""
        return 2.0 / control_hz if self.silence_s is None else self.silence_s


def _require(holds: bool, name: str, rule: str, found: object) -> None:
    if not holds:
        raise TrueupError(f"{rule}, found {found}", place=name)
