"""Checks of a report's physical content: joint limits, blocked joints, falls, heat, battery."""

from __future__ import annotations

import math

import numpy as np

from trueup.core.arrays import FloatArray
from trueup.hardware.driver import RobotState
from trueup.hardware.guard.cfg import GuardCfg
from trueup.hardware.guard.readings import GuardFault, worst_joint
from trueup.hardware.watch import Watch, WatchCfg
from trueup.robot.spec import RobotSpec

_LEAST_DERATE = 1.0 / 3.0
_TRACKING_WINDOW_S = 0.25


class BodyChecks:
    """Limits of a robot that is being commanded; the pose at the start widens the position limits (see `Watch`)."""

    def __init__(self, spec: RobotSpec, cfg: GuardCfg, *, period_s: float, start: FloatArray) -> None:
        self._spec, self._cfg = spec, cfg
        watch = WatchCfg(
            position_margin_rad=cfg.position_margin_rad,
            velocity_fraction=max(cfg.velocity_fraction, 1e-6),
            tracking_window_s=_TRACKING_WINDOW_S,
            patience_s=cfg.patience_s,
        )
        self._watch = Watch(spec, watch, period_s=period_s, start=start)
        self._torque_limit = spec.torque_limit
        self._allowed = cfg.torque_fraction * self._torque_limit
        self._target = start
        self._kp = np.zeros(spec.njoint)
        self._since: dict[str, float] = {}

    def told(self, rows: FloatArray) -> None:
        """Remember an accepted command (5, n), before its targets were moved for the sake of torque."""
        self._target = rows[0]
        self._watch.told(rows[0])
        self._kp = rows[2]

    def check(self, state: RobotState) -> GuardFault | None:
        """Check a new state."""
        reason = self._watch.position_fault(state)
        if reason is not None:
            return GuardFault("position", reason)
        reason = self._watch.velocity_fault(state)
        if reason is not None:
            return GuardFault("velocity", reason)
        return self._torque(state) or self._tracking(state) or self._tilt(state)

    def _torque(self, state: RobotState) -> GuardFault | None:
        most = self._cfg.overload_fraction
        if most is None:
            return None
        is_over = np.abs(state.joint_torque) > most * self._torque_limit  # false for NaN: not measured
        if not self._persists("torque", state.time_s, bool(is_over.any()), self._cfg.patience_s):
            return None
        j, joint = worst_joint(self._spec, is_over)
        found, limit = state.joint_torque[j], self._torque_limit[j]
        return GuardFault("torque", f"{joint} reports {found:.1f} N m, more than {most:g} times its limit {limit:.1f}")

    def _tracking(self, state: RobotState) -> GuardFault | None:
        """Trip on a joint farther from its target than the allowed torque deflects a spring of stiffness kp."""
        cfg = self._cfg
        if cfg.tracking_rad is None:
            return None
        allowed = np.maximum(cfg.tracking_rad, self._allowed / np.maximum(self._kp, 1e-9))
        if (np.abs(state.joint_pos - self._target) <= allowed).all():  # near the newest target: near one of them
            self._since.pop("tracking", None)
            return None
        away = self._watch.away(state.joint_pos)
        if not self._persists("tracking", state.time_s, bool((away > allowed).any()), cfg.tracking_s):
            return None
        j, joint = worst_joint(self._spec, away - allowed)
        text = f"{joint} is {away[j]:.3f} rad away from every target of the last {_TRACKING_WINDOW_S:g} s"
        return GuardFault("tracking", f"{text} for {cfg.tracking_s:g} s (allowed: {allowed[j]:.3f}): is it blocked?")

    def _tilt(self, state: RobotState) -> GuardFault | None:
        limit = self._cfg.tilt_rad
        if limit is None or state.imu_quat is None or not self._spec.base.floating:
            return None
        tilt = tilt_of(state.imu_quat)
        if tilt <= limit:
            return None
        return GuardFault("tilt", f"the body leans {tilt:.2f} rad from upright, the limit is {limit:g} rad: it falls")

    def _persists(self, what: str, time_s: float, is_wrong: bool, patience_s: float) -> bool:
        if not is_wrong:
            self._since.pop(what, None)
            return False
        return time_s - self._since.setdefault(what, time_s) >= patience_s


class HealthChecks:
    """Heat and battery: `derate` is the share of torque they allow; three reports beyond the stop are a trip."""

    def __init__(self, spec: RobotSpec, cfg: GuardCfg) -> None:
        self._spec, self._cfg = spec, cfg
        self._beyond: dict[str, int] = {}
        self.derate = 1.0

    def check(self, state: RobotState) -> GuardFault | None:
        """Check a new state and set `derate`."""
        cfg, volt = self._cfg, state.voltage
        hot = float(np.fmax.reduce(state.joint_temperature))  # NaN if none is measured
        first, stop = cfg.temperature_derate_c, cfg.temperature_stop_c
        share = _share_left(hot - first, stop - first)
        if cfg.voltage_derate is not None and not math.isnan(volt):
            floor = cfg.voltage_derate if cfg.voltage_stop is None else cfg.voltage_stop
            share = min(share, _share_left(cfg.voltage_derate - volt, cfg.voltage_derate - floor))
        self.derate = share
        if self._stays("temperature", hot >= stop):
            _, joint = worst_joint(self._spec, state.joint_temperature == hot)
            return GuardFault("temperature", f"{joint} is {hot:.0f} deg C hot, the limit is {stop:.0f}; let it cool")
        if cfg.voltage_stop is not None and self._stays("voltage", volt <= cfg.voltage_stop):
            return GuardFault(
                "voltage", f"the battery gives {volt:.1f} V, the limit is {cfg.voltage_stop:.1f}; charge it"
            )
        return None

    def _stays(self, what: str, is_beyond: bool) -> bool:
        self._beyond[what] = self._beyond.get(what, 0) + 1 if is_beyond else 0
        return self._beyond[what] > self._cfg.bridge_reports


def tilt_of(quat: FloatArray) -> float:
    """Angle (rad) between the z axis of a frame and the vertical, from its quaternion w x y z (world_from_frame)."""
    w, x, y, z = (float(number) for number in quat)
    length = w * w + x * x + y * y + z * z
    return math.acos(min(1.0, max(-1.0, 1.0 - 2.0 * (x * x + y * y) / length)))


def _share_left(beyond: float, width: float) -> float:
    """Falls linearly from 1 to a third over `width`, and stays there."""
    if not beyond > 0.0:  # NaN: not measured
        return 1.0
    return 1.0 - (1.0 - _LEAST_DERATE) * (min(1.0, beyond / width) if width > 0.0 else 1.0)
