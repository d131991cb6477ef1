"""Recorder: writes states and sent commands to robot.mcap and events to events.jsonl, in a thread of its own.

The loop only appends to a queue of bounded length. Rows that do not fit, and those that a full disk refuses, are
counted; control goes on. Rows reach the kernel within 30 ms, so that little is lost when the process is killed.
"""

from __future__ import annotations

import contextlib
import io
import logging
import math
import threading
import time
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING

import msgspec
import numpy as np

from trueup.core.arrays import FloatArray
from trueup.core.errors import TrueupError
from trueup.hardware.driver import RobotState

if TYPE_CHECKING:
    from trueup.data.mcap.write import LogWriter

_log = logging.getLogger(__name__)
LOG_FILE, EVENTS_FILE = "robot.mcap", "events.jsonl"
_LONGEST = 2000  # rows in the queue: 4 s at 500 Hz
_LOOK_S = 0.005
_CLOSE_S = 3.0
_STATES = ("joint_pos", "joint_vel")
_TARGETS = ("target_pos", "target_vel", "target_torque", "target_kp", "target_kd")
_OPTIONAL = ("joint_torque", "joint_temperature", "voltage", "imu_quat", "imu_gyro", "imu_acc")
_Item = tuple[RobotState, FloatArray] | dict[str, object]


class GuardRecorder:
    """Queues rows and events without waiting; `out` None: records nothing."""

    def __init__(self, out: Path | None, joint_names: tuple[str, ...], meta: Mapping[str, object]) -> None:
        self._out, self._names, self._meta = out, joint_names, dict(meta)
        self.dropped = self.rows = 0
        self.problem = ""
        self._queue: deque[_Item] = deque()
        self._is_over = False
        self._last_s = -math.inf
        self._signals: tuple[str, ...] = ()
        self._is_ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="recorder", daemon=True)
        if out is not None:
            self._thread.start()

    def row(self, state: RobotState, rows: FloatArray) -> None:
        """Queue a state and the command rows (5, n) that follow it, unless its clock repeats or goes back."""
        if self._out is None or not self._last_s < state.time_s < 2.0**31 or state.time_s < 0.0:
            return
        self._last_s = state.time_s
        if len(self._queue) >= _LONGEST or self.problem:
            self.dropped += 1
        else:
            self._queue.append((state, rows))

    def event(self, kind: str, time_s: float, **facts: object) -> None:
        """Queue an event."""
        if self._out is not None and len(self._queue) < 2 * _LONGEST:
            robot_s = self._last_s if math.isfinite(self._last_s) else None
            self._queue.append({"event": kind, "time_s": time_s, "robot_s": robot_s, **facts})

    def close(self, meta: Mapping[str, object] | None = None) -> None:
        """Write the rest of the queue, within a few seconds."""
        self._meta |= meta or {}
        self._is_over = True
        if self._out is not None:
            self._thread.join(_CLOSE_S)

    def wait(self, seconds: float) -> None:
        """Wait until the writer is ready: the first write is slow."""
        if self._out is not None:
            self._is_ready.wait(seconds)

    # --- the thread ---
    def _run(self) -> None:
        assert self._out is not None
        writer: LogWriter | None = None
        with contextlib.ExitStack() as files:
            events = self._open_events(files)
            try:
                from trueup.data.mcap.write import LogWriter, Rows

                Rows(io.BytesIO(), self._names, (*_STATES, *_OPTIONAL, *_TARGETS), {})  # the first write is slow
                writer = LogWriter(self._out / LOG_FILE, self._names, self._meta)
            except (TrueupError, OSError, ImportError) as error:
                self._fail(error)
            self._is_ready.set()
            while not self._is_over or self._queue:
                self._drain(writer, events)
                time.sleep(_LOOK_S)
            if writer is not None:
                try:
                    if not self.problem:
                        writer.note(self._meta)
                    writer.close()
                except Exception as error:
                    self._fail(error)

    def _open_events(self, files: contextlib.ExitStack) -> IO[bytes] | None:
        assert self._out is not None
        try:
            return files.enter_context(open(self._out / EVENTS_FILE, "ab", buffering=0))
        except OSError as error:
            _log.warning("no events are recorded: %s", error)
            return None

    def _drain(self, writer: LogWriter | None, events: IO[bytes] | None) -> None:
        while self._queue:
            item = self._queue.popleft()
            if isinstance(item, dict):
                with contextlib.suppress(OSError, ValueError):
                    if events is not None:
                        events.write(msgspec.json.encode(item) + b"\n")
            elif self.problem or writer is None:
                self.dropped += 1
            else:
                self._write(writer, *item)

    def _write(self, writer: LogWriter, state: RobotState, rows: FloatArray) -> None:
        if not self._signals:
            values = {name: getattr(state, name) for name in _OPTIONAL}
            there = [name for name, value in values.items() if value is not None and np.isfinite(value).all()]
            self._signals = (*_STATES, *there)
        target, speed, kp, kd, torque = rows
        try:
            writer.append(
                state.time_s,
                **{name: getattr(state, name) for name in self._signals},
                target_pos=target,
                target_vel=speed,
                target_torque=torque,
                target_kp=kp,
                target_kd=kd,
            )
            self.rows += 1
        except Exception as error:  # a full disk or an invalid row must not stop the control loop
            self._fail(error)
            self.dropped += 1

    def _fail(self, error: Exception) -> None:
        what = f"{error}; `pip install trueup[data]`" if isinstance(error, ImportError) else str(error)
        if not self.problem:
            _log.warning("%s is not recorded any more: %s", LOG_FILE, what)
        self.problem = what
