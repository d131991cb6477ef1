"""Checks of a report's validity: plausible numbers, order and clock, jumps. Physical limits are in `body`."""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trueup.core.arrays import FloatArray
from trueup.hardware.driver import RobotState
from trueup.hardware.guard.cfg import GuardCfg
from trueup.robot.spec import RobotSpec

_OPTIONAL = ("joint_torque", "joint_temperature")  # NaN where a robot does not measure
# largest plausible values: rad, rad/s, N m, deg C; IMU: quaternion, rad/s, m/s^2; V
_MOST_JOINT = {"joint_pos": 1e3, "joint_vel": 1e3, "joint_torque": 1e5, "joint_temperature": 300.0}
_MOST_IMU = {"imu_quat": 1.1, "imu_gyro": 200.0, "imu_acc": 2e3}
_IMU_COUNTS = {"imu_quat": 4, "imu_gyro": 3, "imu_acc": 3}
_MOST_VOLT = 1e3
_UNIT_SLACK = 0.02  # of a quaternion's length
_VELOCITY_SHARE = 1.5  # tolerance of a joint's step beyond what its reported velocity explains
_SEQUENCES = 1 << 32
_Verdict = Literal["new", "repeated", "bridged"]


class GuardFault(NamedTuple):
    """A fault: the guard that found it, and the reason as text."""

    guard: str
    reason: str


def worst_joint(spec: RobotSpec, badness: NDArray[Any]) -> tuple[int, str]:
    """The joint with the largest number, and its name in words."""
    j = int(np.argmax(badness))
    return j, f"joint {spec.joint_names[j]!r}"


