"""Watch: is the robot still doing what it was told, inside its limits? One answer a tick, in words."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trueup.core.errors import TrueupError
from trueup.hardware.driver import RobotState
from trueup.robot.spec import RobotSpec

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class WatchCfg:
    """When to give up.

    position_margin_rad  beyond a position limit
    velocity_fraction    of the velocity limit
    temperature_c        of any motor; a temperature that is not measured (NaN) is passed over
    tracking_rad         distance of a joint from everything it was told within the last `tracking_window_s`:
                         a servo that lags is none, one that is blocked or fell off is
    patience_s           velocity and tracking must be wrong for so long; position, temperature and NaN count
                         at once
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

    The pose at the start widens the position limits where the robot rests beyond them: it must be able to
    come back.
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
        """Remember what was sent."""
        self._told[self._sent % len(self._told)] = target_pos
        self._sent += 1

    def check(self, state: RobotState) -> str | None:
        """What is wrong with this state, in words that name the joint and the numbers."""
        return (
            self._not_finite(state)
            or self._position(state)
            or self._temperature(state)
            or self._velocity(state)
            or self._tracking(state)
        )

    def _not_finite(self, state: RobotState) -> str | None:
        for name, values in (("position", state.joint_pos), ("velocity", state.joint_vel)):
            if not np.isfinite(values).all():
                joint = self._spec.joint_names[int(np.argmin(np.isfinite(values)))]
                return f"joint {joint!r} reports a {name} that is not finite"
        return None

    def _position(self, state: RobotState) -> str | None:
        beyond = np.maximum(self._low - state.joint_pos, state.joint_pos - self._high)
        j = int(np.argmax(beyond))
        if beyond[j] <= 0.0:
            return None
        low, high = self._spec.joints[j].position
        name = self._spec.joint_names[j]
        return f"joint {name!r} is at {state.joint_pos[j]:.3f} rad, outside its limits [{low:.3f}, {high:.3f}]"

    def _temperature(self, state: RobotState) -> str | None:
        over = np.nan_to_num(state.joint_temperature, nan=-np.inf)
        j = int(np.argmax(over))
        if over[j] <= self._cfg.temperature_c:
            return None
        name = self._spec.joint_names[j]
        limit = self._cfg.temperature_c
        return f"joint {name!r} is {over[j]:.0f} deg C hot, the limit is {limit:.0f}; let it cool"

    def _velocity(self, state: RobotState) -> str | None:
        over = np.abs(state.joint_vel) / self._speed
        j = int(np.argmax(over))
        if not self._persists("velocity", state.time_s, bool(over[j] > 1.0)):
            return None
        name, limit = self._spec.joint_names[j], self._spec.joints[j].velocity
        return f"joint {name!r} turns at {state.joint_vel[j]:.2f} rad/s, its limit is {limit:.2f}"

    def _tracking(self, state: RobotState) -> str | None:
        away = np.maximum(self._told.min(axis=0) - state.joint_pos, state.joint_pos - self._told.max(axis=0))
        j = int(np.argmax(away))
        if not self._persists("tracking", state.time_s, bool(away[j] > self._cfg.tracking_rad)):
            return None
        name = self._spec.joint_names[j]
        return (
            f"joint {name!r} is {away[j]:.3f} rad away from every target of the last "
            f"{self._cfg.tracking_window_s:g} s (allowed: {self._cfg.tracking_rad:g}): is it blocked?"
        )

    def _persists(self, what: str, time_s: float, is_wrong: bool) -> bool:
        if not is_wrong:
            self._since.pop(what, None)
            return False
        return time_s - self._since.setdefault(what, time_s) >= self._cfg.patience_s
