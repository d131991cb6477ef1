"""Reads policy.rows: states, observations, actions and targets of a policy's process, one row a control step.

`deploy.session.recording` writes it; it is read by replays, the loop and the
diagnosis, which do not import `deploy`. One line of JSON, then rows of little-endian float64, each with a checksum.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

from trueup.core.arrays import FloatArray
from trueup.core.errors import TrueupError
from trueup.hardware.driver import RobotState

FILE = "policy.rows"
SCHEMA = 1
PHASES = ("ramp", "policy", "exit")
STATE_JOINTS = ("joint_pos", "joint_vel", "joint_torque", "joint_temperature")
STATE_IMU = {"imu_quat": 4, "imu_gyro": 3, "imu_acc": 3}
_MAX_HEADER = 1_000_000


class RowsHeader(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """First line of the file.

    columns   name -> width of every column, in order; all joints in the order of `joint_names`
    settings  smoothing, target_step, engine of the controller; `meta` holds the other options
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
    asked, command          the operator's command, and as the policy observed it
    wanted, target          before and after the bound on their change; sent_*: as the driver returned it
    """
    single = ("tick", "phase", "restart", "wall_s", "late_s", "step_s", "flags", "distance", "guard")
    state = {"sequence": 1, "time_s": 1, "voltage": 1, **dict.fromkeys(STATE_JOINTS, njoint), **STATE_IMU}
    policy = {"asked": ncommand, "command": ncommand, "observation": nobs, "raw": naction, "smoothed": naction}
    joints = dict.fromkeys(("wanted", "target", "sent_pos", "sent_kp", "sent_kd"), njoint)
    return {**dict.fromkeys(single, 1), **state, **policy, **joints}


class RecordedRows(NamedTuple):
    """Content of a recording: columns (T, width) each; `damaged`: rows with a wrong checksum."""

    header: RowsHeader
    columns: Mapping[str, FloatArray]
    damaged: int

    def __len__(self) -> int:
        return len(self.columns["tick"])

    def state(self, row: int) -> RobotState:
        """The state that the controller was given."""
        joints = {name: self.columns[name][row] for name in STATE_JOINTS}
        imu = {name: self.columns[name][row] for name in STATE_IMU if self.header.has_imu}
        time_s, voltage = (float(self.columns[name][row, 0]) for name in ("time_s", "voltage"))
        return RobotState(
            sequence=int(self.columns["sequence"][row, 0]), time_s=time_s, voltage=voltage, **joints, **imu
        )


def read_rows(path: str | Path) -> RecordedRows:
    """Read a recording, also one that was cut short; every failure names the file."""
    file = Path(path)
    try:
        head, _, body = file.read_bytes().partition(b"\n")
    except OSError as error:
        raise TrueupError(f"the recording cannot be read: {error.strerror}", file=file) from None
    try:
        header = msgspec.json.decode(head[:_MAX_HEADER], type=RowsHeader)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise TrueupError(f"is not a recording of `trueup deploy` ({FILE}): {error}", file=file) from None
    if header.schema != SCHEMA:
        raise TrueupError(f"schema {header.schema} is not known to this version (it reads {SCHEMA})", file=file)
    widths = list(header.columns.values())
    if not widths or any(not 0 <= width <= 1_000_000 for width in widths):
        raise TrueupError("its header names no columns, or columns of impossible width", file=file)
    expected = column_widths(len(header.joint_names), header.columns.get("asked", 0), 0, 0)
    missing = [name for name in expected if name not in header.columns]
    if missing:
        raise TrueupError(f"its header lacks the column {missing[0]!r}", file=file)
    return _rows(header, body)


def _rows(header: RowsHeader, body: bytes) -> RecordedRows:
    size = 8 * (sum(header.columns.values()) + 1)
    whole = [body[k * size : (k + 1) * size] for k in range(len(body) // size)]
    sound = [row for row in whole if zlib.crc32(row[:-8]) == int.from_bytes(row[-8:], "little")]
    values = np.frombuffer(b"".join(row[:-8] for row in sound), "<f8").astype(np.float64)
    table = values.reshape(len(sound), sum(header.columns.values()))
    ends = np.cumsum([0, *header.columns.values()])
    columns = {name: table[:, int(ends[k]) : int(ends[k + 1])] for k, name in enumerate(header.columns)}
    return RecordedRows(header, columns, len(whole) - len(sound))
