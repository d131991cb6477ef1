"""The twin of a fault run: the real server on a real socket, and a note of everything that reaches its motors."""

from __future__ import annotations

import contextlib
import gc
import math
import threading
import time
from dataclasses import asdict
from multiprocessing.connection import Connection
from typing import NamedTuple

import numpy as np

from faults.relay import real_time
from trueup.core.arrays import FloatArray
from trueup.hardware.twin_cfg import ServeCfg
from trueup.twin.firmware import Twin
from trueup.twin.socket_server import TwinServer

STIFF, DAMPING, REFUSED, WATCHDOG = range(4)  # what came to the motors


class MotorLog(NamedTuple):
    """What the motors of one run got and gave. Times are time.monotonic(), in seconds.

    event_s, event  (E,) commands in the order they came, and dampings by the twin's own watchdog
    time_s          (T,) ends of command periods; `torque` (T,) largest share of a torque limit that a motor gave;
                    `tilt` (T,) rad between the body's true vertical and upright
    counts          of the twin's tap: nonfinite, beyond_limits, ...
    target          (E, n) target positions of the commands, NaN for dampings by the watchdog
    """

    event_s: FloatArray
    event: FloatArray
    time_s: FloatArray
    torque: FloatArray
    tilt: FloatArray
    counts: dict[str, int]
    target: FloatArray


def run_twin(pipe: Connection, twin: Twin, cfg: ServeCfg) -> None:
    """Serve until the pipe says so; sends the port first and a MotorLog last."""
    real_time(30)
    server, tap = TwinServer(twin, cfg), MotorTap(twin)
    gc.collect()
    gc.freeze()
    gc.disable()

    def wait() -> None:
        with contextlib.suppress(EOFError):  # whoever ordered this is gone
            pipe.recv()
        server._is_over = True

    threading.Thread(target=wait, daemon=True).start()
    pipe.send(server.address[1])
    server.run()
    pipe.send(tap.log())


class MotorTap:
    """Stands before a twin's `command`, `damp` and `period`.

    Until the first command with stiffness the robot stands as if its brakes held it: a run begins upright.
    """

    def __init__(self, twin: Twin) -> None:
        self._twin = twin
        self._command, self._damp, self._period = twin.command, twin.damp, twin.period
        self._events: list[tuple[float, int, FloatArray]] = []
        self._rows: list[tuple[float, float, float]] = []
        self._is_released = False
        spec = twin.robot.spec
        self._limit, self._nothing = spec.torque_limit, np.full(spec.njoint, np.nan)
        self._body = twin.plant.data.body(spec.base.body)
        twin.command, twin.damp, twin.period = self.command, self.damp, self.period  # type: ignore[method-assign]

    def command(self, rows: FloatArray, ahead_steps: float = 0.0) -> bool:
        now = time.monotonic()
        is_stiff = rows.shape[0] == 5 and bool(rows[2].any() or rows[4].any() or rows[1].any())
        self._is_released |= is_stiff
        if not self._is_released:
            return True
        accepted = self._command(rows, ahead_steps)
        self._events.append((now, (STIFF if is_stiff else DAMPING) if accepted else REFUSED, rows[0].copy()))
        return accepted

    def damp(self) -> None:
        if self._is_released:
            self._events.append((time.monotonic(), WATCHDOG, self._nothing))
            self._damp()

    def period(self) -> None:
        self._period()
        share = float((np.abs(self._twin.plant.force) / self._limit).max())
        tilt = math.acos(min(1.0, max(-1.0, float(self._body.xmat[8]))))
        self._rows.append((time.monotonic(), share, tilt))

    def log(self) -> MotorLog:
        """Everything so far."""
        events = self._events or [(0.0, DAMPING, self._nothing)]
        table = np.array(self._rows)
        return MotorLog(
            event_s=np.array([time_s for time_s, _, _ in events]),
            event=np.array([kind for _, kind, _ in events]),
            time_s=table[:, 0],
            torque=table[:, 1],
            tilt=table[:, 2],
            counts=asdict(self._twin.tap()),
            target=np.stack([target for _, _, target in events]),
        )
