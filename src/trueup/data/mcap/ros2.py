"""Log rows as ordinary ROS 2 messages: topics of the signals, message definitions, CDR bytes.

    /joint_states    JointState         joint_pos, joint_vel, joint_torque; in every row, it carries the clock
    /joint_commands  JointState         target_pos, target_vel, target_torque
    /imu             Imu                imu_quat, imu_gyro, imu_acc
    /odom            Odometry           base_pos, base_quat (and base_vel in the base frame, as in ROS)
    /trueup/<name>   Float64MultiArray  every other signal, and base_vel in the world frame

A signal that a log does not have is an empty array in a JointState and has -1 as first covariance element in
Imu and Odometry, both as ROS prescribes. ROS writes quaternions x y z w, a Log w x y z.

For a given list of joints and signals every row has the same size, so the bytes of a row are laid out once (by
mcap-ros2-support, from the message types in definitions.json) and only stamps and numbers are filled in: that is what
makes a row cheap enough for a 500 Hz loop.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
from mcap_ros2.writer import serialize_dynamic

from trueup.data.log import signal_width
from trueup.data.mcap.cdr import find_layout

STATE_TOPIC, EXTRA_PREFIX = "/joint_states", "/trueup/"
STATES = {"position": "joint_pos", "velocity": "joint_vel", "effort": "joint_torque"}
TARGETS = {"position": "target_pos", "velocity": "target_vel", "effort": "target_torque"}
IMU = {"orientation": "imu_quat", "angular_velocity": "imu_gyro", "linear_acceleration": "imu_acc"}
# topic -> (message type, signal of each field in the order of the message)
PLACES: dict[str, tuple[str, dict[str, str]]] = {
    STATE_TOPIC: ("sensor_msgs/JointState", STATES),
    "/joint_commands": ("sensor_msgs/JointState", TARGETS),
    "/imu": ("sensor_msgs/Imu", IMU),
    "/odom": ("nav_msgs/Odometry", {"position": "base_pos", "orientation": "base_quat"}),
}
BODY_VELOCITY = "body_velocity"  # place of base_vel in the base frame inside Odometry; derived, not a signal
QUATERNIONS = ("base_quat", "imu_quat")


@cache
def definition(message_type: str) -> str:
    """The `ros2msg` schema text: the definition and, after separators, those of the types it uses."""
    found: str = _definitions()[message_type]
    return found


@cache
def _definitions() -> dict[str, str]:
    """Those of the types that logs are made of, as rosbags has them; a robot's computer records without rosbags."""
    return msgspec.json.decode((Path(__file__).parent / "definitions.json").read_bytes(), type=dict[str, str])


def _message(message_type: str, fields: Mapping[str, int], joint_names: Sequence[str]) -> bytes:
    """A message of zeros with room for `fields` (column -> number of values; absent ones marked as ROS prescribes)."""
    message: dict[str, Any] = {column: [0.0] * width for column, width in fields.items()}
    if message_type == "sensor_msgs/JointState":
        message |= {"name": list(joint_names)}
    elif message_type == "sensor_msgs/Imu":
        marks = {f"{column}_covariance": _covariance(9, column in fields) for column in IMU}
        message = {"header": {"frame_id": "imu"}, **marks}
    elif message_type == "nav_msgs/Odometry":
        pose, twist = _covariance(36, "position" in fields), _covariance(36, "linear" in fields)
        message = {"header": {"frame_id": "world"}, "child_frame_id": "base"}
        message |= {"pose": {"covariance": pose}, "twist": {"covariance": twist}}
    name = message_type.replace("/", "/msg/")
    return bytes(serialize_dynamic(name, definition(message_type))[name](message))


def _covariance(count: int, is_present: bool) -> list[float]:
    return [0.0 if is_present else -1.0] + [0.0] * (count - 1)


@dataclass(frozen=True)
class RowTopic:
    """One channel of a log file: where its message lies in the bytes of a row."""

    name: str
    message_type: str
    signals: tuple[str, ...]
    start: int
    stop: int


@dataclass(frozen=True)
class RowLayout:
    """The messages of one row with all numbers zero, one behind the other, and where to write what.

    places  signal -> (byte offset, number of float64); stamps  offsets of (seconds i32, nanoseconds u32)
    """

    template: bytes
    topics: tuple[RowTopic, ...]
    places: dict[str, tuple[int, int]]
    stamps: tuple[int, ...]


def row_layout(joint_names: Sequence[str], signals: Sequence[str]) -> RowLayout:
    """Lay out one row of a log that has these joints and signals."""
    widths = {signal: signal_width(signal, joint_names) for signal in signals}
    placed = {signal for _, fields in PLACES.values() for signal in fields.values()}
    extra = [signal for signal in widths if signal not in placed]
    wanted = PLACES | {EXTRA_PREFIX + signal: ("std_msgs/Float64MultiArray", {"data": signal}) for signal in extra}
    row, topics, stamps = bytearray(), list[RowTopic](), list[int]()
    places: dict[str, tuple[int, int]] = {}
    for name, (message_type, fields) in wanted.items():
        present = {column: signal for column, signal in fields.items() if signal in widths}
        if name != STATE_TOPIC and not present:
            continue
        named = tuple(present.values())
        if message_type == "nav_msgs/Odometry" and {"base_vel", "base_quat"} <= set(widths):
            present["linear"] = BODY_VELOCITY
        lengths = {column: widths.get(signal, 3) for column, signal in present.items()}
        data, start = _message(message_type, lengths, joint_names), len(row)
        offsets = {column: field[1] for column, field in (find_layout(message_type, data).numbers.fields or {}).items()}
        if "sec" in offsets:
            stamps.append(start + offsets["sec"])
        for column, signal in present.items():
            places[signal] = (start + offsets.get(column, 0), lengths[column])
        row += data
        topics.append(RowTopic(name, message_type, named, start, len(row)))
    return RowLayout(bytes(row), tuple(topics), places, tuple(stamps))
