"""Streams of a foreign recording put on one clock as a Log.

Which topic is which: a JointState whose name speaks of commands is one, the others are states.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from trueup.core.errors import TrueupError, did_you_mean
from trueup.data.log import FloatArray, Log
from trueup.data.mcap.streams import Stream
from trueup.data.resample import held, interpolated

_COMMAND_WORDS = re.compile(r"command|cmd|target|desired|reference|goal|setpoint", re.IGNORECASE)
_SPARE_CELLS = 16_000_000


def assemble(
    streams: dict[str, Stream],
    *,
    state: str | None = None,
    command: str | None = None,
    source: str | Path = "",
    meta: dict[str, object] | None = None,
) -> Log:
    """Put streams on the clock of the joint states, whose stamps stay as they are (duplicates and all).

    Commands, battery voltage: the last value at or before each state; other measurements: interpolated.
    Outside the time that a stream covers there is NaN.
    """
    joints = {label: one for label, one in streams.items() if one.message_type == "sensor_msgs/JointState"}
    main = _pick(joints, state, False, source)
    if main is None:
        found = ", ".join(f"{label} ({one.message_type})" for label, one in streams.items()) or "no topic"
        raise TrueupError(f"no JointState topic with joint states; found {found}", file=source, place="topics")
    others = {label: stream for label, stream in joints.items() if stream is not main}
    commands = _pick(others, command, True, source)
    extra = [
        stream
        for label, stream in others.items()
        if stream is not commands and not _COMMAND_WORDS.search(label) and not set(stream.names) & set(main.names)
    ]
    names = main.names + tuple(name for stream in extra for name in stream.names)
    if len(set(names)) != len(names):
        raise TrueupError(f"topic {main.topic!r} names a joint twice", file=source, place=main.topic)
    chosen = [main, *extra, *([commands] if commands else []), *_sensors(streams)]
    _check_cells(len(main), len(names), chosen, source)
    signals = _joint_signals(main, extra, commands, names)
    for stream in _sensors(streams):
        signals |= _sensor_signals(stream, main)
    provenance: dict[str, object] = {
        "source": str(source),
        "topics": [f"{stream.topic} ({stream.message_type})" for stream in chosen],
        "clock": "header" if main.time is main.time_header else "log",
        **(meta or {}),
    }
    return Log(time=main.time, joint_names=names, signals=signals, meta=provenance)


def _pick(joints: dict[str, Stream], asked: str | None, is_command: bool, source: str | Path) -> Stream | None:
    """The topic asked for, else the one of its kind with the most values; /joint_states before all others."""
    if asked is not None:
        if asked not in joints:
            text = f"no JointState topic {asked!r}{did_you_mean(asked, joints)}"
            raise TrueupError(text, file=source, place="topics")
        return joints[asked]
    fitting = [label for label in joints if bool(_COMMAND_WORDS.search(label)) is is_command]
    if not is_command and "/joint_states" in fitting:
        return joints["/joint_states"]
    best = max(fitting, key=lambda label: len(joints[label]) * len(joints[label].names), default=None)
    return None if best is None else joints[best]


def _sensors(streams: dict[str, Stream]) -> list[Stream]:
    """The longest stream of each kind of sensor."""
    kinds = ("sensor_msgs/Imu", "nav_msgs/Odometry", "sensor_msgs/BatteryState")
    longest = [
        max((stream for stream in streams.values() if stream.message_type == kind), key=len, default=None)
        for kind in kinds
    ]
    return [stream for stream in longest if stream is not None]


def _check_cells(rows: int, njoint: int, chosen: list[Stream], source: str | Path) -> None:
    """A few wide messages must not blow up to the length of a long stream."""
    cells = rows * (6 * njoint + 21)
    present = sum(values.size for stream in chosen for values in stream.columns.values())
    if cells > max(_SPARE_CELLS, 4 * present):
        text = f"{rows} rows of {njoint} joints would take more memory than the file warrants"
        raise TrueupError(text, file=source, place="topics")


def _joint_signals(
    main: Stream, extra: list[Stream], commands: Stream | None, names: tuple[str, ...]
) -> dict[str, FloatArray]:
    signals: dict[str, FloatArray] = {}
    states = {"position": "joint_pos", "velocity": "joint_vel", "effort": "joint_torque"}
    targets = {"position": "target_pos", "velocity": "target_vel", "effort": "target_torque"}
    for stream in [main, *extra]:
        for column, signal in states.items():
            if column in stream.columns:
                values = stream.columns[column] if stream is main else _interpolated(stream, main, column)
                _place(signals, signal, values, stream.names, names)
    if commands is not None:
        for column, signal in targets.items():
            if column in commands.columns and set(commands.names) & set(names):
                _place(signals, signal, _held(commands, main, column), commands.names, names)
    return signals


def _place(
    signals: dict[str, FloatArray], signal: str, values: FloatArray, have: tuple[str, ...], names: tuple[str, ...]
) -> None:
    """Write the joints of one stream into a signal of all joints."""
    place = {name: k for k, name in enumerate(names)}
    target = signals.setdefault(signal, np.full((len(values), len(names)), np.nan))
    known = [k for k, name in enumerate(have) if name in place]
    target[:, [place[have[k]] for k in known]] = values[:, known]


def _sensor_signals(stream: Stream, main: Stream) -> dict[str, FloatArray]:
    if stream.message_type == "sensor_msgs/BatteryState":
        return {"voltage": _held(stream, main, "voltage")}
    if stream.message_type == "nav_msgs/Odometry":
        quat = _unit(_interpolated(stream, main, "orientation"))
        velocity = _rotated(quat, _interpolated(stream, main, "linear"))
        return {"base_pos": _interpolated(stream, main, "position"), "base_quat": quat, "base_vel": velocity}
    signals: dict[str, FloatArray] = {}
    fields = {"orientation": "imu_quat", "angular_velocity": "imu_gyro", "linear_acceleration": "imu_acc"}
    for column, signal in fields.items():
        # -1: the sensor does not measure this
        if np.any(stream.columns[f"{column}_covariance"][:, 0] != -1.0):
            values = _interpolated(stream, main, column)
            signals[signal] = _unit(values) if column == "orientation" else values
    return signals


def _clocks(stream: Stream, main: Stream) -> tuple[FloatArray, FloatArray]:
    """Times of a stream and of the states on a clock that both know: the senders' if they overlap."""
    own, base = stream.time, main.time
    if len(own) and len(base) and own.min() <= base.max() and base.min() <= own.max():
        return own, base
    return stream.time_log, main.time_log