class ReadingChecks:
    """Checks each report against earlier ones.

    A torque, temperature or voltage that is NaN in the first report is not measured by this robot; NaN later is a
    fault.
    A report is new if its sequence (modulo 2**32) and its clock are ahead of the newest; else it is repeated.
    A report with a jump is left out (bridged) up to `bridge_reports` times in a row.
    """

    def __init__(self, spec: RobotSpec, cfg: GuardCfg) -> None:
        self._spec, self._cfg = spec, cfg
        self._last: RobotState | None = None
        self._counts: dict[str, int] = {}  # numbers of each part of a report, in their order
        self._most, self._names = np.zeros(0), [""]  # of each number
        self._unmeasured = np.zeros(0, np.bool_)
        self._has_voltage = self._has_imu = False
        self._bridged = 0

    def check(self, state: RobotState) -> _Verdict | GuardFault:
        """Check a report; it becomes the newest if it is new."""
        if not self._counts:
            self._learn(state)
        fault = self._shape(state) or self._numbers(state) or self._quaternion(state)
        if fault is not None:
            return fault
        last = self._last
        if last is not None:
            ahead = (state.sequence - last.sequence) % _SEQUENCES
            if not 0 < ahead < _SEQUENCES // 2 or state.time_s == last.time_s:
                return "repeated"
            if state.time_s < last.time_s:
                return GuardFault(
                    "clock", f"the robot's clock went from {last.time_s:.6f} s back to {state.time_s:.6f} s"
                )
            jump = self._jump(last, state)
            if jump is not None and self._bridged < self._cfg.bridge_reports:
                self._bridged += 1
                return "bridged"
            if jump is not None:
                return jump
        self._bridged, self._last = 0, state
        return "new"

    def restart(self) -> None:
        """Forget the newest report: the next one starts anew (a robot at rest was moved or restarted)."""
        self._last, self._bridged = None, 0

    def _learn(self, state: RobotState) -> None:
        """Record which quantities this robot measures."""
        n = self._spec.njoint
        self._has_voltage, self._has_imu = not math.isnan(state.voltage), state.imu_quat is not None
        most = _MOST_JOINT | (_MOST_IMU if self._has_imu else {})
        self._counts = {name: _IMU_COUNTS.get(name, n) for name in most}
        self._most = np.concatenate([np.full(self._counts[name], most[name]) for name in most])
        joints = [f"joint {joint!r}: {name}" for name in _MOST_JOINT for joint in self._spec.joint_names]
        self._names = joints + [name for name in most for _ in range(_IMU_COUNTS.get(name, 0))]
        self._unmeasured = np.zeros(len(self._most), np.bool_)
        for name in _OPTIONAL:
            values = np.asarray(getattr(state, name), np.float64)
            if values.shape == (n,):
                first = n * list(_MOST_JOINT).index(name)
                self._unmeasured[first : first + n] = np.isnan(values)

    def _shape(self, state: RobotState) -> GuardFault | None:
        if self._has_imu != (state.imu_quat is not None):
            return GuardFault("implausible", "the IMU is in some reports and not in others")
        for name, count in self._counts.items():
            shape = np.shape(getattr(state, name) if getattr(state, name) is not None else ())
            if shape != (count,):
                return GuardFault("implausible", f"{name} of the robot has shape {shape} instead of ({count},)")
        return None

    def _numbers(self, state: RobotState) -> GuardFault | None:
        values = np.concatenate([getattr(state, name) for name in self._counts])
        bad = ~(np.abs(values) <= self._most) & ~(self._unmeasured & np.isnan(values))  # first term is true for NaN
        if bad.any():
            k = int(np.argmax(bad))
            return _bad_number(f"{self._names[k]} reports {values[k]}", values[k], self._most[k])
        if self._has_voltage and not -_MOST_VOLT <= state.voltage <= _MOST_VOLT:
            return _bad_number(f"voltage reports {state.voltage}", state.voltage, _MOST_VOLT)
        if not math.isfinite(state.time_s):
            return GuardFault("nonfinite", f"the robot's clock reports {state.time_s}")
        return None

    def _quaternion(self, state: RobotState) -> GuardFault | None:
        if state.imu_quat is None:
            return None
        length = math.sqrt(float(state.imu_quat @ state.imu_quat))
        if abs(length - 1.0) <= _UNIT_SLACK:
            return None
        return GuardFault("implausible", f"the IMU's quaternion has length {length:.3f} instead of 1")

    def _jump(self, last: RobotState, state: RobotState) -> GuardFault | None:
        dt, allowed = state.time_s - last.time_s, self._cfg.jump_rad
        moved = np.abs(state.joint_pos - last.joint_pos)
        speed = np.maximum(np.abs(state.joint_vel), np.abs(last.joint_vel))
        excess = moved - _VELOCITY_SHARE * dt * speed
        if excess.max() > allowed:
            j, joint = worst_joint(self._spec, excess)
            before, now = last.joint_pos[j], state.joint_pos[j]
            text = f"{joint} jumped from {before:.3f} to {now:.3f} rad in {1e3 * dt:.1f} ms at {speed[j]:.2f} rad/s"
            return GuardFault("jump", f"{text}: more than {allowed:g} rad beyond what its velocity explains")
        if state.imu_quat is None:
            return None
        assert last.imu_quat is not None
        assert state.imu_gyro is not None
        assert last.imu_gyro is not None
        angle = 2.0 * math.acos(min(1.0, abs(float(state.imu_quat @ last.imu_quat))))
        spin = max(_norm(state.imu_gyro), _norm(last.imu_gyro))
        if angle - _VELOCITY_SHARE * dt * spin > allowed:
            text = f"the IMU's orientation jumped by {angle:.3f} rad in {1e3 * dt:.1f} ms at {spin:.2f} rad/s"
            return GuardFault("jump", f"{text} (allowed beyond that: {allowed:g} rad)")
        return None


def _norm(values: FloatArray) -> float:
    return math.sqrt(float(values @ values))


def _bad_number(text: str, value: float, most: float) -> GuardFault:
    if not math.isfinite(value):
        return GuardFault("nonfinite", f"{text}: not a finite number")
    return GuardFault("implausible", f"{text}; no robot reports more than {most:g}")
