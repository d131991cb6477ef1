"""Logs written as MCAP: row by row while a robot runs, or whole.

Times are stored as whole nanoseconds, as ROS does, and must lie between 0 and 2**31 s: a time read back
differs from the one written by at most half a nanosecond, and not at all if it was the float64 nearest to a
whole number of them. All other numbers come back bit for bit.

Signals are fixed by the first row. A signal left out of a later row is written as NaN there; a signal that
the first row did not have is an error, because the file has no place for it.
"""

from __future__ import annotations

import contextlib
import io
import json
import math
import os
import struct
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType

import numpy as np
from mcap.records import Channel, Metadata, Schema
from numpy.typing import ArrayLike

from trueup.core.errors import TrueupError, did_you_mean
from trueup.core.files import write_atomic
from trueup.data.log import SIGNALS, Log
from trueup.data.mcap.container import McapFile
from trueup.data.mcap.ros2 import BODY_VELOCITY, QUATERNIONS, RowLayout, definition, row_layout

SCHEMA_VERSION = "1"
METADATA_NAME = "trueup"
RECOVERY_NAME = "trueup_recovery"  # in files written by `recover`
FLUSH_S = 0.02
_CHUNK_BYTES = 1 << 20


def nanoseconds(time_s: float) -> int:
    """Seconds as whole nanoseconds; whole seconds apart, so that clock times of today keep their digits."""
    if not 0.0 <= time_s < 2.0**31:
        raise TrueupError(
            f"an MCAP log stores times from 0 to 2**31 s, found {time_s}; shift the clock of the log",
            place="time",
        )
    whole = math.floor(time_s)
    return whole * 1_000_000_000 + round((time_s - whole) * 1e9)


class RowEncoder:
    """Rows as MCAP message records, handed to an McapFile."""

    def __init__(self, joint_names: Sequence[str], signals: Sequence[str]) -> None:
        self.joint_names, self.signals = tuple(joint_names), tuple(signals)
        if len(set(self.joint_names)) != len(self.joint_names):
            raise TrueupError(
                f"joint names must differ, found {', '.join(self.joint_names)}", place="joint_names"
            )
        self.layout: RowLayout = row_layout(self.joint_names, self.signals)
        self._records = [(topic.channel_id, topic.offset) for topic in self.layout.topics]
        self._nan = {
            name: b"\x00\x00\x00\x00\x00\x00\xf8\x7f" * count
            for name, (_, count) in self.layout.places.items()
        }
        self.count = 0

    def add(self, time_ns: int, values: Mapping[str, ArrayLike], file: McapFile) -> None:
        """Encode one row; nothing is kept of a row that is refused."""
        row = bytearray(self.layout.template)
        mark = struct.pack("<IQQ", self.count & 0xFFFFFFFF, time_ns, time_ns)
        for start in self.layout.marks:
            row[start : start + 20] = mark
        stamp = struct.pack("<II", *divmod(time_ns, 1_000_000_000))
        for start in self.layout.stamps:
            row[start : start + 8] = stamp
        encoded = {name: self._encode(name, value) for name, value in values.items()}
        if BODY_VELOCITY in self.layout.places and "base_vel" in encoded and "base_quat" in encoded:
            encoded[BODY_VELOCITY] = _body_velocity(encoded["base_quat"], encoded["base_vel"])
        for name, (start, count) in self.layout.places.items():
            row[start : start + 8 * count] = encoded.get(name) or self._nan[name]
        file.add(row, time_ns, self._records)
        self.count += 1

    def _encode(self, name: str, value: ArrayLike) -> bytes:
        if name not in self.signals:
            known = did_you_mean(name, self.signals if name in SIGNALS else SIGNALS)
            raise TrueupError(
                f"this log is recorded without {name!r}{known}; give it in the first row", place=name
            )
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


def _open_log(
    write: Callable[[bytes], None], encoder: RowEncoder, meta: Mapping[str, object], level: int
) -> McapFile:
    """Begin an MCAP file: metadata record, definitions, topics."""
    file = McapFile(write, level=level)
    file.define(Metadata(METADATA_NAME, _meta_table(encoder, meta)))
    types = list(dict.fromkeys(topic.message_type for topic in encoder.layout.topics))
    for number, name in enumerate(types, start=1):
        text = definition(name).encode()
        file.define(Schema(id=number, name=name.replace("/", "/msg/"), encoding="ros2msg", data=text))
    for topic in encoder.layout.topics:
        units = " ".join(SIGNALS[name][1] for name in topic.signals)
        channel = Channel(
            id=topic.channel_id,
            schema_id=types.index(topic.message_type) + 1,
            topic=topic.name,
            message_encoding="cdr",
            metadata={"signals": " ".join(topic.signals), "units": units},
        )
        file.define(channel)
    return file


def _meta_table(encoder: RowEncoder, meta: Mapping[str, object]) -> dict[str, str]:
    """The metadata record of a log: where a file has several, the last one counts."""
    units = {name: SIGNALS[name][1] for name in encoder.signals}
    try:
        return {
            "schema": SCHEMA_VERSION,
            "joint_names": json.dumps(encoder.joint_names),
            "signals": json.dumps(encoder.signals),
            "units": json.dumps(units),
            "provenance": json.dumps(dict(meta), allow_nan=False),
        }
    except (TypeError, ValueError, RecursionError) as error:
        raise TrueupError(
            f"a log's meta must be plain strings, finite numbers and lists: {error}", place="meta"
        ) from None