def _held(stream: Stream, main: Stream, column: str) -> FloatArray:
    own, base = _clocks(stream, main)
    order = np.argsort(own, kind="stable")
    return held(own[order], stream.columns[column][order], base)


def _interpolated(stream: Stream, main: Stream, column: str) -> FloatArray:
    own, base = _clocks(stream, main)
    order = np.argsort(own, kind="stable")
    values = stream.columns[column][order]
    if column == "orientation":  # q and -q are the same rotation: take the nearer sign before mixing two
        flips = np.sum(values[1:] * values[:-1], axis=1) < 0.0
        values[1:] *= np.where(np.cumsum(flips) % 2 == 1, -1.0, 1.0)[:, None]
    return interpolated(own[order], values, base)


def _unit(quat_xyzw: FloatArray) -> FloatArray:
    """x y z w as w x y z of length one; NaN for the zero quaternion."""
    length = np.linalg.norm(quat_xyzw, axis=1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        out: FloatArray = (quat_xyzw / length)[:, [3, 0, 1, 2]]
    return out


def _rotated(quat: FloatArray, vector: FloatArray) -> FloatArray:
    """Base-frame vectors in the world frame: v + 2 w (u x v) + 2 u x (u x v) for the quaternion (w, u)."""
    once = np.cross(quat[:, 1:], vector)
    out: FloatArray = vector + 2.0 * (quat[:, :1] * once + np.cross(quat[:, 1:], once))
    return out
