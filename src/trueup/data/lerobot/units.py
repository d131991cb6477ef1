"""Units of LeRobot's joint values in radians. A dataset does not state them, so the user must.

    angle = scale * value + offset

degrees     use_degrees=True: zero is the middle of the joint's calibrated range
normalised  use_degrees=False: -100..100 from one end of the calibrated range to the other
radians     simulators and other recorders
A joint called gripper is 0 (closed) .. 100 (open) in the first two, whatever `use_degrees` says.

How far -100..100 reaches is in the arm's calibration file (`<id>.json`, encoder ticks, 4096 a turn). Without it the
position limits of the robot's spec are taken for the ends.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Literal, NamedTuple, get_args

import msgspec
import numpy as np

from trueup.core.arrays import FloatArray
from trueup.core.documents import read_json
from trueup.core.errors import TrueupError, did_you_mean
from trueup.data.lerobot.info import MAX_TEXT_BYTES, joint_of

Units = Literal["degrees", "normalised", "radians"]
UNITS: tuple[str, ...] = get_args(Units)
TICKS = 4096  # of an encoder of STS3215, XL330 and XL430 servos, a turn
_DEG = math.pi / 180.0


class AngleScale(NamedTuple):
    """angle (rad) = scale * value + offset, one of each a joint; `notes` say what was assumed."""

    scale: FloatArray
    offset: FloatArray
    notes: tuple[str, ...]

    def to_rad(self, values: FloatArray) -> FloatArray:
        """Angles of LeRobot's numbers, along the last axis."""
        return self.scale * values + self.offset

    def from_rad(self, angles: FloatArray) -> FloatArray:
        """LeRobot's numbers for angles."""
        return (angles - self.offset) / self.scale


class MotorRange(msgspec.Struct, frozen=True):
    """Range of a motor in its calibration, encoder ticks."""

    range_min: int
    range_max: int


def find_scale(
    units: str,
    joint_names: tuple[str, ...],
    low: FloatArray,
    high: FloatArray,
    calibration: dict[str, MotorRange] | None = None,
) -> AngleScale:
    """The scale of each joint; `low` and `high` are position limits (rad), `calibration` is that of the arm."""
    if units not in UNITS:
        raise TrueupError(f"LeRobot has no units {units!r}{did_you_mean(units, UNITS)}", place="units")
    n = len(joint_names)
    if units == "radians":
        return AngleScale(np.ones(n), np.zeros(n), ())
    is_gripper = np.array([name.rpartition("_")[2] == "gripper" for name in joint_names], bool)
    span, middle, notes = high - low, 0.5 * (low + high), []
    if calibration is not None:
        span, middle = _calibrated(calibration, joint_names), np.zeros(n)
        notes.append("ranges are those of the arm's calibration: zero is the middle of each")
    elif units == "normalised":
        notes.append("-100..100 is taken for the whole position range of the robot's spec: no calibration file given")
    if is_gripper.any() and calibration is None:
        notes.append("gripper 0..100 is taken for the whole position range of the robot's spec")
    scale, offset = np.full(n, _DEG), np.zeros(n)
    if units == "normalised":
        scale, offset = span / 200.0, middle
    scale, offset = np.where(is_gripper, span / 100.0, scale), np.where(is_gripper, low, offset)
    if not (np.isfinite(scale) & (scale > 0.0)).all():
        joint = joint_names[int(np.argmin(np.isfinite(scale) & (scale > 0.0)))]
        raise TrueupError(f"joint {joint!r} has no range that -100..100 could be of", place="units")
    return AngleScale(scale, offset, tuple(notes))


def read_calibration(file: Path) -> dict[str, MotorRange]:
    """Ranges (encoder ticks) of a LeRobot calibration file, by joint."""
    found = read_json(file, dict[str, MotorRange], "LeRobot calibration file", most_bytes=MAX_TEXT_BYTES)
    for name, motor in found.items():
        if not 0 < motor.range_max - motor.range_min <= 16 * TICKS:
            text = f"range {motor.range_min}..{motor.range_max} is none"
            raise TrueupError(text, file=file, place=f"motor {name[:80]!r}")
    return {joint_of(name): motor for name, motor in found.items()}


def _calibrated(motors: dict[str, MotorRange], joint_names: tuple[str, ...]) -> FloatArray:
    """Range of every joint in radians."""
    for joint in joint_names:
        if joint not in motors:
            raise TrueupError(
                f"the calibration has no motor {joint!r}{did_you_mean(joint, motors)}", place="calibration"
            )
    ticks = np.array([motors[joint].range_max - motors[joint].range_min for joint in joint_names], np.float64)
    return ticks * (2.0 * math.pi / TICKS)
