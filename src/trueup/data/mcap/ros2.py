"""Log rows as ordinary ROS 2 messages: which signal goes where, the message definitions, the CDR bytes.

    /joint_states    JointState         joint_pos, joint_vel, joint_torque; in every row, it carries the clock
    /joint_commands  JointState         target_pos, target_vel, target_torque
    /imu             Imu                imu_quat, imu_gyro, imu_acc
    /odom            Odometry           base_pos, base_quat (and base_vel in the base frame, as in ROS)
    /trueup/<name>   Float64MultiArray  every other signal, and base_vel in the world frame

A signal that a log does not have is an empty array in a JointState and has -1 as first covariance element in
Imu and Odometry, both as ROS prescribes. ROS writes quaternions x y z w, a Log w x y z.

For a given list of joints and signals every row has the same size, so the bytes of a row are laid out once
and only stamps and numbers are filled in: that is what makes a row cheap enough for a 500 Hz loop. Reading
messages of any layout is in `cdr`.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

from trueup.core.errors import TrueupError, did_you_mean
from trueup.data.log import SIGNALS

_TIME = "int32 sec\nuint32 nanosec\n"
_HEADER = "builtin_interfaces/Time stamp\nstring frame_id\n"
_XYZ = "float64 x\nfloat64 y\nfloat64 z\n"
_XYZW = "float64 x 0\nfloat64 y 0\nfloat64 z 0\nfloat64 w 1\n"
_STAMPED = {"std_msgs/Header": _HEADER, "builtin_interfaces/Time": _TIME}
_GEOMETRY = {"geometry_msgs/Quaternion": _XYZW, "geometry_msgs/Vector3": _XYZ}

# message type -> definitions, its own first, then those it uses
_DEFINITIONS: dict[str, dict[str, str]] = {
    "sensor_msgs/JointState": {
        "": "std_msgs/Header header\nstring[] name\n"
        "float64[] position\nfloat64[] velocity\nfloat64[] effort\n",
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


@dataclass
class _Cdr:
    """One message being laid out: little-endian CDR, aligned from behind its header of 4 bytes."""

    data: bytearray = field(default_factory=lambda: bytearray(b"\x00\x01\x00\x00"))
    places: dict[str, int] = field(default_factory=dict)

    def align(self, size: int) -> None:
        self.data += bytes(-(len(self.data) - 4) % size)

    def u32(self, value: int) -> None:
        self.align(4)
        self.data += struct.pack("<I", value)

    def string(self, text: str) -> None:
        raw = text.encode() + b"\x00"
        self.u32(len(raw))
        self.data += raw

    def doubles(self, count: int, first: float = 0.0) -> int:
        """Reserve `count` numbers, the first one preset; returns where they begin."""
        if not count:  # CDR does not pad in front of elements that are not there
            return len(self.data)
        self.align(8)
        start = len(self.data)
        self.data += struct.pack("<d", first) + bytes(8 * (count - 1))
        return start

    def header(self, frame_id: str) -> None:
        self.places["stamp"] = len(self.data)
        self.data += bytes(8)
        self.string(frame_id)


def _joint_state(fields: dict[str, str], present: Sequence[str], joint_names: Sequence[str]) -> _Cdr:
    message = _Cdr()
    message.header("")
    message.u32(len(joint_names))
    for name in joint_names:
        message.string(name)
    for signal in fields.values():
        width = len(joint_names) if signal in present else 0
        message.u32(width)
        place = message.doubles(width)
        if signal in present:
            message.places[signal] = place
    return message


def _imu(fields: dict[str, str], present: Sequence[str]) -> _Cdr:
    message = _Cdr()
    message.header("imu")
    for signal in fields.values():
        place = message.doubles(4 if signal in QUATERNIONS else 3)
        if signal in present:
            message.places[signal] = place
        message.doubles(9, first=0.0 if signal in present else -1.0)
    return message


def _odometry(fields: dict[str, str], present: Sequence[str]) -> _Cdr:
    message = _Cdr()
    message.header("world")
    message.string("base")
    for signal in fields.values():
        place = message.doubles(4 if signal in QUATERNIONS else 3)
        if signal in present:
            message.places[signal] = place
    message.doubles(36, first=0.0 if "base_pos" in present else -1.0)
    has_twist = "base_vel" in present and "base_quat" in present
    place = message.doubles(6)
    if has_twist:
        message.places[BODY_VELOCITY] = place
    message.doubles(36, first=0.0 if has_twist else -1.0)
    return message


def _array(signal: str, width: int) -> _Cdr:
    message = _Cdr()
    message.u32(0)  # layout.dim
    message.u32(0)  # layout.data_offset
    message.u32(width)
    message.places[signal] = message.doubles(width)
    return message


@dataclass(frozen=True)
class Topic:
    """One channel of a log file: where its message record begins in the bytes of a row."""

    channel_id: int
    name: str
    message_type: str
    signals: tuple[str, ...]
    offset: int


@dataclass(frozen=True)
class RowLayout:
    """The MCAP message records of one row with all numbers zero, and where to write what.

    places  signal -> (byte offset, number of float64); marks  offsets of (sequence u32, log time u64, publish
    time u64); stamps  offsets of (seconds i32, nanoseconds u32)
    """

    template: bytes
    topics: tuple[Topic, ...]
    places: dict[str, tuple[int, int]]
    marks: tuple[int, ...]
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
    messages: list[tuple[str, str, _Cdr]] = []
    for topic, (message_type, fields) in PLACES.items():
        if topic != STATE_TOPIC and not any(signal in widths for signal in fields.values()):
            continue
        if message_type == "sensor_msgs/JointState":
            message = _joint_state(fields, signals, joint_names)
        else:
            message = (_imu if topic == IMU_TOPIC else _odometry)(fields, signals)
        messages.append((topic, message_type, message))
    placed = {signal for _, fields in PLACES.values() for signal in fields.values()}
    messages += [
        (EXTRA_PREFIX + signal, "std_msgs/Float64MultiArray", _array(signal, width))
        for signal, width in widths.items()
        if signal not in placed
    ]
    return _joined(messages, widths)


def _joined(messages: list[tuple[str, str, _Cdr]], widths: dict[str, int]) -> RowLayout:
    """Put the messages one behind the other as MCAP message records (opcode 5)."""
    row = bytearray()
    topics: list[Topic] = []
    places: dict[str, tuple[int, int]] = {}
    marks: list[int] = []
    stamps: list[int] = []
    for channel_id, (name, message_type, message) in enumerate(messages, start=1):
        signals = tuple(place for place in message.places if place in widths)
        topics.append(Topic(channel_id, name, message_type, signals, len(row)))
        row += struct.pack("<BQH", 5, 22 + len(message.data), channel_id)
        marks.append(len(row))
        row += bytes(20)
        for place, offset in message.places.items():
            if place == "stamp":
                stamps.append(len(row) + offset)
            else:
                places[place] = (len(row) + offset, widths.get(place, 3))
        row += message.data
    return RowLayout(bytes(row), tuple(topics), places, tuple(marks), tuple(stamps))
