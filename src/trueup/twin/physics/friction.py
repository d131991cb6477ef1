"""Friction of the twin's joints, before every physics step: Stribeck with load (M4 of `models.friction`), or LuGre.

Arrays are worked on in place (the last argument of each operation is where it writes): at a thousand steps a second
every allocation, keyword and number that must become an array costs.
"""

from __future__ import annotations

from typing import Protocol

import mujoco
import numpy as np
from numpy import absolute, add, divide, exp, multiply, power, subtract
from numpy.typing import NDArray

from trueup.twin.truth.truth import FrictionTruth

FloatArray = NDArray[np.float64]


class Load(Protocol):
    """Writes motor torque minus external torque, the load through the gears, into an array."""

    def __call__(self, out: FloatArray) -> None: ...


class StribeckFriction:
    """The budget kc + kl L + s (kcs + kls L), written as the engine's dry friction; s = exp(-|dq/dqs|^alpha)."""

    def __init__(
        self, truth: FrictionTruth, coulomb: FloatArray, velocity: FloatArray, out: FloatArray, load: Load
    ) -> None:
        self._velocity, self._out, self._load = velocity, out, load
        self._stribeck = _Stribeck(truth)
        self._base = np.stack([coulomb, truth.stiction])
        self._coulomb, self._stiction = self._base
        self._per_load = np.stack([truth.load, truth.load_rest])
        self._has_load = bool(self._per_load.any())
        self._share, self._speed, self._through = (np.zeros_like(coulomb) for _ in range(3))
        self._budget = self._base.copy()
        self._moving, self._resting = self._budget

    def __call__(self) -> None:
        share = self._stribeck(self._velocity, self._speed, self._share)
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
        self._stribeck = _Stribeck(truth)
        self._of_bend = -(stiffness * dt + truth.bristle_damping)
        self._of_bend_before = truth.bristle_damping.copy()
        self._bend, self._next, self._level, self._speed = (np.zeros_like(coulomb) for _ in range(4))

    def __call__(self) -> None:
        level, speed, before, after = self._level, self._speed, self._bend, self._next
        velocity = self._velocity
        absolute(velocity, speed)
        self._stribeck.at(speed, level)
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


class _Stribeck:
    """exp(-|dq/dqs|^alpha), with short cuts for the exponents 1 and 2."""

    def __init__(self, truth: FrictionTruth) -> None:
        self._power = truth.stribeck_power.copy()
        self._is_one, self._is_two = bool((self._power == 1.0).all()), bool((self._power == 2.0).all())
        self._factor = -1.0 / truth.stribeck_vel**self._power

    def __call__(self, velocity: FloatArray, speed: FloatArray, out: FloatArray) -> FloatArray:
        """Return the share of the rest friction in `out`; `speed` is room to work in."""
        return self.at(velocity if self._is_two else absolute(velocity, speed), out)

    def at(self, speed: FloatArray, out: FloatArray) -> FloatArray:
        """Return the share of the rest friction in `out`."""
        if self._is_two:
            multiply(speed, speed, out)
            multiply(out, self._factor, out)
        elif self._is_one:
            multiply(speed, self._factor, out)
        else:
            power(speed, self._power, out)
            multiply(out, self._factor, out)
        return exp(out, out)


class RotorLoad:
    """Load through the gears of a robot with rotors, which lie side by side: motor torque against the spring's."""

    def __init__(self, data: mujoco.MjData, dof: NDArray[np.intp]) -> None:
        rotors = slice(int(dof[0]), int(dof[-1]) + 1)
        self._motor_torque, self._spring = data.qfrc_actuator[rotors], data.qfrc_spring[rotors]

    def __call__(self, out: FloatArray) -> None:
        subtract(self._motor_torque, self._spring, out)


class RigidLoad:
    """Load where the joint itself is driven: motor torque against gravity, Coriolis and contacts.

    The engine reports dry friction and contacts as one sum; where contacts or limits act, the friction in it is taken
    at its bound, opposed to the motion.
    """

    def __init__(self, model: mujoco.MjModel, data: mujoco.MjData, dof: NDArray[np.intp]) -> None:
        self._model, self._data, self._dof = model, data, dof

    def __call__(self, out: FloatArray) -> None:
        data, dof = self._data, self._dof
        np.add(data.qfrc_actuator[dof], data.qfrc_bias[dof], out=out)
        if data.nefc > data.nf:
            dry = -self._model.dof_frictionloss[dof] * np.tanh(data.qvel[dof] / _STOP_SPEED)
            out -= data.qfrc_constraint[dof] - dry


_STOP_SPEED = 1e-3  # rad/s, below which a joint counts as at rest
