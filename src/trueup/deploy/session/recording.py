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
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np

from trueup.core.files import make_folder, writing
from trueup.hardware.driver import RobotState
from trueup.hardware.policy_rows import (
    FILE,
    PHASES,
    STATE_IMU,
    STATE_JOINTS,
    RecordedRows,
    RowsHeader,
    column_widths,
    read_rows,
)

__all__ = [
    "FILE",
    "PHASES",
    "RecordedRows",
    "RowWriter",
    "RowsHeader",
    "Written",
    "column_widths",
    "read_rows",
    "state_columns",
]

_log = logging.getLogger(__name__)
MOST_WAITING = 1000  # rows; then the disk has stood still for seconds, and rows are dropped and counted


def state_columns(state: RobotState) -> dict[str, object]:
    """A state as columns; what the robot does not have is NaN."""
    names = ("sequence", "time_s", "voltage", *STATE_JOINTS, *STATE_IMU)
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

    def __init__(self, path: Path, header: RowsHeader) -> None:
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