class LogWriter:
    """Writes a log while it is being recorded, so that a killed process loses next to nothing.

    Rows go to the kernel in chunks of at most `flush_s` of log time and of wall time, each in one write: a
    killed process loses less than that plus the row in hand, and `mcap_read.read_mcap` opens what is left.
    (Loss of power is another matter: nothing is synced to the disk before `close`.) The first row goes out at
    once, and so does every row that comes slower than `flush_s`. As a context manager it closes the file
    whatever happened.
    """

    def __init__(
        self,
        path: str | Path,
        joint_names: Sequence[str],
        meta: Mapping[str, object] | None = None,
        *,
        signals: Sequence[str] | None = None,
        flush_s: float = FLUSH_S,
        overwrite: bool = False,
    ) -> None:
        self.path = Path(path)
        self._joint_names, self._meta, self._flush_s = tuple(joint_names), dict(meta or {}), flush_s
        self._file: McapFile | None = None
        self._encoder: RowEncoder | None = None
        self._first_s = self._wall_s = 0.0
        self._last_s = math.nan  # no step is known yet: the first row goes out at once
        self._fd = self._create(overwrite)
        if signals is not None:
            self._start(signals)

    def _create(self, overwrite: bool) -> int:
        flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | (os.O_TRUNC if overwrite else os.O_EXCL)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            return os.open(self.path, flags, 0o644)
        except FileExistsError:
            raise TrueupError(
                "there is a recording here already; choose another name", file=self.path
            ) from None
        except OSError as error:
            raise TrueupError(f"cannot be written: {error.strerror}", file=self.path) from None

    def _start(self, signals: Sequence[str]) -> tuple[RowEncoder, McapFile]:
        self._encoder = RowEncoder(self._joint_names, signals)
        self._file = _open_log(self._write, self._encoder, self._meta, level=1)
        return self._encoder, self._file

    def _write(self, data: bytes) -> None:
        """Hand bytes to the kernel; on failure take back the part that was written."""
        done = 0
        try:
            while done < len(data):
                done += os.write(self._fd, data[done:] if done else data)
        except OSError as error:
            end = self._file.offset if self._file else 0
            with contextlib.suppress(OSError):  # the first error is the one to tell
                os.ftruncate(self._fd, end)
                os.lseek(self._fd, end, os.SEEK_SET)
            raise TrueupError(
                f"could not be written: {error.strerror}", file=self.path, place=f"byte {end}"
            ) from None

    @property
    def rows(self) -> int:
        """Rows appended so far."""
        return 0 if self._encoder is None else self._encoder.count

    def append(self, time_s: float, **signals: ArrayLike) -> None:
        """Add one row: one value per joint (or per axis) and signal, quaternions as w x y z."""
        if self._fd < 0:
            raise TrueupError("this recording is closed; no row can follow", file=self.path)
        time_ns = nanoseconds(time_s)
        if self._encoder is None or self._file is None:
            encoder, file = self._start(tuple(signals))
        else:
            encoder, file = self._encoder, self._file
        is_first = file.pending_bytes == 0
        encoder.add(time_ns, signals, file)
        if self._is_due(time_s, is_first) or file.pending_bytes >= _CHUNK_BYTES:
            file.flush()

    def _is_due(self, time_s: float, is_first: bool) -> bool:
        """Whether waiting for the next row, a step from now, would keep the first one longer than allowed."""
        wall_s = time.monotonic()
        step_s = time_s - self._last_s
        self._last_s = time_s
        if is_first:
            self._first_s, self._wall_s = time_s, wall_s
        kept_s = time_s + step_s - self._first_s
        is_steady = step_s > 0.0 and kept_s < self._flush_s - 1e-9
        return not is_steady or wall_s - self._wall_s >= self._flush_s

    def note(self, meta: Mapping[str, object]) -> None:
        """Add to what the log says about itself, from now on also in the file."""
        self._meta |= meta
        if self._encoder is not None and self._file is not None:
            self.flush()
            self._file.define(Metadata(METADATA_NAME, _meta_table(self._encoder, self._meta)))

    def flush(self) -> None:
        """Hand every row so far to the kernel."""
        if self._file is not None:
            self._file.flush()

    def close(self) -> None:
        """Write index and summary and close the file; safe to call twice."""
        if self._fd < 0:
            return
        try:
            file = self._file or self._start(())[1]
            file.finish()
            os.fsync(self._fd)
        finally:
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> LogWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def write_log(log: Log, path: str | Path) -> Path:
    """Write a whole log as MCAP; the file appears complete or not at all."""
    buffer = io.BytesIO()

    def write(data: bytes) -> None:
        buffer.write(data)

    encoder = RowEncoder(log.joint_names, tuple(log.signals))
    try:
        file = _open_log(write, encoder, log.meta, level=3)
        for row, time_s in enumerate(log.time.tolist()):
            values = {name: values[row] for name, values in log.signals.items()}
            encoder.add(nanoseconds(time_s), values, file)
            if file.pending_bytes >= _CHUNK_BYTES:
                file.flush()
        file.finish()
        return write_atomic(path, buffer.getvalue())
    except TrueupError as error:
        raise TrueupError(error.message, file=path, place=error.place) from None
