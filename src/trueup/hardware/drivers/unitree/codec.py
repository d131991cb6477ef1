"""Conversion of commands and states to LowCmd and LowState and back, used by driver and twin."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trueup.core.arrays import FloatArray
from trueup.hardware.driver import Command, RobotState
from trueup.hardware.drivers.unitree.layout import Record
from trueup.hardware.drivers.unitree.motors import GO, MotorWiring

POS_STOP = 2.146e9  # instead of a position: none is controlled
VEL_STOP = 16000.0  # instead of a velocity
_HEAD = (0xFE, 0xEF)
_LOW_LEVEL = 0xFF  # motors take commands, not gaits
_SERVO, _OFF = 0x01, 0x00  # mode of a motor
_FIELDS = ("q", "dq", "kp", "kd", "tau")  # in the order of `Command`


class TakenCommand(NamedTuple):
    """A command as a motor interprets it: rows (5, njoint) as in `Command`, and the joints without position control.

    For those, kp is 0 and the position has no meaning.
    """

    rows: FloatArray
    free: NDArray[np.bool_]


def sent_rows(command: Command, joint_names: tuple[str, ...]) -> FloatArray:
    """The command as (5, n) numbers exact in float32, rounded towards zero so that limits still hold."""
    rows = command.finite_rows(joint_names)
    with np.errstate(over="ignore"):
        near = rows.astype(np.float32)
    beyond = np.abs(near) > np.abs(rows)
    near[beyond] = np.nextafter(near[beyond], np.float32(0.0))
    return near.astype(np.float64)


def encode_command(wiring: MotorWiring, rows: FloatArray, mode_machine: int) -> Record:
    """LowCmd, without checksum."""
    family = wiring.family
    record = family.low_cmd.new()
    motors: Any = record["motor_cmd"][0]
    if family is GO:
        record["head"], record["level_flag"] = _HEAD, _LOW_LEVEL
        motors["mode"], motors["q"], motors["dq"] = _SERVO, POS_STOP, VEL_STOP  # also those that are not there
    else:
        record["mode_machine"] = mode_machine
    motors["mode"][wiring.motor] = _SERVO
    for field, values in zip(_FIELDS, rows, strict=True):
        motors[field][wiring.motor] = values
    if family is GO:
        motors["q"][wiring.motor[rows[2] == 0.0]] = POS_STOP
        motors["dq"][wiring.motor[rows[3] == 0.0]] = VEL_STOP
    return record


def decode_command(wiring: MotorWiring, record: Record) -> TakenCommand:
    """A LowCmd as the motors interpret it: gains are 0 where position or velocity is stopped or the motor is off."""
    motors: Any = record["motor_cmd"][0][wiring.motor]
    rows = np.array([motors[field] for field in _FIELDS], np.float64)
    off = motors["mode"] == _OFF
    free = off | (rows[0] >= 0.99 * POS_STOP)
    rows[2, free] = 0.0
    loose = off | (rows[1] >= 0.99 * VEL_STOP)
    rows[1, loose] = rows[3, loose] = 0.0
    rows[4, off] = 0.0
    return TakenCommand(rows, free)


def observed_command(taken: TakenCommand) -> Command:
    """The same as a `Command`; NaN where no position is controlled."""
    position, velocity, kp, kd, torque = taken.rows
    position = np.where(taken.free, np.nan, position)
    return Command(target_pos=position, target_vel=velocity, kp=kp, kd=kd, torque=torque)


def decode_state(
    wiring: MotorWiring, record: Record, *, sequence: int, time_s: float, battery_v: float = np.nan
) -> RobotState:
    """RobotState of a LowState; `battery_v` is used where LowState has no voltage. 0 V means not measured."""
    motors: Any = record["motor_state"][0][wiring.motor]
    voltage = float(record["power_v"][0]) if wiring.family is GO else battery_v
    temperature = np.asarray(motors["temperature"], np.float64)
    imu: Any = record["imu_state"][0]
    has_imu = wiring.spec.imu is not None
    return RobotState(
        sequence=sequence,
        time_s=time_s,
        joint_pos=motors["q"].astype(np.float64),
        joint_vel=motors["dq"].astype(np.float64),
        joint_torque=motors["tau_est"].astype(np.float64),
        joint_temperature=temperature if temperature.ndim == 1 else temperature.max(axis=1),
        voltage=voltage if voltage != 0.0 else np.nan,
        imu_quat=imu["quaternion"].astype(np.float64) if has_imu else None,
        imu_gyro=imu["gyroscope"].astype(np.float64) if has_imu else None,
        imu_acc=imu["accelerometer"].astype(np.float64) if has_imu else None,
    )


def encode_state(wiring: MotorWiring, state: RobotState, *, tick: int, mode_machine: int = 0) -> Record:
    """LowState, without checksum, as the robot would send it."""
    record = wiring.family.low_state.new()
    motors: Any = record["motor_state"][0]
    motors["mode"][wiring.motor] = _SERVO
    motors["q"][wiring.motor] = state.joint_pos
    motors["dq"][wiring.motor] = state.joint_vel
    motors["tau_est"][wiring.motor] = state.joint_torque
    degrees = np.clip(np.nan_to_num(np.rint(state.joint_temperature)), 0, 255)
    if wiring.family is GO:
        motors["temperature"][wiring.motor] = degrees
        record["head"], record["level_flag"] = _HEAD, _LOW_LEVEL
        record["power_v"] = np.nan_to_num(state.voltage)
    else:
        motors["temperature"][wiring.motor] = degrees[:, None]
        record["mode_machine"] = mode_machine
    record["tick"] = tick & 0xFFFFFFFF
    imu: Any = record["imu_state"][0]
    if state.imu_quat is not None:
        imu["quaternion"], imu["gyroscope"], imu["accelerometer"] = state.imu_quat, state.imu_gyro, state.imu_acc
    return record
