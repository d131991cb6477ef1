"""Logs written as MCAP: row by row while a robot runs, or whole.

Times are stored as whole nanoseconds, as ROS does, and must lie between 0 and 2**31 s: a time read back
differs from the one written by at most half a nanosecond, and not at all if it was the float64 nearest to a
whole number of them. All other numbers come back bit for bit.

Signals are fixed by the first row. A signal left out of a later row is written as NaN there; a signal that
the first row did not have is an error, because the file has no place for it.
"""

from __future__ import annotations

import io
import json
import math
import os
import struct
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO

import numpy as np
from mcap.writer import Writer
from numpy.typing import ArrayLike

from trueup._version import __version__
from trueup.core.errors import TrueupError, did_you_mean
from trueup.core.files import make_folder, write_atomic, writing
from trueup.data.log import SIGNALS, Log
from trueup.data.mcap.ros2 import BODY_VELOCITY, QUATERNIONS, definition, row_layout

SCHEMA_VERSION = "1"
METADATA_NAME = "trueup"
RECOVERY_NAME = "trueup_recovery"  # in files written by `recover`
FLUSH_S = 0.02
_CHUNK_BYTES = 1 << 20
_NAN = struct.pack("<d", math.nan)


def nanoseconds(time_s: float) -> int:
    """Seconds as whole nanoseconds; whole seconds apart, so that clock times of today keep their digits."""
    if not 0.0 <= time_s < 2.0**31:
        raise TrueupError(
            f"an MCAP log stores times from 0 to 2**31 s, found {time_s}; shift the clock of the log", place="time"
        )
    whole = math.floor(time_s)
    return whole * 1_000_000_000 + round((time_s - whole) * 1e9)


def open_writer(output: IO[bytes]) -> Writer:
    """Begin an MCAP file with every byte under a checksum (chunks, data section, summary): `scan` finds any change."""
    writer = Writer(output, chunk_size=_CHUNK_BYTES, enable_data_crcs=True)
    writer.start("ros2", f"trueup {__version__}")
    return writer


class Rows:
    """Rows of a log as ROS 2 messages, handed to an MCAP writer behind their definitions and topics."""

    def __init__(
        self, output: IO[bytes], joint_names: Sequence[str], signals: Sequence[str], meta: Mapping[str, object]
    ) -> None:
        self.joint_names, self.signals = tuple(joint_names), tuple(signals)
        if len(set(self.joint_names)) != len(self.joint_names):
            names = ", ".join(self.joint_names)
            raise TrueupError(f"joint names must differ, found {names}", place="joint_names")
        self.layout = row_layout(self.joint_names, self.signals)
        self.count = 0
        table = self._table(meta)
        self.writer = open_writer(output)
        self.writer.add_metadata(METADATA_NAME, table)
        schemas: dict[str, int] = {}
        for topic in self.layout.topics:
            kind = topic.message_type
            if kind not in schemas:
                text = definition(kind).encode()
                schemas[kind] = self.writer.register_schema(kind.replace("/", "/msg/"), "ros2msg", text)
            units = " ".join(SIGNALS[name][1] for name in topic.signals)
            label = {"signals": " ".join(topic.signals), "units": units}
            self.writer.register_channel(topic.name, "cdr", schemas[kind], label)

    def note(self, meta: Mapping[str, object]) -> None:
        """Write the metadata record again; where a file has several, the last one counts."""
        self.writer.flush()
        self.writer.add_metadata(METADATA_NAME, self._table(meta))
        self.writer.flush()

    def _table(self, meta: Mapping[str, object]) -> dict[str, str]:
        try:
            return {
                "schema": SCHEMA_VERSION,
                "joint_names": json.dumps(self.joint_names),
                "signals": json.dumps(self.signals),
                "units": json.dumps({name: SIGNALS[name][1] for name in self.signals}),
                "provenance": json.dumps(dict(meta), allow_nan=False),
            }
        except (TypeError, ValueError, RecursionError) as error:
            text = f"a log's meta must be plain strings, finite numbers and lists: {error}"
            raise TrueupError(text, place="meta") from None

    def add(self, time_ns: int, values: Mapping[str, ArrayLike]) -> None:
        """Encode one row; nothing is kept of a row that is refused."""
        row = bytearray(self.layout.template)
        stamp = struct.pack("<II", *divmod(time_ns, 1_000_000_000))
        for start in self.layout.stamps:
            row[start : start + 8] = stamp
        encoded = {name: self._encode(name, value) for name, value in values.items()}
        if BODY_VELOCITY in self.layout.places and "base_vel" in encoded and "base_quat" in encoded:
            encoded[BODY_VELOCITY] = _body_velocity(encoded["base_quat"], encoded["base_vel"])
        for name, (start, count) in self.layout.places.items():
            row[start : start + 8 * count] = encoded.get(name) or _NAN * count
        number = self.count & 0xFFFFFFFF
        for channel, topic in enumerate(self.layout.topics, start=1):
            self.writer.add_message(channel, time_ns, row[topic.start : topic.stop], time_ns, number)
        self.count += 1

    def _encode(self, name: str, value: ArrayLike) -> bytes:
        if name not in self.signals:
            known = did_you_mean(name, self.signals if name in SIGNALS else SIGNALS)
            raise TrueupError(f"this log is recorded without {name!r}{known}; give it in the first row", place=name)
        width = self.layout.places[name][1]
        try:
            values = np.asarray(value, dtype=np.float64).ravel()
        except (TypeError, ValueError) as error:
            raise TrueupError(f"a row of {name!r} must be numbers ({error})", place=name) from None
        if len(values) != width:
            raise TrueupError(f"a row of {name!r} has {width} values, found {len(values)}", place=name)
        return (values[[1, 2, 3, 0]] if name in QUATERNIONS else values).tobytes()


