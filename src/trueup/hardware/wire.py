"""Frames between a driver and a robot: fixed little-endian bytes, checked to the last bit before they mean anything.

    offset  0  4s   magic "TRUP"
            4  u8   version
            5  u8   kind (see Kind)
            6  u16  payload length
            8  u32  sequence
           12  f64  time, the sender's clock in seconds
           20  ...  payload: numbers of a command or a state; MessagePack of a welcome or counts; text of a refusal
           end u32  CRC-32 of everything before

Any bytes become a frame or a TrueupError. Numbers travel as float64: what is read is bit for bit what was sent. A
command may carry NaN: refusing it is the firmware's duty, and a test must be able to see it refused.
"""

from __future__ import annotations

import enum
import math
import struct
import zlib
from dataclasses import dataclass
from typing import Annotated, NamedTuple, TypeVar

import msgspec
import numpy as np

from trueup.core.arrays import FloatArray
from trueup.core.errors import TrueupError
from trueup.hardware.driver import Command, RobotState

Message = TypeVar("Message")
Rate = Annotated[float, msgspec.Meta(gt=0.0, le=1e6)]

MAGIC = b"TRUP"
VERSION = 1
MAX_JOINTS = 256
MAX_FRAME_BYTES = 65_000  # of one UDP datagram
COMMAND_ROWS = 5  # target_pos, target_vel, kp, kd, torque

_HEADER = struct.Struct("<4sBBHId")
_CRC = struct.Struct("<I")
_COUNT = struct.Struct("<H")
_STATE = struct.Struct("<HHId")  # joints, has IMU, sequence of the newest command, voltage
_NUMBER = np.dtype("<f8")
IMU_NUMBERS = 10  # quaternion 4, gyro 3, accelerometer 3


class Kind(enum.IntEnum):
    """Kind of a frame."""

    HELLO = 1  # driver: here I am
    WELCOME = 2  # robot: what I am
    COMMAND = 3
    STATE = 4
    TICK = 5  # driver, lock-step: let one command period pass without a command
    TAP = 6  # driver: request the counts at the motors
    TAP_COUNTS = 7
    BYE = 8  # driver: I let go
    REFUSAL = 9  # robot: no, because (text)
    STATUS = 10  # motor guard: status (hardware/guard)
    SUMMARY = 11  # motor guard: how it went
    DAMP = 12  # policy: damp, for good
    LISTEN = 13  # listener: subscribe to states and commands (renewed within a second)


_KINDS = {int(kind): kind for kind in Kind}


class WirePacket(NamedTuple):
    """A frame whose envelope is sound; its payload is not looked at yet."""

    kind: Kind
    sequence: int
    time_s: float
    payload: bytes


@dataclass(frozen=True, kw_only=True)
class Welcome:
    """A robot's description of itself."""

    joint_names: Annotated[tuple[str, ...], msgspec.Meta(min_length=1, max_length=MAX_JOINTS)]
    name: str  # of this very robot
    lockstep: bool
    has_imu: bool
    command_hz: Rate
    physics_hz: Rate
    sends_gains: bool = True  # False: kp and kd of a command do not reach the servos


@dataclass(frozen=True, kw_only=True)
class TapCounts:
    """Counts at the motors since the robot was switched on."""

    commands: int = 0  # command frames whose envelope was sound
    accepted: int = 0
    nonfinite: int = 0  # refused: a NaN, an infinity, or a number no robot uses
    negative_gain: int = 0  # refused
    malformed: int = 0  # refused: wrong number of joints
    beyond_limits: int = 0  # accepted: position, velocity or torque target outside the joint limits (torque is clipped)
    torque_clipped: int = 0  # command periods that ended with a motor at its torque limit
    repeated: int = 0  # same or older sequence than the one before: not carried out again
    bad_frames: int = 0  # not a frame at all
    watchdog: int = 0  # times the servo fell into damping because no command came
    overruns: int = 0  # real time: periods that ended late
    diverged: int = 0  # bad states of the physics
    periods: int = 0  # command periods passed


