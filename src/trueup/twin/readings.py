"""Sensor readings of the twin: encoder bias, noise, quantisation, IMU. The servo reads its joints without noise."""

from __future__ import annotations

import mujoco
import numpy as np

from trueup.core.arrays import FloatArray
from trueup.hardware import wire
from trueup.twin.physics.physics import Plant

_BLOCK = 256  # readings whose noise is drawn at once


class SensorReadings:
    """Takes readings of a plant. Torque is as reported by the motor drivers, not the true one.

    Noise, bias and what never changes are laid out in blocks, one row a reading, in the order of `wire.StateReport`;
    a reading adds what is measured to its row.
    """

    def __init__(self, plant: Plant, random: np.random.Generator, imu_site: str | None, *, held: bool) -> None:
        """`held`: the base does not move, so that the IMU always reads the same."""
        self._plant, self._random = plant, random
        truth, n = plant.truth, len(plant.position)
        sensors = truth.sensors
        self._njoint, self.has_imu = n, imu_site is not None
        self._scale = truth.joint.torque_scale
        torque_noise = sensors.torque_noise * plant.model.actuator_forcerange[:, 1] / self._scale
        self._sigma = np.concatenate(
            [np.repeat([sensors.position_noise, sensors.velocity_noise], n), torque_noise]
            + [np.repeat([sensors.gyro_noise, sensors.acc_noise], 3)] * self.has_imu
        )
        self._offset = np.zeros(4 * n + wire.IMU_NUMBERS * self.has_imu)
        self._offset[:n] = truth.joint.encoder_bias
        self._imu: FloatArray | None = None
        if imu_site is not None:
            self._offset[4 * n + 4 :] = np.concatenate([truth.gyro_bias, truth.acc_bias])
            if held:
                self._offset[4 * n :] += _held_imu(plant, imu_site)
            else:
                self._imu = plant.data.sensordata
        self._block = np.zeros((0, len(self._offset)))
        self._row = 0
        steps = [2 * np.pi / sensors.encoder_counts if sensors.encoder_counts else 0.0, sensors.velocity_step]
        first, last = (0 if steps[0] else n), (2 * n if steps[1] else n)
        self._stepped = slice(first, last)  # the numbers that come in steps
        self._step = np.repeat(steps, n)[self._stepped]

    def take(self, sequence: int, acknowledged: int = 0) -> wire.StateReport:
        """Return a reading of the present."""
        plant, n = self._plant, self._njoint
        if self._row == len(self._block):
            self._block, self._row = self._new_block(), 0
        numbers = self._block[self._row]
        self._row += 1
        position, velocity, torque, temperature = numbers[: 4 * n].reshape(4, n)
        position += plant.position
        velocity += plant.velocity
        torque += plant.force / self._scale
        temperature[:] = plant.motors.temperature
        if len(self._step):
            numbers[self._stepped] = np.rint(numbers[self._stepped] / self._step) * self._step
        if self._imu is not None:
            numbers[4 * n :] += self._imu
        time_s, voltage = plant.step_count * plant.dt, float(plant.motors.voltage)
        return wire.StateReport(sequence, time_s, n, self.has_imu, acknowledged, voltage, numbers)

    def _new_block(self) -> FloatArray:
        """Rows for the readings to come: offsets and noise."""
        block = np.tile(self._offset, (_BLOCK, 1))
        if self._sigma.any():
            noise, joints = (self._random.standard_normal((_BLOCK, len(self._sigma))) * self._sigma, 3 * self._njoint)
            block[:, :joints] += noise[:, :joints]
            block[:, len(self._offset) - (len(self._sigma) - joints) :] += noise[:, joints:]
        return block


def _held_imu(plant: Plant, site: str) -> FloatArray:
    """What the IMU of a base that is held in the air reads: its orientation, no spin, the force that holds it up."""
    world_from_imu = plant.data.site(site).xmat
    quat = np.zeros(4)
    mujoco.mju_mat2Quat(quat, world_from_imu)
    acc = -plant.model.opt.gravity @ world_from_imu.reshape(3, 3)
    return np.concatenate([quat, np.zeros(3), acc])
