"""Frozen sensors: readings that stay identical to the last bit although the robot must be moving.

A quantised encoder at rest repeats itself, and so does a whole report of a robot without noise: repetition alone proves
nothing. Evidence is one of:

    said      the readings themselves report motion: velocity above what rest can show, or for one joint so long
              that its position would have changed
    told      the torque commanded at zero velocity has changed, since the readings froze, by a share of the torque
              limit
              that no friction holds
    lively    the IMU of a floating base, whose readings changed by more than rounding again and again, and then not at
              all (a simulation without noise that comes to rest does so little by little)

for `frozen_report_s` (whole report, IMU) or `frozen_joint_s` (position of one joint). Under "told" a
joint blocked hard and one with a dead encoder look the same.
"""

from __future__ import annotations

import math

import numpy as np

from trueup.core.arrays import FloatArray
from trueup.hardware.driver import RobotState
from trueup.hardware.guard.cfg import GuardCfg
from trueup.hardware.guard.readings import GuardFault, worst_joint
from trueup.robot.spec import RobotSpec

_MOVING = 0.1  # rad/s that a joint at rest does not report for long
_TRAVEL = 0.05  # rad that a joint says to have moved
_JOINT_SHARE = 0.3  # of the torque limit: change of push that moves a joint by an encoder step
_REPORT_SHARE = 0.05  # that a measured torque follows
_REPEATS = 3
_LIVELY = 100  # reports of an IMU that does not repeat itself
_ROUNDING = 1e-7


class FrozenCheck:
    """Follows, for the whole report and for each joint, since when nothing changed and what should have changed it."""

    def __init__(self, spec: RobotSpec, cfg: GuardCfg) -> None:
        self._spec, self._cfg = spec, cfg
        n = spec.njoint
        self._torque = spec.torque_limit
        self._pos = np.full(n, np.nan)
        self._report = b""
        self._time = math.nan
        self._push = np.zeros(n)
        # columns: each joint alone; the whole report
        self._least, self._most = np.zeros((2, n)), np.zeros((2, n))
        self._travel = np.zeros(n)
        self._repeats = 0
        self._imu: FloatArray | None = None
        self._lively = self._still = 0  # reports that changed, that did not
        self._still_s = 0.0
        self._evident = np.full(n, math.inf)  # since when there is evidence against each joint
        self._evident_report = math.inf

    def told(self, push: FloatArray) -> None:
        """Remember the push (n,) that was sent."""
        self._push = push
        np.minimum(self._least, push, out=self._least)
        np.maximum(self._most, push, out=self._most)

    def check(self, state: RobotState) -> GuardFault | None:
        """Check a new state."""
        dt = state.time_s - self._time if state.time_s > self._time else 0.0
        self._time = state.time_s
        return self._check_imu(state) or self._check_report(state) or self._check_joints(state, dt)

    def _check_joints(self, state: RobotState, dt: float) -> GuardFault | None:
        moved, vel = state.joint_pos != self._pos, state.joint_vel
        self._pos = state.joint_pos
        if moved.all():
            self._least[0] = self._most[0] = self._push
            self._travel[:], self._evident[:] = 0.0, math.inf
            return None
        self._least[0, moved] = self._most[0, moved] = self._push[moved]
        self._travel += np.where(np.abs(vel) > _MOVING, vel * dt, 0.0)
        self._travel[moved] = 0.0
        told = self._most[0] - self._least[0] > _JOINT_SHARE * self._torque
        evidence = told | (np.abs(self._travel) > _TRAVEL)
        self._evident = np.where(evidence, np.minimum(self._evident, state.time_s), math.inf)
        age = state.time_s - self._evident
        if not (age >= self._cfg.frozen_joint_s).any():
            return None
        j, joint = worst_joint(self._spec, age)
        return GuardFault("frozen", f"{joint} stays at {self._pos[j]:.4f} rad to the last bit {self._why(j, 0)}")

    def _check_report(self, state: RobotState) -> GuardFault | None:
        imu = () if self._imu is None else (self._imu,)
        report = np.concatenate([state.joint_pos, state.joint_vel, state.joint_torque, *imu]).tobytes()
        if report != self._report:
            self._report, self._evident_report, self._repeats = report, math.inf, 0
            self._least[1] = self._most[1] = self._push
            return None
        self._repeats += 1
        share = _JOINT_SHARE if np.isnan(state.joint_torque).any() else _REPORT_SHARE
        changed = (self._most[1] - self._least[1]) / self._torque
        if not (np.abs(state.joint_vel) > _MOVING).any() and changed.max() <= share:
            return None
        self._evident_report = min(self._evident_report, state.time_s)
        if self._repeats < _REPEATS or state.time_s - self._evident_report < self._cfg.frozen_report_s:
            return None
        why = self._why(int(np.argmax(changed)), 1) if changed.max() > share else "although it says that it moves"
        return GuardFault("frozen", f"the whole report stays the same to the last bit {why}")

    def _check_imu(self, state: RobotState) -> GuardFault | None:
        before, self._imu = self._imu, _imu_of(state)
        if self._imu is None or before is None or not self._spec.base.floating:
            return None
        change = float(np.abs(self._imu - before).max())
        if change > 0.0:
            self._lively = self._lively + 1 if change > _ROUNDING else 0
            self._still, self._still_s = 0, state.time_s
            return None
        self._still += 1
        standing_s = state.time_s - self._still_s
        if self._lively < _LIVELY or self._still < _REPEATS or standing_s < self._cfg.frozen_report_s:
            return None
        return GuardFault("frozen", f"the IMU reports the same to the last bit for {1e3 * standing_s:.0f} ms")

    def _why(self, j: int, column: int) -> str:
        change = self._most[column, j] - self._least[column, j]
        if change > _REPORT_SHARE * self._torque[j]:
            name = self._spec.joint_names[j]
            return f"although joint {name!r} was told to change its torque by {change:.1f} of {self._torque[j]:.1f} N m"
        return "although it says that it moves"


def _imu_of(state: RobotState) -> FloatArray | None:
    if state.imu_quat is None or state.imu_gyro is None or state.imu_acc is None:
        return None
    return np.concatenate([state.imu_quat, state.imu_gyro, state.imu_acc])
