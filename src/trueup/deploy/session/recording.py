"""policy.rows: everything the policy process computed, one row a control step, written while the robot runs.

One line of JSON (what ran, with which settings, and the columns), then rows of little-endian float64, each with a
checksum. A thread of its own writes every row with one system call as soon as it has it: the control loop never waits
for a disk, and a killed process loses the row in hand. A file that was cut short reads up to its last whole row.

State columns hold what the controller was given, bit for bit, so that `replay` computes the same commands from them.
"""

from __future__ import annotations

import logging
import os
import queue
import threading
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

from trueup.core.arrays import FloatArray
from trueup.core.errors import TrueupError
from trueup.core.files import make_folder, writing
from trueup.hardware.driver import RobotState

_log = logging.getLogger(__name__)
FILE = "policy.rows"
SCHEMA = 1
MOST_WAITING = 1000  # rows; then the disk has stood still for seconds, and rows are dropped and counted
_MAX_HEADER = 1_000_000
_STATE_JOINTS = ("joint_pos", "joint_vel", "joint_torque", "joint_temperature")
_STATE_IMU = {"imu_quat": 4, "imu_gyro": 3, "imu_acc": 3}
PHASES = ("ramp", "policy", "exit")


class Header(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """First line of the file.

    columns   name -> width of every column, in order; all joints in the order of `joint_names`
    settings  smoothing, target_step, engine of the controller; what else was asked stands in `meta`
    """

    schema: int = SCHEMA
    kind: str = "trueup policy recording"
    bundle: str  # path as it was given
    bundle_hash: str
    robot: str
    joint_names: tuple[str, ...]
    control_hz: float
    has_imu: bool
    settings: dict[str, float | str | None]
    columns: dict[str, int]
    meta: dict[str, object] = {}


def column_widths(njoint: int, ncommand: int, nobs: int, naction: int) -> dict[str, int]:
    """Columns of a row.

    tick, phase, restart   number in the schedule, index of PHASES, 1 where an episode began
    wall_s, late_s, step_s  time since the start; from due time to the start of the step; that the step took
    flags, distance         of the monitors; guard: 1 once the motor guard has tripped
    asked, command          what the operator asked for, what the policy saw of it
    wanted, target          before and after the bound on their change; sent_*: what the driver says it sent
    """
    single = ("tick", "phase", "restart", "wall_s", "late_s", "step_s", "flags", "distance", "guard")
    state = {"sequence": 1, "time_s": 1, "voltage": 1, **dict.fromkeys(_STATE_JOINTS, njoint), **_STATE_IMU}
    policy = {"asked": ncommand, "command": ncommand, "observation": nobs, "raw": naction, "smoothed": naction}
    joints = dict.fromkeys(("wanted", "target", "sent_pos", "sent_kp", "sent_kd"), njoint)
    return {**dict.fromkeys(single, 1), **state, **policy, **joints}


def state_columns(state: RobotState) -> dict[str, object]:
    """A state as columns; what the robot does not have is NaN."""
    names = ("sequence", "time_s", "voltage", *_STATE_JOINTS, *_STATE_IMU)
    found = {name: getattr(state, name) for name in names}
    return {name: np.nan if value is None else value for name, value in found.items()}


@dataclass(frozen=True)
class Written:
    """How the recording went: rows on disk, rows dropped because the disk was too slow, and its error if it had one."""

    rows: int
    dropped: int
    error: str


class RowWriter:
    """Writes rows from a thread of its own; `add` returns at once, whatever the disk does."""

    def __init__(self, path: Path, header: Header) -> None:
        self.path, self._widths = path, header.columns
        ends = np.cumsum([0, *header.columns.values()])
        self._places = {name: slice(int(ends[k]), int(ends[k + 1])) for k, name in enumerate(header.columns)}
        self._width = int(ends[-1])
        make_folder(path.parent)
        with writing(path):
            self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
            os.write(self._file, msgspec.json.encode(header) + b"\n")
        self._queue: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._rows = self._dropped = 0
        self._error = ""
        self._is_open = True
        self._thread = threading.Thread(target=self._run, name="policy.rows", daemon=True)
        self._thread.start()

    def add(self, **columns: object) -> None:
        """Hand over one row; columns that are not given are NaN."""
        row = np.full(self._width, np.nan)
        for name, value in columns.items():
            row[self._places[name]] = value
        if self._queue.qsize() > MOST_WAITING:
            self._dropped += 1
            return
        self._queue.put(row.astype("<f8", copy=False).tobytes())

    @property
    def error(self) -> str:
        """Why nothing can be written any more, "" while it goes well."""
        return self._error

    def close(self) -> Written:
        """Write what is waiting, for two seconds at most, and close. Safe to call twice."""
        if self._is_open:
            self._is_open = False
            self._queue.put(None)
            self._thread.join(2.0)
            if not self._thread.is_alive():
                os.close(self._file)
        return Written(self._rows, self._dropped, self._error)

    def _run(self) -> None:
        while (row := self._queue.get()) is not None:
            if self._error:
                self._dropped += 1
                continue
            try:
                _write_all(self._file, row + zlib.crc32(row).to_bytes(8, "little"))
                self._rows += 1
            except OSError as error:
                self._error = error.strerror or str(error)
                self._dropped += 1
                _log.error("%s: recording stopped: %s", self.path, self._error)


def _write_all(file: int, data: bytes) -> None:
    while data:
        data = data[os.write(file, data) :]


class Recorded(NamedTuple):
    """A recording as it was read: columns (T, width) each; `damaged`: rows that their checksum did not fit."""

    header: Header
    columns: Mapping[str, FloatArray]
    damaged: int

    def __len__(self) -> int:
        return len(self.columns["tick"])

    def state(self, row: int) -> RobotState:
        """The state that the controller was given."""
        joints = {name: self.columns[name][row] for name in _STATE_JOINTS}
        imu = {name: self.columns[name][row] for name in _STATE_IMU if self.header.has_imu}
        time_s, voltage = (float(self.columns[name][row, 0]) for name in ("time_s", "voltage"))
        return RobotState(
            sequence=int(self.columns["sequence"][row, 0]), time_s=time_s, voltage=voltage, **joints, **imu
        )


def read_rows(path: str | Path) -> Recorded:
    """Read a recording, also one that was cut short; every failure names the file."""
    file = Path(path)
    try:
        head, _, body = file.read_bytes().partition(b"\n")
    except OSError as error:
        raise TrueupError(f"the recording cannot be read: {error.strerror}", file=file) from None
    try:
        header = msgspec.json.decode(head[:_MAX_HEADER], type=Header)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise TrueupError(f"is not a recording of `trueup deploy` ({FILE}): {error}", file=file) from None
    if header.schema != SCHEMA:
        raise TrueupError(f"schema {header.schema} is not known to this version (it reads {SCHEMA})", file=file)
    widths = list(header.columns.values())
    if not widths or any(not 0 <= width <= 1_000_000 for width in widths):
        raise TrueupError("its header names no columns, or columns of impossible width", file=file)
    expected = column_widths(len(header.joint_names), header.columns.get("asked", 0), 0, 0)
    lacking = [name for name in expected if name not in header.columns]
    if lacking:
        raise TrueupError(f"its header lacks the column {lacking[0]!r}", file=file)
    return _rows(header, body)


def _rows(header: Header, body: bytes) -> Recorded:
    size = 8 * (sum(header.columns.values()) + 1)
    whole = [body[k * size : (k + 1) * size] for k in range(len(body) // size)]
    sound = [row for row in whole if zlib.crc32(row[:-8]) == int.from_bytes(row[-8:], "little")]
    values = np.frombuffer(b"".join(row[:-8] for row in sound), "<f8").astype(np.float64)
    table = values.reshape(len(sound), sum(header.columns.values()))
    ends = np.cumsum([0, *header.columns.values()])
    columns = {name: table[:, int(ends[k]) : int(ends[k + 1])] for k, name in enumerate(header.columns)}
    return Recorded(header, columns, len(whole) - len(sound))
