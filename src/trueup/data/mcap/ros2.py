"""Log rows as ordinary ROS 2 messages: which signal goes where, the message definitions, the CDR bytes.

    /joint_states    JointState         joint_pos, joint_vel, joint_torque; in every row, it carries the clock
    /joint_commands  JointState         target_pos, target_vel, target_torque
    /imu             Imu                imu_quat, imu_gyro, imu_acc
    /odom            Odometry           base_pos, base_quat (and base_vel in the base frame, as in ROS)
    /trueup/<name>   Float64MultiArray  every other signal, and base_vel in the world frame

A signal that a log does not have is an empty array in a JointState and has -1 as first covariance element in
Imu and Odometry, both as ROS prescribes. ROS writes quaternions x y z w, a Log w x y z.

For a given list of joints and signals every row has the same size, so the bytes of a row are laid out once (by
mcap-ros2-support, which knows CDR but no message types) and only stamps and numbers are filled in: that is what makes
a row cheap enough for a 500 Hz loop.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mcap_ros2.writer import serialize_dynamic

from trueup.core.errors import TrueupError, did_you_mean
from trueup.data.log import SIGNALS
from trueup.data.mcap.cdr import find_layout
from trueup.data.mcap.records import Limits

_UNLIMITED = Limits(joints=2**31, name_bytes=2**31)

_TIME = "int32 sec\nuint32 nanosec\n"
_HEADER = "builtin_interfaces/Time stamp\nstring frame_id\n"
_XYZ = "float64 x\nfloat64 y\nfloat64 z\n"
_XYZW = "float64 x 0\nfloat64 y 0\nfloat64 z 0\nfloat64 w 1\n"
_STAMPED = {"std_msgs/Header": _HEADER, "builtin_interfaces/Time": _TIME}
_GEOMETRY = {"geometry_msgs/Quaternion": _XYZW, "geometry_msgs/Vector3": _XYZ}

# message type -> definitions, its own first, then those it uses
_DEFINITIONS: dict[str, dict[str, str]] = {
    "sensor_msgs/JointState": {
        "": "std_msgs/Header header\nstring[] name\nfloat64[] position\nfloat64[] velocity\nfloat64[] effort\n",
        **_STAMPED,
    },
    "sensor_msgs/Imu": {
        "": "std_msgs/Header header\n"
        "geometry_msgs/Quaternion orientation\nfloat64[9] orientation_covariance\n"
        "geometry_msgs/Vector3 angular_velocity\nfloat64[9] angular_velocity_covariance\n"
        "geometry_msgs/Vector3 linear_acceleration\nfloat64[9] linear_acceleration_covariance\n",
        **_STAMPED,
        **_GEOMETRY,
    },
    "nav_msgs/Odometry": {
        "": "std_msgs/Header header\nstring child_frame_id\ngeometry_msgs/PoseWithCovariance pose\n"
        "geometry_msgs/TwistWithCovariance twist\n",
        **_STAMPED,
        **_GEOMETRY,
        "geometry_msgs/PoseWithCovariance": "geometry_msgs/Pose pose\nfloat64[36] covariance\n",
        "geometry_msgs/Pose": "geometry_msgs/Point position\ngeometry_msgs/Quaternion orientation\n",
        "geometry_msgs/Point": _XYZ,
        "geometry_msgs/TwistWithCovariance": "geometry_msgs/Twist twist\nfloat64[36] covariance\n",
        "geometry_msgs/Twist": "geometry_msgs/Vector3 linear\ngeometry_msgs/Vector3 angular\n",
    },
    "std_msgs/Float64MultiArray": {
        "": "std_msgs/MultiArrayLayout layout\nfloat64[] data\n",
        "std_msgs/MultiArrayLayout": "std_msgs/MultiArrayDimension[] dim\nuint32 data_offset\n",
        "std_msgs/MultiArrayDimension": "string label\nuint32 size\nuint32 stride\n",
    },
}

STATE_TOPIC, COMMAND_TOPIC, IMU_TOPIC, ODOM_TOPIC, EXTRA_PREFIX = (
    "/joint_states",
    "/joint_commands",
    "/imu",
    "/odom",
    "/trueup/",
)
# topic -> (message type, signal of each field in the order of the message)
PLACES: dict[str, tuple[str, dict[str, str]]] = {
    STATE_TOPIC: (
        "sensor_msgs/JointState",
        {"position": "joint_pos", "velocity": "joint_vel", "effort": "joint_torque"},
    ),
    COMMAND_TOPIC: (
        "sensor_msgs/JointState",
        {"position": "target_pos", "velocity": "target_vel", "effort": "target_torque"},
    ),
    IMU_TOPIC: (
        "sensor_msgs/Imu",
        {"orientation": "imu_quat", "angular_velocity": "imu_gyro", "linear_acceleration": "imu_acc"},
    ),
    ODOM_TOPIC: ("nav_msgs/Odometry", {"position": "base_pos", "orientation": "base_quat"}),
}
BODY_VELOCITY = "body_velocity"  # place of base_vel in the base frame inside Odometry; derived, not a signal
QUATERNIONS = ("base_quat", "imu_quat")


def definition(message_type: str) -> str:
    """The `ros2msg` schema text: the definition and, after separators, those of the types it uses."""
    parts = _DEFINITIONS[message_type]
    separator = "=" * 80
    return "".join(f"{separator}\nMSG: {name}\n{text}" if name else text for name, text in parts.items())


def _message(message_type: str, fields: Mapping[str, int], joint_names: Sequence[str]) -> bytes:
    """A message of zeros with room for `fields` (column -> number of values; absent ones marked as ROS prescribes)."""
    message: dict[str, Any] = {column: [0.0] * width for column, width in fields.items()}
    if message_type == "sensor_msgs/JointState":
        message |= {"name": list(joint_names)}
    elif message_type == "sensor_msgs/Imu":
        columns = PLACES[IMU_TOPIC][1]
        marks = {f"{column}_covariance": _covariance(9, column in fields) for column in columns}
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


def signal_width(signal: str, joint_names: Sequence[str]) -> int:
    """Number of columns of a signal for these joints."""
    if signal not in SIGNALS:
        raise TrueupError(f"a log knows no signal {signal!r}{did_you_mean(signal, SIGNALS)}")
    columns = SIGNALS[signal][0]
    return len(joint_names) if isinstance(columns, str) else columns


def row_layout(joint_names: Sequence[str], signals: Sequence[str]) -> RowLayout:
    """Lay out one row of a log that has these joints and signals."""
    widths = {signal: signal_width(signal, joint_names) for signal in signals}
    placed = {signal for _, fields in PLACES.values() for signal in fields.values()}
    extra = {
        EXTRA_PREFIX + signal: ("std_msgs/Float64MultiArray", {"data": signal})
        for signal in widths
        if signal not in placed
    }
    row, topics, stamps = bytearray(), list[RowTopic](), list[int]()
    places: dict[str, tuple[int, int]] = {}
    for name, (message_type, fields) in (PLACES | extra).items():
        present = {column: signal for column, signal in fields.items() if signal in widths}
        if name != STATE_TOPIC and not present:
            continue
        named = tuple(present.values())
        if name == ODOM_TOPIC and {"base_vel", "base_quat"} <= set(widths):
            present["linear"] = BODY_VELOCITY
        lengths = {column: widths.get(signal, 3) for column, signal in present.items()}
        data = _message(message_type, lengths, joint_names)
        layout, start = find_layout(message_type, data, _UNLIMITED), len(row)
        if layout.stamp is not None:
            stamps.append(start + layout.stamp)
        for column, signal in present.items():
            places[signal] = (start + layout.places[column][0] if lengths[column] else start, lengths[column])
        row += data
        topics.append(RowTopic(name, message_type, named, start, len(row)))
    return RowLayout(bytes(row), tuple(topics), places, tuple(stamps))
