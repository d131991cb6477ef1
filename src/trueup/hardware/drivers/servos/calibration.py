"""Servo maps: the servo of each joint, its direction and zero tick, and the SI units of its counts.

A map is a TOML file beside the robot's spec (`feetech.toml`, `dynamixel.toml`). LeRobot's calibration of one's own arm
(a JSON file: id, drive_mode, homing_offset, range_min, range_max per motor) can override it.

    joint position = sign (tick - zero) 2 pi / ticks_per_turn
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from trueup.core.arrays import FloatArray
from trueup.core.documents import Strict, read_toml
from trueup.core.errors import TrueupError, did_you_mean
from trueup.robot.load import Robot
from trueup.robot.spec import RobotSpec

Ticks = NDArray[np.int64]
ServoId = Annotated[int, msgspec.Meta(ge=0, le=252)]
_Positive = Annotated[float, msgspec.Meta(gt=0.0, lt=1e6)]
MOST_TICKS = 1 << 20


class CountScale(Strict, frozen=True, kw_only=True):
    """SI value of one count of a register; None: not known, then the register is not written (NaN is reported).

    kp      N m/rad of the position loop's P
    kd      N m s/rad of its D
    torque  N m of load (Feetech) or current (Dynamixel)
    """

    kp: _Positive | None = None
    kd: _Positive | None = None
    torque: _Positive | None = None


class MappedServo(Strict, frozen=True, kw_only=True):
    """One servo.

    zero           tick at joint position 0
    ticks_per_turn of the joint: 4096 times the gear ratio behind the servo
    range          least and most tick; None: the joint's position limits
    homing_offset  that the servo must hold in its own memory; None: not looked at
    align          how a range of motion recorded by LeRobot lies on the joint's limits: at its middle, or low end
    """

    joint: str
    id: ServoId
    zero: float
    sign: Literal[1, -1] = 1
    ticks_per_turn: _Positive = 4096.0
    range: tuple[int, int] | None = None
    homing_offset: int | None = None
    align: Literal["middle", "low"] = "middle"
    scale: CountScale | None = None

    def __post_init__(self) -> None:
        if not math.isfinite(self.zero) or abs(self.zero) > MOST_TICKS:
            raise ValueError(f"servo of joint {self.joint!r}: zero is a tick, found {self.zero}")
        if self.range is not None and not -MOST_TICKS <= self.range[0] < self.range[1] <= MOST_TICKS:
            raise ValueError(f"servo of joint {self.joint!r}: range = [least, most] tick, found {list(self.range)}")


class ServoFile(Strict, frozen=True, kw_only=True, rename={"servos": "servo"}):
    """Content of a servo map's file. `voltage` is the supply's, for twins without a battery."""

    schema: Literal[1]
    protocol: Literal["feetech", "dynamixel"]
    servos: tuple[MappedServo, ...]
    baud: Annotated[int, msgspec.Meta(ge=9600, le=10_000_000)]
    scale: CountScale = CountScale()
    voltage: _Positive = 12.0


class ServoMap:
    """A servo map in spec joint order: ticks to radians and back, counts to SI. Arrays are (njoint,)."""

    def __init__(self, file: ServoFile, spec: RobotSpec) -> None:
        self.servos = _in_order(file.servos, spec)
        self.baud, self.voltage = file.baud, file.voltage
        self.ids = [servo.id for servo in self.servos]
        self.names = dict(zip(self.ids, spec.joint_names, strict=True))
        self.sign = np.array([float(servo.sign) for servo in self.servos])
        self._zero = np.array([servo.zero for servo in self.servos])
        self.ticks_per_rad = np.array([servo.ticks_per_turn / (2.0 * np.pi) for servo in self.servos])
        self.low, self.high = self._ranges(spec)
        scales = [servo.scale or file.scale for servo in self.servos]
        self.kp, self.kd, self.torque = (
            np.array([math.nan if getattr(scale, name) is None else getattr(scale, name) for scale in scales])
            for name in ("kp", "kd", "torque")
        )

    def ticks(self, position: FloatArray) -> Ticks:
        """Nearest ticks of joint positions, within the range."""
        exact = self._zero + self.sign * position * self.ticks_per_rad
        return np.clip(np.rint(exact), self.low, self.high).astype(np.int64)

    def radians(self, ticks: FloatArray | Ticks) -> FloatArray:
        """Joint positions of ticks."""
        return self.sign * (ticks - self._zero) / self.ticks_per_rad

    def counts(self, value: FloatArray, unit: FloatArray, most: int) -> Ticks:
        """A gain or torque as whole counts of its register, at most `most`; -1 where the unit is not known."""
        counts = np.clip(np.rint(value / unit), 0, most)
        return np.where(np.isfinite(unit), counts, -1.0).astype(np.int64)

    def _ranges(self, spec: RobotSpec) -> tuple[Ticks, Ticks]:
        """Least and most tick of every joint: of the servo's range and of the joint's limits the narrower."""
        ends = self._zero + self.sign * np.stack([spec.position_low, spec.position_high]) * self.ticks_per_rad
        low, high = np.ceil(ends.min(axis=0)), np.floor(ends.max(axis=0))
        for j, servo in enumerate(self.servos):
            if servo.range is not None:
                low[j], high[j] = max(low[j], servo.range[0]), min(high[j], servo.range[1])
            if low[j] >= high[j]:
                limits = f"ticks {ends[:, j].min():.0f} to {ends[:, j].max():.0f}"
                raise TrueupError(f"the range {servo.range} of {servo.joint!r} misses its position limits ({limits})")
        return low.astype(np.int64), high.astype(np.int64)


def read_servo_map(robot: Robot, protocol: str, file: str = "", calibration: str = "") -> ServoMap:
    """The robot's servo map, `<protocol>.toml` beside its model or another file, with a LeRobot calibration over it."""
    path = Path(file) if file else robot.model_path.parent / f"{protocol}.toml"
    absent = f"no servo map here: docs/drivers/{protocol}.md says what goes into it (or name one: ?map=FILE)"
    table = read_toml(path, ServoFile, "servo map", absent)
    if table.protocol != protocol:
        raise TrueupError(f"is a map of {table.protocol} servos, asked for was {protocol}", file=path, place="protocol")
    if calibration:
        from trueup.hardware.drivers.servos.lerobot_calibration import laid_over

        table = laid_over(table, calibration, robot.spec)
    try:
        return ServoMap(table, robot.spec)
    except TrueupError as error:
        raise TrueupError(error.message, file=calibration or path) from None


def with_baud(servos: ServoMap, baud: str) -> ServoMap:
    """The map with another baud rate, if one is given."""
    if baud:
        if not baud.isdecimal() or not 9600 <= int(baud) <= 10_000_000:
            raise TrueupError(f"baud is a whole number such as 1000000, found {baud!r}", place="baud")
        servos.baud = int(baud)
    return servos


def _in_order(servos: tuple[MappedServo, ...], spec: RobotSpec) -> tuple[MappedServo, ...]:
    """Servos in spec order: one of each joint, one id each."""
    by_joint = {servo.joint: servo for servo in servos}
    for servo in servos:
        if servo.joint not in spec.joint_names:
            raise TrueupError(f"{spec.name} has no joint {servo.joint!r}{did_you_mean(servo.joint, spec.joint_names)}")
    missing = [name for name in spec.joint_names if name not in by_joint]
    if missing:
        raise TrueupError(f"no servo for joint {', '.join(missing)}")
    ids = [servo.id for servo in servos]
    if len(servos) != spec.njoint or len(set(ids)) != len(ids):
        raise TrueupError(f"one servo and one id for each joint, found ids {ids} for {spec.njoint} joints")
    return tuple(by_joint[name] for name in spec.joint_names)
