"""Puts the streams of a foreign recording on one clock, as a Log.

A JointState topic whose name indicates commands has commands, the others states.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np

from trueup.core.arrays import FloatArray
from trueup.core.errors import TrueupError
from trueup.data.log import Log
from trueup.data.mcap.ros2 import IMU, STATES, TARGETS
from trueup.data.mcap.streams import Stream
from trueup.data.resample import held, interpolated

_COMMAND_WORDS = re.compile(r"command|cmd|target|desired|reference|goal|setpoint", re.IGNORECASE)
_SPARE_CELLS = 16_000_000


def assemble(streams: dict[str, Stream], source: str | Path = "", notes: dict[str, object] | None = None) -> Log:
    """Put streams on the clock of the joint states, whose stamps stay as they are (duplicates and all).

    Commands, battery voltage: the last value at or before each state; other measurements: interpolated.
    Outside the time that a stream covers there is NaN. `source` and `notes` go into the log's meta.
    """
    joints = {label: stream for label, stream in streams.items() if stream.message_type == "sensor_msgs/JointState"}
    measured = {label: stream for label, stream in joints.items() if not _COMMAND_WORDS.search(label)}
    main = measured.get("/joint_states") or _largest(list(measured.values()))
    if main is None:
        found = ", ".join(f"{label} ({stream.message_type})" for label, stream in streams.items()) or "no topic"
        raise TrueupError(f"no JointState topic with joint states; found {found}", file=source, place="topics")
    commands = _largest([stream for label, stream in joints.items() if label not in measured])
    extra = [stream for stream in measured.values() if stream is not main and not set(stream.names) & set(main.names)]
    names = main.names + tuple(name for stream in extra for name in stream.names)
    if len(set(names)) != len(names):
        raise TrueupError(f"topic {main.topic!r} names a joint twice", file=source, place=main.topic)
    sensors = _sensors(streams)
    chosen = [main, *extra, *([commands] if commands else []), *sensors]
    _check_cells(len(main), len(names), chosen, source)
    signals: dict[str, FloatArray] = {}
    for stream in [main, *extra]:
        for column, signal in STATES.items():
            if column in stream.columns:
                values = stream.columns[column] if stream is main else _onto(main, stream, column)
                _place(signals, signal, values, stream.names, names)
    if commands is not None and set(commands.names) & set(names):
        for column, signal in TARGETS.items():
            if column in commands.columns:
                _place(signals, signal, _onto(main, commands, column, held), commands.names, names)
    for stream in sensors:
        signals |= _sensor_signals(stream, main)
    provenance: dict[str, object] = {
        "source": str(source),
        "topics": [f"{stream.topic} ({stream.message_type})" for stream in chosen],
        "clock": "header" if main.time is main.time_header else "log",
    }
    return Log(time=main.time, joint_names=names, signals=signals, meta=provenance | (notes or {}))


def _largest(streams: list[Stream]) -> Stream | None:
    """The stream with the most values."""
    return max(streams, key=lambda stream: len(stream) * len(stream.names), default=None)


def _sensors(streams: dict[str, Stream]) -> list[Stream]:
    """The longest stream of each kind of sensor."""
    kinds = ("sensor_msgs/Imu", "nav_msgs/Odometry", "sensor_msgs/BatteryState")
    found = [[stream for stream in streams.values() if stream.message_type == kind] for kind in kinds]
    return [max(group, key=len) for group in found if group]


def _check_cells(rows: int, njoint: int, chosen: list[Stream], source: str | Path) -> None:
    """A few wide messages must not blow up to the length of a long stream."""
    cells = rows * (6 * njoint + 21)
    present = sum(values.size for stream in chosen for values in stream.columns.values())
    if cells > max(_SPARE_CELLS, 4 * present):
        text = f"{rows} rows of {njoint} joints would take more memory than the file warrants"
        raise TrueupError(text, file=source, place="topics")


def _place(
    signals: dict[str, FloatArray], signal: str, values: FloatArray, have: tuple[str, ...], names: tuple[str, ...]
) -> None:
    """Write the joints of one stream into a signal of all joints."""
    target = signals.setdefault(signal, np.full((len(values), len(names)), np.nan))
    known = [name for name in have if name in names]
    target[:, [names.index(name) for name in known]] = values[:, [have.index(name) for name in known]]


def _sensor_signals(stream: Stream, main: Stream) -> dict[str, FloatArray]:
    if stream.message_type == "sensor_msgs/BatteryState":
        return {"voltage": _onto(main, stream, "voltage", held)}
    if stream.message_type == "nav_msgs/Odometry":
        quat = _unit(_onto(main, stream, "orientation"))
        velocity = _rotated(quat, _onto(main, stream, "linear"))
        return {"base_pos": _onto(main, stream, "position"), "base_quat": quat, "base_vel": velocity}
    signals: dict[str, FloatArray] = {}
    for column, signal in IMU.items():
        # -1: the sensor does not measure this
        if np.any(stream.columns[f"{column}_covariance"][:, 0] != -1.0):
            values = _onto(main, stream, column)
            signals[signal] = _unit(values) if column == "orientation" else values
    return signals


Join = Callable[[FloatArray, FloatArray, FloatArray], FloatArray]


def _onto(main: Stream, stream: Stream, column: str, join: Join = interpolated) -> FloatArray:
    """A column at the times of the states, on a clock that both know: the senders' if they overlap."""
    own, base = stream.time, main.time
    if not (len(own) and len(base) and own.min() <= base.max() and base.min() <= own.max()):
        own, base = stream.time_log, main.time_log
    order = np.argsort(own, kind="stable")
    values = stream.columns[column][order]
    if column == "orientation":  # q and -q are the same rotation: take the nearer sign before mixing two
        flips = np.sum(values[1:] * values[:-1], axis=1) < 0.0
        values[1:] *= np.where(np.cumsum(flips) % 2 == 1, -1.0, 1.0)[:, None]
    return join(own[order], values, base)


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
