"""Messages of Unitree's quadrupeds (go2, b2): package unitree_go, 20 motors.

Names, order and sizes of the fields are the robot's: they decide whether DDS matches the types and what the checksum
covers. Units: rad, rad/s, N m; temperatures deg C, power_v V, power_a A, tick ms, quaternion w x y z.
"""

from __future__ import annotations

from trueup.hardware.drivers.unitree.layout import Struct, fields

_PACKAGE = "unitree_go.msg.dds_"
MOTORS = 20
_FRAME = fields("head:u1[2] level_flag:u1 frame_reserve:u1 sn:u4[2] version:u4[2] bandwidth:u2")
MOTOR_CMD = Struct(f"{_PACKAGE}.MotorCmd_", fields("mode:u1 q:f4 dq:f4 tau:f4 kp:f4 kd:f4 reserve:u4[3]"))
BMS_CMD = Struct(f"{_PACKAGE}.BmsCmd_", fields("off:u1 reserve:u1[3]"))
LOW_CMD = Struct(
    f"{_PACKAGE}.LowCmd_",
    (
        *_FRAME,
        ("motor_cmd", MOTOR_CMD, MOTORS),
        ("bms_cmd", BMS_CMD, 0),
        *fields("wireless_remote:u1[40] led:u1[12] fan:u1[2] gpio:u1 reserve:u4 crc:u4"),
    ),
)
IMU_STATE = Struct(
    f"{_PACKAGE}.IMUState_", fields("quaternion:f4[4] gyroscope:f4[3] accelerometer:f4[3] rpy:f4[3] temperature:u1")
)
MOTOR_STATE = Struct(
    f"{_PACKAGE}.MotorState_",
    fields("mode:u1 q:f4 dq:f4 ddq:f4 tau_est:f4 q_raw:f4 dq_raw:f4 ddq_raw:f4 temperature:u1 lost:u4 reserve:u4[2]"),
)
BMS_STATE = Struct(
    f"{_PACKAGE}.BmsState_",
    fields(
        "version_high:u1 version_low:u1 status:u1 soc:u1 current:i4 cycle:u2 bq_ntc:u1[2] mcu_ntc:u1[2] cell_vol:u2[15]"
    ),
)
LOW_STATE = Struct(
    f"{_PACKAGE}.LowState_",
    (
        *_FRAME,
        ("imu_state", IMU_STATE, 0),
        ("motor_state", MOTOR_STATE, MOTORS),
        ("bms_state", BMS_STATE, 0),
        *fields(
            "foot_force:i2[4] foot_force_est:i2[4] tick:u4 wireless_remote:u1[40] bit_flag:u1 adc_reel:f4 "
            "temperature_ntc1:u1 temperature_ntc2:u1 power_v:f4 power_a:f4 fan_frequency:u2[4] reserve:u4 "
            "crc:u4"
        ),
    ),
)
