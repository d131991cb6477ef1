"""policy.rows as MCAP, for PlotJuggler and Foxglove: every column of every control step, and the guard's events.

    /joint_states     JointState         as the policy used them; /imu: Imu
    /policy/target    JointState         per joint, by name: wanted, target, sent_pos, sent_kp, sent_kd
    /policy/NAME      Float64MultiArray  asked, command, raw, smoothed, and single numbers (late_s, flags, ...)
    /policy/observation/TERM             a topic for each term of the observation
    /guard/events     JSON               lines of events.jsonl, where it lies beside the rows

Times are the robot's, as in the guard's robot.mcap, so that both files open on one time line. Numbers that a row does
not have (the observation before the policy began) are no message there.
"""

from __future__ import annotations

import io
import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
from mcap.writer import Writer
from mcap_ros2.writer import serialize_dynamic

from trueup.core.arrays import FloatArray
from trueup.core.errors import TrueupError
from trueup.core.files import write_atomic
from trueup.data.mcap.ros2 import definition
from trueup.data.mcap.write import nanoseconds, open_writer
from trueup.hardware.policy_rows import FILE, RecordedRows, read_rows

EVENTS = "events.jsonl"
_NUMBERS = ("tick", "phase", "restart", "wall_s", "late_s", "step_s", "flags", "distance", "guard", "voltage")
_ARRAYS = ("asked", "command", "raw", "smoothed")
_JOINTS = ("wanted", "target", "sent_pos", "sent_kp", "sent_kd", "joint_temperature")
_EVENT_SCHEMA = {"type": "object", "properties": {"event": {"type": "string"}, "time_s": {"type": "number"}}}


class Converted(NamedTuple):
    """Counts of a conversion: control steps, and events of the guard; `damaged` rows were left out."""

    path: Path
    rows: int
    events: int
    damaged: int


def convert_rows(source: str | Path, out: str | Path) -> Converted:
    """Write policy.rows (or the folder of a run) as one MCAP file, which appears complete or not at all."""
    path = Path(source)
    path = path / FILE if path.is_dir() else path
    if Path(out).suffix != ".mcap":
        raise TrueupError("a recording of `trueup deploy` is converted to .mcap", file=out)
    recorded = read_rows(path)
    if not len(recorded):
        raise TrueupError("has no whole row: nothing can be converted", file=path)
    buffer = io.BytesIO()
    writer = open_writer(buffer)
    header: dict[str, Any] = msgspec.to_builtins(recorded.header)
    writer.add_metadata("trueup_policy", {name: json.dumps(value) for name, value in header.items()})
    _write_rows(writer, recorded)
    events = _write_events(writer, path.with_name(EVENTS))
    writer.finish()
    return Converted(write_atomic(out, buffer.getvalue()), len(recorded), events, recorded.damaged)


# --- rows ---
class _Topic(NamedTuple):
    """One topic: the type of its messages, and the message of a row (None: this row has none)."""

    name: str
    kind: str
    values: Mapping[str, FloatArray]
    names: tuple[str, ...] = ()

    def message(self, row: int, stamp: Mapping[str, int]) -> dict[str, Any] | None:
        found = {field: values[row] for field, values in self.values.items()}
        if all(np.isnan(value).all() for value in found.values()):
            return None
        header = {"stamp": stamp, "frame_id": ""}
        match self.kind:
            case "sensor_msgs/JointState":
                return {"header": header, "name": list(self.names), **{k: v.tolist() for k, v in found.items()}}
            case "sensor_msgs/Imu":
                return {"header": header, **{k: _vector(v) for k, v in found.items()}}
            case _:
                return {"data": found["data"].tolist()}


def _write_rows(writer: Writer, recorded: RecordedRows) -> None:
    topics, encode, schemas, channels = list(_topics(recorded)), {}, dict[str, int](), list[int]()
    for topic in topics:
        kind, text = topic.kind.replace("/", "/msg/"), definition(topic.kind)
        if kind not in schemas:
            schemas[kind] = writer.register_schema(kind, "ros2msg", text.encode())
            encode[topic.kind] = serialize_dynamic(kind, text)[kind]
        channels.append(writer.register_channel(topic.name, "cdr", schemas[kind]))
    times = np.maximum.accumulate(recorded.columns["time_s"][:, 0])
    for row, time_s in enumerate(times.tolist()):
        time_ns = nanoseconds(time_s)
        sec, nanosec = divmod(time_ns, 1_000_000_000)
        for topic, channel in zip(topics, channels, strict=True):
            message = topic.message(row, {"sec": sec, "nanosec": nanosec})
            if message is not None:
                writer.add_message(channel, time_ns, encode[topic.kind](message), time_ns, row & 0xFFFFFFFF)


def _topics(recorded: RecordedRows) -> Iterator[_Topic]:
    columns, names = recorded.columns, recorded.header.joint_names
    fields = {"position": "joint_pos", "velocity": "joint_vel", "effort": "joint_torque"}
    measured = {field: columns[name] for field, name in fields.items()}
    yield _Topic("/joint_states", "sensor_msgs/JointState", measured, names)
    if recorded.header.has_imu:
        fields = {"orientation": "imu_quat", "angular_velocity": "imu_gyro", "linear_acceleration": "imu_acc"}
        yield _Topic("/imu", "sensor_msgs/Imu", {field: columns[name] for field, name in fields.items()})
    for name in _JOINTS:
        yield _Topic(f"/policy/{name}", "sensor_msgs/JointState", {"position": columns[name]}, names)
    for name in (*_NUMBERS, *_ARRAYS):
        if columns[name].shape[1]:
            yield _Topic(f"/policy/{name}", "std_msgs/Float64MultiArray", {"data": columns[name]})
    observed = columns["observation"]
    for name, part in _terms(recorded.header.meta.get("terms"), observed.shape[1]):
        yield _Topic(f"/policy/observation{name}", "std_msgs/Float64MultiArray", {"data": observed[:, part]})


def _terms(described: object, width: int) -> list[tuple[str, slice]]:
    """Names and columns of the observation's terms; a single term where the recording does not name them."""
    try:
        widths = msgspec.convert(described, list[tuple[str, int]])
    except msgspec.ValidationError:
        widths = []
    ends = np.cumsum([0, *(count for _, count in widths)]).tolist()
    if not widths or min(count for _, count in widths) < 1 or ends[-1] != width:
        return [("", slice(0, width))] if width else []
    return [(f"/{name}", slice(ends[k], ends[k + 1])) for k, (name, _) in enumerate(widths)]


def _vector(values: FloatArray) -> dict[str, float]:
    """A quaternion w x y z or a vector as a ROS message has it."""
    parts = "wxyz" if len(values) == 4 else "xyz"
    return dict(zip(parts, values.tolist(), strict=True))


# --- events ---
def _write_events(writer: Writer, path: Path) -> int:
    """The guard's events on the robot's clock; a line that was cut off by a kill ends them."""
    if not path.exists():
        return 0
    schema = writer.register_schema("guard_event", "jsonschema", json.dumps(_EVENT_SCHEMA).encode())
    channel, count = writer.register_channel("/guard/events", "json", schema), 0
    for line in path.read_bytes().splitlines():
        try:
            event = msgspec.json.decode(line, type=dict[str, Any])
            at = event.get("robot_s") or 0.0
            time_ns = nanoseconds(float(at) if math.isfinite(at) else 0.0)
        except (msgspec.MsgspecError, TypeError, TrueupError):
            break
        writer.add_message(channel, time_ns, line, time_ns, count)
        count += 1
    return count