def encode(kind: Kind, sequence: int, time_s: float, payload: bytes = b"") -> bytes:
    """Return the bytes of a frame."""
    body = _HEADER.pack(MAGIC, VERSION, kind, len(payload), sequence & 0xFFFFFFFF, time_s) + payload
    return body + _CRC.pack(zlib.crc32(body))


def decode(data: bytes) -> WirePacket:
    """Return the frame in `data`; anything but exactly one valid frame is a TrueupError."""
    size = len(data)
    if size < _HEADER.size + _CRC.size:
        raise TrueupError(f"a frame has at least {_HEADER.size + _CRC.size} bytes, found {size}", place="frame")
    magic, version, kind, length, sequence, time_s = _HEADER.unpack_from(data)
    if magic != MAGIC:
        raise TrueupError(f"a frame starts with {MAGIC!r}, found {magic!r}", place="frame")
    if version != VERSION:
        raise TrueupError(f"frame version {version} is not known (this is {VERSION})", place="frame")
    if length != size - _HEADER.size - _CRC.size:
        raise TrueupError(f"payload of {length} bytes declared in a frame of {size} bytes", place="frame")
    if zlib.crc32(data[: -_CRC.size]) != _CRC.unpack_from(data, size - _CRC.size)[0]:
        raise TrueupError("checksum does not fit: the frame was damaged on its way", place="frame")
    if kind not in _KINDS:
        raise TrueupError(f"frame kind {kind} is not known", place="frame")
    if not math.isfinite(time_s):
        raise TrueupError(f"frame time must be finite, found {time_s}", place="frame")
    return WirePacket(kind=_KINDS[kind], sequence=sequence, time_s=time_s, payload=data[_HEADER.size : -_CRC.size])


def encode_rows(sequence: int, time_s: float, rows: FloatArray) -> bytes:
    """Return the frame of a command whose rows (5, njoint) are target_pos, target_vel, kp, kd, torque."""
    numbers = rows.astype(_NUMBER, copy=False).tobytes()
    return encode(Kind.COMMAND, sequence, time_s, _COUNT.pack(rows.shape[1]) + numbers)


def command_rows(frame: WirePacket) -> FloatArray:
    """Return (5, njoint): target_pos, target_vel, kp, kd, torque of a command frame, as they came."""
    _expect(frame, Kind.COMMAND)
    njoint = _joint_count(frame, _COUNT)
    _expect_size(frame, _COUNT.size + COMMAND_ROWS * njoint * 8)
    numbers = np.frombuffer(frame.payload, _NUMBER, -1, _COUNT.size)
    return numbers.reshape(COMMAND_ROWS, njoint).astype(np.float64, copy=False)


def command_of(rows: FloatArray) -> Command:
    """Return rows (5, njoint) as a Command."""
    target, speed, kp, kd, torque = rows
    return Command(target_pos=target, target_vel=speed, kp=kp, kd=kd, torque=torque)


class StateReport(NamedTuple):
    """A state as it travels: `numbers` are position, velocity, torque, temperature of the joints, then the IMU if any.

    acknowledged  the sequence of the newest command that was handled
    """

    sequence: int
    time_s: float
    njoint: int
    has_imu: bool
    acknowledged: int
    voltage: float
    numbers: FloatArray

    def state(self) -> RobotState:
        """The numbers by name."""
        n, numbers = self.njoint, self.numbers
        fields = {
            "sequence": self.sequence,
            "time_s": self.time_s,
            "joint_pos": numbers[:n],
            "joint_vel": numbers[n : 2 * n],
            "joint_torque": numbers[2 * n : 3 * n],
            "joint_temperature": numbers[3 * n : 4 * n],
            "voltage": self.voltage,
        }
        if self.has_imu:
            imu = numbers[4 * n :]
            fields |= {"imu_quat": imu[:4], "imu_gyro": imu[4:7], "imu_acc": imu[7:]}
        state = object.__new__(RobotState)  # setting fields of a frozen class one by one would double the time
        vars(state).update(fields)
        return state