def _body_velocity(quat_xyzw: bytes, velocity: bytes) -> bytes:
    """World velocity in the base frame: v - 2 w (u x v) + 2 u x (u x v) for the quaternion (w, u)."""
    x, y, z, w = struct.unpack("<4d", quat_xyzw)
    vx, vy, vz = struct.unpack("<3d", velocity)
    cx, cy, cz = y * vz - z * vy, z * vx - x * vz, x * vy - y * vx
    bx, by, bz = y * cz - z * cy, z * cx - x * cz, x * cy - y * cx
    return struct.pack("<3d", vx + 2 * (bx - w * cx), vy + 2 * (by - w * cy), vz + 2 * (bz - w * cz))


class LogWriter:
    """Writes a log while it is being recorded, so that a killed process loses next to nothing.

    Rows go to the kernel in chunks of at most FLUSH_S of log time and of wall time, each in one write: a
    killed process loses less than that plus the row in hand, and `read_mcap` opens what is left. (Loss of power is
    another matter: nothing is synced to the disk before `close`.) The first row goes out at once, and so does every
    row that comes slower than FLUSH_S. As a context manager it closes the file whatever happened.
    """

    def __init__(
        self,
        path: str | Path,
        joint_names: Sequence[str],
        meta: Mapping[str, object] | None = None,
        *,
        overwrite: bool = False,
    ) -> None:
        self.path = Path(path)
        self._joint_names, self._meta = tuple(joint_names), dict(meta or {})
        self._rows: Rows | None = None
        self._is_waiting = False
        self._first_s = self._wall_s = 0.0
        self._last_s = math.nan  # no step is known yet: the first row goes out at once
        make_folder(self.path.parent)
        if not overwrite and self.path.exists():
            raise TrueupError("there is a recording here already; choose another name", file=self.path)
        with writing(self.path):
            # a buffer larger than a chunk: what is flushed is one write
            self._file = open(self.path, "wb" if overwrite else "xb", buffering=4 * _CHUNK_BYTES)  # noqa: SIM115

    def _start(self, signals: Sequence[str]) -> Rows:
        self._rows = Rows(self._file, self._joint_names, signals, self._meta)
        with writing(self.path):
            self._file.flush()
        return self._rows

    @property
    def rows(self) -> int:
        """Rows appended so far."""
        return 0 if self._rows is None else self._rows.count

    def append(self, time_s: float, **signals: ArrayLike) -> None:
        """Add one row: one value per joint (or per axis) and signal, quaternions as w x y z."""
        if self._file.closed:
            raise TrueupError("this recording is closed; no row can follow", file=self.path)
        time_ns = nanoseconds(time_s)
        rows = self._rows or self._start(tuple(signals))
        rows.add(time_ns, signals)  # in memory
        if self._is_due(time_s):
            self._is_waiting = False
            with writing(self.path):
                rows.writer.flush()

    def _is_due(self, time_s: float) -> bool:
        """Whether waiting for the next row, a step from now, would keep the first one longer than allowed."""
        wall_s = time.monotonic()
        step_s, self._last_s = time_s - self._last_s, time_s
        if not self._is_waiting:
            self._is_waiting, self._first_s, self._wall_s = True, time_s, wall_s
        kept_s = time_s + step_s - self._first_s
        is_steady = step_s > 0.0 and kept_s < FLUSH_S - 1e-9
        return not is_steady or wall_s - self._wall_s >= FLUSH_S

    def note(self, meta: Mapping[str, object]) -> None:
        """Add to what the log says about itself, from now on also in the file."""
        self._meta |= meta
        if self._rows is not None:
            with writing(self.path):
                self._rows.note(self._meta)

    def close(self) -> None:
        """Write index and summary and close the file; safe to call twice."""
        if not self._file.closed:
            with writing(self.path), self._file:
                (self._rows or self._start(())).writer.finish()
                self._file.flush()
                os.fsync(self._file.fileno())

    def __enter__(self) -> LogWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def write_log(log: Log, path: str | Path) -> Path:
    """Write a whole log as MCAP; the file appears complete or not at all."""
    buffer = io.BytesIO()
    try:
        rows = Rows(buffer, log.joint_names, tuple(log.signals), log.meta)
        for row, time_s in enumerate(log.time.tolist()):
            rows.add(nanoseconds(time_s), {name: values[row] for name, values in log.signals.items()})
        rows.writer.finish()
        return write_atomic(path, buffer.getvalue())
    except TrueupError as error:
        raise TrueupError(error.message, file=path, place=error.place) from None
