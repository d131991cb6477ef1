"""What the twin reports: encoder bias, noise, quantisation, IMU. The servo itself reads its joints without noise."""

from __future__ import annotations

import mujoco
import numpy as np
from numpy.typing import NDArray

from trueup.robot.drivers.base import RobotState
from trueup.sim.twin.physics import Plant
from trueup.sim.twin.plant_model import PlantModel

FloatArray = NDArray[np.float64]
_BLOCK = 256  # readings whose noise is drawn at once


class Readings:
    """Takes readings of a plant. Torque is what the motor drivers believe (reported, not given)."""

    def __init__(
        self, plant: Plant, model: PlantModel, random: np.random.Generator, imu_site: str | None
    ) -> None:
        self._plant, self._random = plant, random
        truth, n = plant.truth, len(plant.position)
        sensors = truth.sensors
        self._bias, self._scale = truth.joint.encoder_bias, truth.joint.torque_scale
        torque_noise = sensors.torque_noise * plant.model.actuator_forcerange[:, 1] / self._scale
        joints = [np.full(n, sensors.position_noise), np.full(n, sensors.velocity_noise), torque_noise]
        imu = [np.full(3, sensors.gyro_noise), np.full(3, sensors.acc_noise)] if model.has_imu else []
        self._sigma = np.concatenate(joints + imu)
        self._is_noisy = bool(self._sigma.any())
        self._noise = np.zeros((0, len(self._sigma)))
        self._row = 0
        self._position_step = 2 * np.pi / sensors.encoder_counts if sensors.encoder_counts else 0.0
        self._velocity_step = sensors.velocity_step
        self._has_imu = model.has_imu
        self._imu = plant.data.sensordata
        if imu_site is not None and not model.free_base:
            self._imu = _held_imu(plant, imu_site)

    def take(self, sequence: int) -> RobotState:
        """Return a reading of the present."""
        plant = self._plant
        n = len(plant.position)
        noise = self._next_noise() if self._is_noisy else self._sigma
        position = plant.position + self._bias
        position += noise[:n]
        velocity = plant.velocity + noise[n : 2 * n]
        if self._position_step:
            position = np.rint(position / self._position_step) * self._position_step
        if self._velocity_step:
            velocity = np.rint(velocity / self._velocity_step) * self._velocity_step
        quat = gyro = acc = None
        if self._has_imu:
            measured = self._imu
            quat = measured[:4].copy()
            gyro = measured[4:7] + plant.truth.gyro_bias + noise[3 * n : 3 * n + 3]
            acc = measured[7:10] + plant.truth.acc_bias + noise[3 * n + 3 :]
        return RobotState(
            sequence=sequence,
            time_s=plant.step_count * plant.dt,
            joint_pos=position,
            joint_vel=velocity,
            joint_torque=plant.force / self._scale + noise[2 * n : 3 * n],
            joint_temperature=plant.motors.temperature.copy(),
            voltage=float(plant.motors.voltage),
            imu_quat=quat,
            imu_gyro=gyro,
            imu_acc=acc,
        )

    def _next_noise(self) -> FloatArray:
        if self._row == len(self._noise):
            self._noise = self._random.standard_normal((_BLOCK, len(self._sigma))) * self._sigma
            self._row = 0
        self._row += 1
        row: FloatArray = self._noise[self._row - 1]
        return row


def _held_imu(plant: Plant, site: str) -> FloatArray:
    """What the IMU of a base that is held in the air reads: its orientation, no spin, the force that holds it up."""
    world_from_imu = plant.data.site(site).xmat
    quat = np.zeros(4)
    mujoco.mju_mat2Quat(quat, world_from_imu)
    acc = -plant.model.opt.gravity @ world_from_imu.reshape(3, 3)
    return np.concatenate([quat, np.zeros(3), acc])
