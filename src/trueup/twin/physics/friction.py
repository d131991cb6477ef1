"""Friction and hysteresis of the twin's joints, before every physics step.

Friction is Stribeck with load (M4 of `models.friction`) or LuGre, hysteresis a Dahl element. Arrays are worked on in
place (the last argument of each operation is where it writes): at a thousand steps a second every allocation, keyword
and number that must become an array costs.
"""

from __future__ import annotations

from collections.abc import Callable

import mujoco
import numpy as np
from numpy import absolute, add, divide, exp, multiply, power, subtract
from numpy.typing import NDArray

from trueup.core.arrays import FloatArray
from trueup.twin.truth.truth import FrictionTruth, TransmissionTruth

Load = Callable[[FloatArray], object]  # writes the load through the gears into an array
_STOP_SPEED = 1e-3  # rad/s, below which a joint counts as at rest


class StribeckFriction:
    """The budget kc + kl L + s (kcs + kls L), written as the engine's dry friction; s = exp(-|dq/dqs|^alpha)."""

    def __init__(
        self, truth: FrictionTruth, coulomb: FloatArray, velocity: FloatArray, out: FloatArray, load: Load
    ) -> None:
        self._velocity, self._out, self._load = velocity, out, load
        self._stribeck = _stribeck(truth)
        self._base = np.stack([coulomb, truth.stiction])
        self._coulomb, self._stiction = self._base
        self._per_load = np.stack([truth.load, truth.load_rest])
        self._has_load = bool(self._per_load.any())
        self._share, self._through = np.zeros_like(coulomb), np.zeros_like(coulomb)
        self._budget = self._base.copy()
        self._moving, self._resting = self._budget

    def __call__(self) -> None:
        share = self._share
        absolute(self._velocity, share)
        self._stribeck(share, share)
        if not self._has_load:
            multiply(share, self._stiction, share)
            add(share, self._coulomb, self._out)
            return
        through, budget = self._through, self._budget
        self._load(through)
        absolute(through, through)
        multiply(self._per_load, through, budget)
        add(budget, self._base, budget)
        multiply(self._resting, share, share)
        add(self._moving, share, self._out)


class LuGreFriction:
    """A bristle z that bends before the joint slides (Canudas de Wit 1995), written as applied torque.

    z' = dq - s0 |dq| z / g(dq),   tau = -(s0 z + s1 z'),   g = Fc + (Fs - Fc) exp(-|dq/dqs|^alpha)

    The bending is stepped implicitly, z+ = (z + dq dt)/(1 + s0 |dq| dt/g): stable at any speed, |s0 z| never above g.
    It is kept as z/dt and g as g/(s0 dt), which saves two operations a step: z+ = (z + dq) g/(g + |dq|).
    """

    def __init__(
        self, truth: FrictionTruth, coulomb: FloatArray, velocity: FloatArray, out: FloatArray, dt: float
    ) -> None:
        self._velocity, self._out = velocity, out
        stiffness = np.maximum(truth.bristle_stiffness, 1e-9)  # divisors, also for a joint without friction
        self._coulomb = np.maximum(coulomb, 1e-9) / (stiffness * dt)
        self._stiction = truth.stiction / (stiffness * dt)
        self._stribeck = _stribeck(truth)
        self._of_bend = -(stiffness * dt + truth.bristle_damping)
        self._of_bend_before = truth.bristle_damping.copy()
        self._bend, self._next, self._level, self._speed = (np.zeros_like(coulomb) for _ in range(4))

    def __call__(self) -> None:
        level, speed, before, after = self._level, self._speed, self._bend, self._next
        velocity = self._velocity
        absolute(velocity, speed)
        self._stribeck(speed, level)
        multiply(level, self._stiction, level)
        add(level, self._coulomb, level)
        add(before, velocity, after)
        multiply(after, level, after)
        add(level, speed, level)
        divide(after, level, after)
        multiply(before, self._of_bend_before, speed)
        multiply(after, self._of_bend, level)
        add(speed, level, self._out)
        self._bend, self._next = after, before


class Hysteresis:
    """Hysteresis of a harmonic drive, added to the motor's torque and written to the link: a Dahl element.

    z' = (d' - |d'| z)/x0,   tau = H z,   d = motor - link angle

    |z| never exceeds 1; on every turn of the deflection the torque turns round over about x0, so a slow cycle encloses
    an area: torque that depends on the past. Stepped implicitly, z+ = (z + d' dt/x0)/(1 + |d'| dt/x0), and kept as
    y = z x0/dt: y+ = (y + d') c/(c + |d'|) with c = x0/dt.
    """

    def __init__(
        self, truth: TransmissionTruth, rate: FloatArray, motor: FloatArray, link: FloatArray, dt: float
    ) -> None:
        self._rate, self._motor, self._link = rate, motor, link
        self._turn = truth.hysteresis_rad / dt
        self._torque = truth.hysteresis / self._turn
        self._state, self._divisor = np.zeros_like(self._torque), np.zeros_like(self._torque)

    def __call__(self) -> None:
        divisor, state, turn = self._divisor, self._state, self._turn
        absolute(self._rate, divisor)
        add(divisor, turn, divisor)
        add(state, self._rate, state)
        multiply(state, turn, state)
        divide(state, divisor, state)
        multiply(state, self._torque, self._link)
        subtract(self._motor, self._link, self._motor)


def _stribeck(truth: FrictionTruth) -> Callable[[FloatArray, FloatArray], None]:
    """A function that writes exp(-|dq/dqs|^alpha) of a speed into an array."""
    alpha, factor = truth.stribeck_power, -1.0 / truth.stribeck_vel**truth.stribeck_power
    is_one, is_two = (bool((alpha == exponent).all()) for exponent in (1.0, 2.0))

    def share(speed: FloatArray, out: FloatArray) -> None:
        if is_two:  # short cuts for the usual exponents
            multiply(speed, speed, out)
        elif not is_one:
            power(speed, alpha, out)
        multiply(speed if is_one else out, factor, out)
        exp(out, out)

    return share


def gear_load(model: mujoco.MjModel, data: mujoco.MjData, dof: NDArray[np.intp], *, rotors: bool) -> Load:
    """Load through the gears: motor torque minus external torque.

    With rotors, which lie side by side, the external torque is the spring's. Where the joint itself is driven it is
    that of gravity, Coriolis and contacts: the engine reports dry friction and contacts as one sum; where contacts or
    limits act, the friction in it is taken at its bound, opposed to the motion.
    """
    if rotors:
        side_by_side = slice(int(dof[0]), int(dof[-1]) + 1)
        motor, spring = data.qfrc_actuator[side_by_side], data.qfrc_spring[side_by_side]
        return lambda out: subtract(motor, spring, out)

    def rigid(out: FloatArray) -> None:
        np.add(data.qfrc_actuator[dof], data.qfrc_bias[dof], out=out)
        if data.nefc > data.nf:
            dry = -model.dof_frictionloss[dof] * np.tanh(data.qvel[dof] / _STOP_SPEED)
            out -= data.qfrc_constraint[dof] - dry

    return rigid
