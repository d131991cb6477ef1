"""Messages of Unitree's humanoids (g1): package unitree_hg, 35 motors.

mode_machine  the robot's build; a command must repeat what the state says
mode_pr       0: ankles and waist are commanded as pitch and roll joints, 1: as the two motors A and B
temperature   of a motor: housing, winding (deg C)
bmsvoltage    of the battery, in mV, on its own topic, since a humanoid's LowState has no battery
"""

from __future__ import annotations

from trueup.hardware.drivers.unitree.layout import Struct

_PACKAGE = "unitree_hg.msg.dds_"
MOTORS = 35

MOTOR_CMD = Struct(
    f"{_PACKAGE}.MotorCmd_",
    (
        ("mode", "u1", 0),
        ("q", "f4", 0),
        ("dq", "f4", 0),
        ("tau", "f4", 0),
        ("kp", "f4", 0),
        ("kd", "f4", 0),
        ("reserve", "u4", 0),
    ),
)
LOW_CMD = Struct(
    f"{_PACKAGE}.LowCmd_",
    (
        ("mode_pr", "u1", 0),
        ("mode_machine", "u1", 0),
        ("motor_cmd", MOTOR_CMD, MOTORS),
        ("reserve", "u4", 4),
        ("crc", "u4", 0),
    ),
)
IMU_STATE = Struct(
    f"{_PACKAGE}.IMUState_",
    (
        ("quaternion", "f4", 4),
        ("gyroscope", "f4", 3),
        ("accelerometer", "f4", 3),
        ("rpy", "f4", 3),
        ("temperature", "i2", 0),
    ),
)
MOTOR_STATE = Struct(
    f"{_PACKAGE}.MotorState_",
    (
        ("mode", "u1", 0),
        ("q", "f4", 0),
        ("dq", "f4", 0),
        ("ddq", "f4", 0),
        ("tau_est", "f4", 0),
        ("temperature", "i2", 2),
        ("vol", "f4", 0),
        ("sensor", "u4", 2),
        ("motorstate", "u4", 0),
        ("reserve", "u4", 4),
    ),
)
LOW_STATE = Struct(
    f"{_PACKAGE}.LowState_",
    (
        ("version", "u4", 2),
        ("mode_pr", "u1", 0),
        ("mode_machine", "u1", 0),
        ("tick", "u4", 0),
        ("imu_state", IMU_STATE, 0),
        ("motor_state", MOTOR_STATE, MOTORS),
        ("wireless_remote", "u1", 40),
        ("reserve", "u4", 4),
        ("crc", "u4", 0),
    ),
)
BMS_STATE = Struct(
    f"{_PACKAGE}.BmsState_",
    (
        ("version_high", "u1", 0),
        ("version_low", "u1", 0),
        ("fn", "u1", 0),
        ("cell_vol", "u2", 40),
        ("bmsvoltage", "u4", 3),
        ("current", "i4", 0),
        ("soc", "u1", 0),
        ("soh", "u1", 0),
        ("temperature", "i2", 12),
        ("cycle", "u2", 0),
        ("manufacturer_date", "u2", 0),
        ("bmsstate", "u4", 5),
        ("reserve", "u4", 3),
    ),
)
