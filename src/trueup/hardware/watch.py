"""Watch: checks every tick that the robot follows its commands within its limits; a fault is returned as text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueup.core.arrays import FloatArray
from trueup.core.errors import TrueupError
from trueup.hardware.driver import RobotState
from trueup.robot.spec import RobotSpec


@dataclass(frozen=True, kw_only=True)
class WatchCfg:
    """Thresholds of the watch.

    position_margin_rad  beyond a position limit
    velocity_fraction    of the velocity limit
    temperature_c        of any motor; a temperature that is not measured (NaN) is ignored
    tracking_rad         distance of a joint from everything it was told within the last `tracking_window_s`: a servo
                         that lags is none, one that is blocked or fell off is
    patience_s           velocity and tracking must be wrong for so long; position, temperature and NaN count at once
    stale_s              without a new state
    """

    position_margin_rad: float = 0.1
    velocity_fraction: float = 1.1
    temperature_c: float = 75.0
    tracking_rad: float = 0.35
    tracking_window_s: float = 0.25
    patience_s: float = 0.02
    stale_s: float = 0.1

    def __post_init__(self) -> None:
        numbers = (self.velocity_fraction, self.temperature_c, self.tracking_rad, self.tracking_window_s, self.stale_s)
        if not all(0.0 < number < np.inf for number in numbers):
            raise TrueupError("every limit of the watch must be positive and finite")
        if not (0.0 <= self.position_margin_rad < np.inf and 0.0 <= self.patience_s < np.inf):
            raise TrueupError("position_margin_rad and patience_s must not be negative")


class Watch:
    """Checks each new state against the limits; `check` returns what is wrong, or None.

    The pose at the start widens the position limits where the robot rests beyond them: it must be able to come back.
    """

    def __init__(self, spec: RobotSpec, cfg: WatchCfg, *, period_s: float, start: FloatArray) -> None:
        self._spec, self._cfg = spec, cfg
        self._low = np.minimum(spec.position_low, start) - cfg.position_margin_rad
        self._high = np.maximum(spec.position_high, start) + cfg.position_margin_rad
        self._speed = cfg.velocity_fraction * spec.velocity_limit
        self._told = np.tile(start, (1 + round(cfg.tracking_window_s / period_s), 1))
        self._sent = 0
        self._since: dict[str, float] = {}

    def told(self, target_pos: FloatArray) -> None:
        """Record the sent command."""
        self._told[self._sent % len(self._told)] = target_pos
        self._sent += 1

    def check(self, state: RobotState) -> str | None:
        """The fault of a state, naming the joint and the numbers; None without one."""
        cfg, pos, vel = self._cfg, state.joint_pos, state.joint_vel
        for name, values in (("position", pos), ("velocity", vel)):
            if not np.isfinite(values).all():
                return f"{self._joint(~np.isfinite(values))[1]} reports a {name} that is not finite"
        fault = self.position_fault(state)
        if fault is not None:
            return fault
        hot = np.nan_to_num(state.joint_temperature, nan=-np.inf)
        j, joint = self._joint(hot)
        if hot[j] > cfg.temperature_c:
            return f"{joint} is {hot[j]:.0f} deg C hot, the limit is {cfg.temperature_c:.0f}; let it cool"
        fault = self.velocity_fault(state)
        if fault is not None:
            return fault
        away = self.away(pos)
        j, joint = self._joint(away)
        if self._persists("tracking", state.time_s, bool(away[j] > cfg.tracking_rad)):
            window = f"every target of the last {cfg.tracking_window_s:g} s (allowed: {cfg.tracking_rad:g})"
            return f"{joint} is {away[j]:.3f} rad away from {window}: is it blocked?"
        return None

    def position_fault(self, state: RobotState) -> str | None:
        """Whether a joint is beyond a position limit by more than the margin, in words."""
        pos = state.joint_pos
        if ((pos >= self._low) & (pos <= self._high)).all():
            return None
        j, joint = self._joint(np.maximum(self._low - pos, pos - self._high))
        low, high = self._spec.joints[j].position
        return f"{joint} is at {pos[j]:.3f} rad, outside its limits [{low:.3f}, {high:.3f}]"

    def velocity_fault(self, state: RobotState) -> str | None:
        """Whether a joint has turned too fast for longer than the patience, in words."""
        vel = state.joint_vel
        if not self._persists("velocity", state.time_s, bool((np.abs(vel) > self._speed).any())):
            return None
        j, joint = self._joint(np.abs(vel) / self._speed)
        return f"{joint} turns at {vel[j]:.2f} rad/s, its limit is {self._spec.joints[j].velocity:.2f}"

    def away(self, pos: FloatArray) -> FloatArray:
        """Distance (n,) of each joint from everything it was told within the window; negative in between."""
        return np.maximum(self._told.min(axis=0) - pos, pos - self._told.max(axis=0))

    def _joint(self, badness: NDArray[Any]) -> tuple[int, str]:
        """The joint with the largest number, and its name in words."""
        j = int(np.argmax(badness))
        return j, f"joint {self._spec.joint_names[j]!r}"

    def _persists(self, what: str, time_s: float, is_wrong: bool) -> bool:
        if not is_wrong:
            self._since.pop(what, None)
            return False
        return time_s - self._since.setdefault(what, time_s) >= self._cfg.patience_s
