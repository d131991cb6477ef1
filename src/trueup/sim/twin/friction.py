"""Friction of the twin's joints, before every physics step: Stribeck with load (M4 of `models.friction`), or LuGre.

Arrays are worked on in place: at a thousand steps a second allocation is what costs.
"""

from __future__ import annotations

from typing import Protocol

import mujoco
import numpy as np
from numpy.typing import NDArray

from trueup.sim.twin.truth import FrictionTruth

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
        self._coulomb, self._stiction = coulomb.copy(), truth.stiction.copy()
        self._stribeck = _Stribeck(truth)
        self._kl, self._kls = truth.load.copy(), truth.load_rest.copy()
        self._has_load = bool(self._kl.any() or self._kls.any())
        self._share, self._through, self._part = (np.zeros_like(coulomb) for _ in range(3))

    def __call__(self) -> None:
        share = self._stribeck(self._velocity, self._share)
        if not self._has_load:
            np.multiply(share, self._stiction, out=share)
            np.add(share, self._coulomb, out=self._out)
            return
        through, part = self._through, self._part
        self._load(through)
        np.abs(through, out=through)
        np.multiply(self._kls, through, out=part)
        np.add(part, self._stiction, out=part)
        np.multiply(part, share, out=part)
        np.multiply(self._kl, through, out=through)
        np.add(part, through, out=part)
        np.add(part, self._coulomb, out=self._out)


class LuGreFriction:
    """A bristle z that bends before the joint slides (Canudas de Wit 1995), written as applied torque.

    z' = dq - s0 |dq| z / g(dq),   tau = -(s0 z + s1 z'),   g = Fc + (Fs - Fc) exp(-|dq/dqs|^alpha)

    The bending is stepped implicitly, z+ = (z + dq dt)/(1 + s0 |dq| dt/g): stable at any speed, |s0 z| never above g.
    It is kept as z/dt and g as g/(s0 dt), which saves two operations a step.
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
        self._bend, self._next, self._level, self._part = (np.zeros_like(coulomb) for _ in range(4))

    def __call__(self) -> None:
        level, part, before, after = self._level, self._part, self._bend, self._next
        self._stribeck(self._velocity, level)
        np.multiply(level, self._stiction, out=level)
        np.add(level, self._coulomb, out=level)
        np.abs(self._velocity, out=part)
        np.divide(part, level, out=part)
        np.add(part, 1.0, out=part)
        np.add(before, self._velocity, out=after)
        np.divide(after, part, out=after)
        np.multiply(before, self._of_bend_before, out=part)
        np.multiply(after, self._of_bend, out=level)
        np.add(part, level, out=self._out)
        self._bend, self._next = after, before


class _Stribeck:
    """exp(-|dq/dqs|^alpha), with short cuts for the exponents 1 and 2."""

    def __init__(self, truth: FrictionTruth) -> None:
        self._power = truth.stribeck_power.copy()
        self._is_one, self._is_two = bool((self._power == 1.0).all()), bool((self._power == 2.0).all())
        self._factor = -1.0 / truth.stribeck_vel**self._power

    def __call__(self, velocity: FloatArray, out: FloatArray) -> FloatArray:
        """Return the share of the rest friction in `out`."""
        if self._is_two:
            np.multiply(velocity, velocity, out=out)
        else:
            np.abs(velocity, out=out)
            if not self._is_one:
                np.power(out, self._power, out=out)
        np.multiply(out, self._factor, out=out)
        return np.exp(out, out=out)


class RotorLoad:
    """Load through the gears of a robot with rotors, which lie side by side: motor torque against the spring's."""

    def __init__(self, data: mujoco.MjData, dof: NDArray[np.intp]) -> None:
        rotors = slice(int(dof[0]), int(dof[-1]) + 1)
        self._motor_torque, self._spring = data.qfrc_actuator[rotors], data.qfrc_spring[rotors]

    def __call__(self, out: FloatArray) -> None:
        np.subtract(self._motor_torque, self._spring, out=out)


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
