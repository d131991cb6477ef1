"""Servo, envelope, damping and dry friction of joints in PhysX, by MuJoCo's rules.

tau = kp (q* - q) - kd dq, within what the motor can give at dq: the position part enters a physics step with the state
before it, the velocity part with the one after it (implicitly), passive damping d too. PhysX's own joint friction is
not a torque, so dry friction F is ours. Each joint is in one of three modes, whose drive PhysX solves with contacts:

    sliding    drive damping kd + d               torque kp (q* - q) - F s, s the direction of motion
    saturated  drive damping d                    torque clipped - F s
    holding    a drive that stops it, at most F   torque of the servo alone

On a fixed base the load is known (gravity and Coriolis): a joint holds if F can stop it in this step, and s is the
sign of what is left otherwise. On a free base contacts load the joints by unknown amounts: a joint holds while |dq| is
below what friction and damping can stop in two steps, and the servo's damping then acts with the state before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from trueup.core.arrays import FloatArray, Ids

_SLIDING, _SATURATED, _HOLDING = 0, 1, 2
_STOPS = 1e4  # N m s/rad: damping of a drive that stops a joint
_UNLIMITED = 3.4e38


class PhysxJoints:
    """Numbers of every joint, (nsim, njoint) in spec order each; `torque` is that of the servo in the last step.

    inertia  (njoint,) kg m^2 that a joint feels when all others give way
    motor    stall torque and no-load speed, (2, nsim, njoint); None: full torque at any speed
    rest     where passive springs pull to
    """

    def __init__(self, joints: Sequence[Sequence[Any]], dt: float, inertia: FloatArray) -> None:
        self._joints, self._dt, self._inertia = joints, dt, inertia
        shape = (len(joints), len(inertia))
        self.kp, self.kd, self.limit, self.damping, self.friction = (np.zeros(shape) for _ in range(5))
        self.stiffness, self.rest, self.offset, self.torque = (np.zeros(shape) for _ in range(4))
        self.motor: FloatArray | None = None
        self._mode: Ids = np.full(shape, -1)

    def renew(self) -> None:
        """Numbers were changed: write every drive anew."""
        self._mode[:] = -1

    def act(
        self,
        target: FloatArray,
        q: FloatArray,
        dq: FloatArray,
        feed: FloatArray | float = 0.0,
        bias: FloatArray | None = None,
    ) -> FloatArray:
        """Set the drives for one physics step and return the torques (nsim, njoint) to apply beside them.

        bias  torques (nsim, njoint) that would balance gravity and Coriolis forces, NaN in rows where other forces
              act; None: in all rows
        """
        spring = self.kp * (target - q) + feed
        low, high = self._range(dq)
        wanted = spring - self.kd * dq
        self.torque = given = np.clip(wanted, low, high)
        saturated = given != wanted
        passive = self.offset + self.stiffness * (self.rest - q)
        moving = np.where(saturated, given, spring)
        mass = self._inertia / self._dt
        way, holds = dq, np.abs(dq) * (mass + self.kd + self.damping) < 2.0 * self.friction
        share = mass / (mass + self.kd + self.damping)  # of explicit damping that does not overshoot
        still = np.clip(spring - share * self.kd * dq, low, high) - share * self.damping * dq
        if bias is not None:
            known, left = np.isfinite(bias), moving + passive - bias + mass * dq
            way = np.where(known, left, way)
            holds = np.where(known, np.abs(left) < self.friction, holds)
            still = np.where(known, np.clip(spring, low, high), still)
        self._set_drives(np.where(holds, _HOLDING, np.where(saturated, _SATURATED, _SLIDING)))
        return passive + np.where(holds, still, moving - self.friction * np.sign(way))

    def _range(self, dq: FloatArray) -> tuple[FloatArray, FloatArray]:
        if self.motor is None:
            return -self.limit, self.limit
        stall, speed = self.motor
        line = dq / speed
        return (
            np.clip(-stall * (1.0 + line), -self.limit, self.limit),
            np.clip(stall * (1.0 - line), -self.limit, self.limit),
        )

    def _set_drives(self, mode: Ids) -> None:
        changed = np.argwhere(mode != self._mode)
        if not len(changed):
            return
        damping = np.choose(mode, [self.kd + self.damping, self.damping, np.full(mode.shape, _STOPS)])
        limit = np.where(mode == _HOLDING, self.friction, _UNLIMITED)
        for row, joint in changed.tolist():
            self._joints[row][joint].set_drive_properties(0.0, damping[row, joint], limit[row, joint], "force")
        self._mode = mode
