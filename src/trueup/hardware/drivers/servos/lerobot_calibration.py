"""Overrides a servo map by LeRobot's calibration of an arm: ids, directions, ranges, homing offsets and zeros."""

from __future__ import annotations

import math
from pathlib import Path

import msgspec

from trueup.core.documents import MAX_BYTES, read_json
from trueup.core.errors import TrueupError
from trueup.hardware.drivers.servos.calibration import MappedServo, ServoFile, ServoId
from trueup.robot.spec import JointSpec, RobotSpec


class Motor(msgspec.Struct, frozen=True, kw_only=True):
    """A motor in the file. The range is in ticks, after the homing offset that the servo holds in its memory."""

    id: ServoId
    drive_mode: int
    homing_offset: int
    range_min: int
    range_max: int


def laid_over(table: ServoFile, path: str, spec: RobotSpec) -> ServoFile:
    """The map with the values of a LeRobot calibration for its joints.

    LeRobot records the ends of a joint's travel, not its zero: the middle (or the low end, as the map's
    `align` says) of the recorded travel is matched to that of the joint's position limits.
    """
    motors, joints = _read(path), {joint.name: joint for joint in spec.joints}
    for servo in table.servos:
        if servo.joint not in motors:
            raise TrueupError(f"no motor {servo.joint!r} here (found: {', '.join(motors) or 'none'})", file=path)
    servos = [_calibrated(servo, motors[servo.joint], joints[servo.joint]) for servo in table.servos]
    return msgspec.structs.replace(table, servos=tuple(servos))


def _calibrated(servo: MappedServo, motor: Motor, joint: JointSpec) -> MappedServo:
    sign = -servo.sign if motor.drive_mode else servo.sign
    (low, high), ends = joint.position, (motor.range_min, motor.range_max)
    tick, position = sum(ends) / 2, (low + high) / 2
    if servo.align == "low":
        tick, position = ends[0 if sign > 0 else 1], low
    zero = tick - sign * position * servo.ticks_per_turn / (2 * math.pi)
    fields = {"id": motor.id, "sign": sign, "range": ends, "homing_offset": motor.homing_offset}
    return msgspec.structs.replace(servo, **fields, zero=zero)


def _read(path: str) -> dict[str, Motor]:
    file = Path(path)
    motors = read_json(file, dict[str, Motor], "LeRobot calibration", most_bytes=MAX_BYTES)
    for name, motor in motors.items():
        if not 0 <= motor.range_min < motor.range_max <= 4095:
            found = f"{motor.range_min} to {motor.range_max}"
            raise TrueupError(f"the range of {name!r} lies between ticks 0 and 4095, found {found}", file=file)
    return motors