def encode_report(report: StateReport) -> bytes:
    """Return the frame of a state as it travels."""
    sequence, time_s, njoint, has_imu, acknowledged, voltage, numbers = report
    head = _STATE.pack(njoint, has_imu, acknowledged & 0xFFFFFFFF, voltage)
    return encode(Kind.STATE, sequence, time_s, head + numbers.astype(_NUMBER, copy=False).tobytes())


def parse_state(frame: WirePacket) -> tuple[RobotState, int]:
    """Return the state of a frame and the sequence of the newest command that the robot had handled."""
    _expect(frame, Kind.STATE)
    njoint = _joint_count(frame, _STATE)
    _, has_imu, acknowledged, voltage = _STATE.unpack_from(frame.payload)
    if has_imu not in (0, 1):
        raise TrueupError(f"a state says 0 or 1 for its IMU, found {has_imu}", place="frame")
    _expect_size(frame, _STATE.size + 8 * (4 * njoint + IMU_NUMBERS * has_imu))
    numbers = np.frombuffer(frame.payload, _NUMBER, -1, _STATE.size).astype(np.float64)
    report = StateReport(frame.sequence, frame.time_s, njoint, has_imu, acknowledged, voltage, numbers)
    return report.state(), acknowledged


def encode_welcome(sequence: int, time_s: float, welcome: Welcome) -> bytes:
    """Return the frame by which a robot answers a hello."""
    return encode_message(Kind.WELCOME, sequence, time_s, welcome)


def parse_welcome(frame: WirePacket) -> Welcome:
    """Return the robot's description of itself."""
    return parse_message(frame, Kind.WELCOME, Welcome)


def encode_tap(sequence: int, time_s: float, counts: TapCounts) -> bytes:
    """Return the frame of the counts at the motors."""
    return encode_message(Kind.TAP_COUNTS, sequence, time_s, counts)


def parse_tap(frame: WirePacket) -> TapCounts:
    """Return the counts at the motors."""
    return parse_message(frame, Kind.TAP_COUNTS, TapCounts)


def encode_refusal(sequence: int, time_s: float, reason: str) -> bytes:
    """Return the frame of a refusal."""
    return encode(Kind.REFUSAL, sequence, time_s, reason.encode()[:1000])


def parse_refusal(frame: WirePacket) -> str:
    """Return the reason of a refusal."""
    _expect(frame, Kind.REFUSAL)
    return frame.payload.decode(errors="replace")


def encode_message(kind: Kind, sequence: int, time_s: float, message: object) -> bytes:
    """Return the frame of a message that is data by name (MessagePack)."""
    return encode(kind, sequence, time_s, msgspec.msgpack.encode(message))


def parse_message(frame: WirePacket, kind: Kind, message: type[Message]) -> Message:
    """Return the message in a frame of this kind."""
    _expect(frame, kind)
    try:
        return msgspec.msgpack.decode(frame.payload, type=message)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise TrueupError(f"a {kind.name} frame cannot be read: {error}", place="frame") from None


def _expect(frame: WirePacket, kind: Kind) -> None:
    if frame.kind is not kind:
        raise TrueupError(f"expected a {kind.name} frame, found {frame.kind.name}", place="frame")


def _expect_size(frame: WirePacket, size: int) -> None:
    if len(frame.payload) != size:
        message = f"a {frame.kind.name} frame of this robot carries {size} bytes, found {len(frame.payload)}"
        raise TrueupError(message, place="frame")


def _joint_count(frame: WirePacket, head: struct.Struct) -> int:
    """Return the number of joints, the first field of every head."""
    if len(frame.payload) < head.size:
        raise TrueupError(f"a {frame.kind.name} frame is cut short", place="frame")
    (count,) = _COUNT.unpack_from(frame.payload)
    if not 1 <= count <= MAX_JOINTS:
        raise TrueupError(f"a frame carries 1 to {MAX_JOINTS} joints, found {count}", place="frame")
    return int(count)
