"""Messages of Unitree's humanoids (g1): package unitree_hg, 35 motors.

mode_machine  the robot's build; a command must repeat what the state says
mode_pr       0: ankles and waist are commanded as pitch and roll joints, 1: as the two motors A and B
temperature   of a motor: housing, winding (deg C)
bmsvoltage    of the battery, in mV, on its own topic, since a humanoid's LowState has no battery
"""

from __future__ import annotations

from trueup.hardware.drivers.unitree.layout import Struct, fields

_PACKAGE = "unitree_hg.msg.dds_"
MOTORS = 35
MOTOR_CMD = Struct(f"{_PACKAGE}.MotorCmd_", fields("mode:u1 q:f4 dq:f4 tau:f4 kp:f4 kd:f4 reserve:u4"))
LOW_CMD = Struct(
    f"{_PACKAGE}.LowCmd_",
    (*fields("mode_pr:u1 mode_machine:u1"), ("motor_cmd", MOTOR_CMD, MOTORS), *fields("reserve:u4[4] crc:u4")),
)
IMU_STATE = Struct(
    f"{_PACKAGE}.IMUState_", fields("quaternion:f4[4] gyroscope:f4[3] accelerometer:f4[3] rpy:f4[3] temperature:i2")
)
MOTOR_STATE = Struct(
    f"{_PACKAGE}.MotorState_",
    fields("mode:u1 q:f4 dq:f4 ddq:f4 tau_est:f4 temperature:i2[2] vol:f4 sensor:u4[2] motorstate:u4 reserve:u4[4]"),
)
LOW_STATE = Struct(
    f"{_PACKAGE}.LowState_",
    (
        *fields("version:u4[2] mode_pr:u1 mode_machine:u1 tick:u4"),
        ("imu_state", IMU_STATE, 0),
        ("motor_state", MOTOR_STATE, MOTORS),
        *fields("wireless_remote:u1[40] reserve:u4[4] crc:u4"),
    ),
)
BMS_STATE = Struct(
    f"{_PACKAGE}.BmsState_",
    fields(
        "version_high:u1 version_low:u1 fn:u1 cell_vol:u2[40] bmsvoltage:u4[3] current:i4 soc:u1 soh:u1 "
        "temperature:i2[12] cycle:u2 manufacturer_date:u2 bmsstate:u4[5] reserve:u4[3]"
    ),
)
