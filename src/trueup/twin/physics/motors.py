"""Motors of the twin: the servo's gains, the torque-speed curve, the sagging supply, heat and derating.

The curve is the engine's own `dcmotor`: torque along the motion falls on the line from V K/R at rest to zero at V/K,
and is flat at the torque limit up to the knee where that line comes below it. Supply and heat move
the line and the limit.
"""

from __future__ import annotations

import math

import mujoco
import numpy as np

from trueup.core.arrays import FloatArray
from trueup.robot.spec import RobotSpec
from trueup.twin.truth.truth import HeatTruth, SupplyTruth, Truth
from trueup.world.actuators.engine import DC_K, DC_KD, DC_KP, DC_R, DC_VMAX, PID_KD, PID_KP

AMBIENT = 25.0  # deg C, reported by a twin without heat
VOLTAGE = 24.0  # V, reported by a twin without supply


class Motors:
    """One motor per joint. Torques are true ones; `torque_scale` is true over reported torque."""

    def __init__(self, truth: Truth, spec: RobotSpec, model: mujoco.MjModel, data: mujoco.MjData) -> None:
        self._truth, self._model = truth, model
        self._force, self._velocity = data.actuator_force, data.actuator_velocity
        self._scale, motor, supply = truth.joint.torque_scale, truth.motor, truth.supply
        self._cold = (spec.torque_limit if motor is None else motor.torque_limit) * self._scale
        self.available = self._cold.copy()  # torque at rest, N m
        self.temperature = np.full(spec.njoint, AMBIENT if truth.heat is None else truth.heat.ambient)
        self.voltage = VOLTAGE if supply is None else supply.voltage
        self.is_variable = truth.heat is not None or supply is not None
        self._has_curve = motor is not None
        # the engine's kp and kd, (2, njoint), as it wants them: `gain_sign` times what multiplies the error
        self.gains, self.gain_sign = model.actuator_biasprm[:, PID_KP : PID_KD + 1].T, -1.0
        if motor is not None or spec.has_envelope:  # then the engine's actuator is a `dcmotor`
            self.gains, self.gain_sign = model.actuator_gainprm[:, DC_KP : DC_KD + 1 : DC_KD - DC_KP].T, 1.0
        if motor is not None:
            k = self.voltage / motor.no_load_speed
            stall = self._cold * motor.no_load_speed / (motor.no_load_speed - motor.knee_speed)
            model.actuator_gainprm[:, DC_K] = k
            model.actuator_gainprm[:, DC_R] = k * self.voltage / stall
        self._write()

    def warm(self, dt: float) -> None:
        """Let `dt` seconds of the present torque act on battery and windings."""
        squared = np.square(self._force / self._scale)
        if self._truth.heat is not None:
            self._heat(self._truth.heat, squared, dt)
        if self._truth.supply is not None:
            self._sag(self._truth.supply, squared)
        self._write()

    def _write(self) -> None:
        """Give the engine the limits of the moment."""
        limits = self._model.actuator_forcerange
        np.negative(self.available, out=limits[:, 0])
        limits[:, 1] = self.available
        if self._has_curve:
            self._model.actuator_gainprm[:, DC_VMAX] = self.voltage

    def _heat(self, heat: HeatTruth, squared: FloatArray, dt: float) -> None:
        goal = heat.ambient + heat.rise * squared
        self.temperature += (goal - self.temperature) * -np.expm1(-dt / heat.time_constant)
        hot = (self.temperature - heat.derate_from) / (heat.derate_to - heat.derate_from)
        share = 1.0 - (1.0 - heat.derate_floor) * np.minimum(np.maximum(hot, 0.0), 1.0)
        np.multiply(self._cold, share, out=self.available)

    def _sag(self, supply: SupplyTruth, squared: FloatArray) -> None:
        """V = V0 - R I, I = P/V; P is what the motors deliver (braking feeds nothing back) and their copper loss."""
        mechanical = np.maximum(self._force * self._velocity, 0.0)
        power = float(mechanical.sum() + supply.copper @ squared)
        # V^2 - V0 V + R P = 0; beyond the battery's best power it stays at half its voltage
        rest = supply.voltage**2 / 4.0 - supply.resistance * power
        self.voltage = supply.voltage / 2.0 + (math.sqrt(rest) if rest > 0.0 else 0.0)
