"""The twin of a fault run: the real server on a real socket, and a note of everything that reaches its motors."""

from __future__ import annotations

import contextlib
import gc
import math
import resource
import threading
import time
from dataclasses import asdict
from multiprocessing.connection import Connection
from typing import NamedTuple

import numpy as np

from faults.relay import real_time
from trueup.core.arrays import FloatArray
from trueup.hardware.realtime import lock_memory
from trueup.hardware.twin_cfg import ServeCfg
from trueup.twin.firmware import Twin
from trueup.twin.socket_server import TwinServer

STIFF, DAMPING, REFUSED, WATCHDOG = range(4)  # what came to the motors
LONG_GAP_S = 0.008  # four periods at 500 Hz


class MotorLog(NamedTuple):
    """What the motors of one run got and gave. Times are time.monotonic(), in seconds.

    event_s, event  (E,) commands in the order they came, and dampings by the twin's own watchdog
    time_s          (T,) ends of command periods; `torque` (T,) largest share of a torque limit that a motor gave;
                    `tilt` (T,) rad between the body's true vertical and upright
    counts          of the twin's tap: nonfinite, beyond_limits, ...
    target          (E, n) target positions of the commands, NaN for dampings by the watchdog
    gaps            periods that came late, see `Gap`
    """

    event_s: FloatArray
    event: FloatArray
    time_s: FloatArray
    torque: FloatArray
    tilt: FloatArray
    counts: dict[str, int]
    target: FloatArray
    gaps: tuple[Gap, ...] = ()


class Gap(NamedTuple):
    """A time without a period of the twin, and what its process did in it.

    time_s      time.monotonic() at its end; `ms` since the period before
    cpu_ms      that the process computed; `faults`: pages it got from the kernel, `waits`: times it let go of its core
                by itself, `forced`: times it lost it
    """

    time_s: float
    ms: float
    cpu_ms: float
    faults: int
    waits: int
    forced: int


def run_twin(pipe: Connection, twin: Twin, cfg: ServeCfg, keep: bool = True) -> None:
    """Serve until the pipe says so; sends the port first and a MotorLog last.

    keep  every command and period; for long runs not: a process that grows without end waits for its memory
    """
    real_time(30)
    server, tap = TwinServer(twin, cfg), MotorTap(twin, keep=keep)
    gc.collect()
    gc.freeze()
    gc.disable()
    lock_memory()

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

    def __init__(self, twin: Twin, *, keep: bool = True) -> None:
        self._twin, self._keep = twin, keep
        self._gaps: list[Gap] = []
        self._before = _use()
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
        if self._keep:
            self._events.append((now, (STIFF if is_stiff else DAMPING) if accepted else REFUSED, rows[0].copy()))
        return accepted

    def damp(self) -> None:
        if self._is_released:
            self._events.append((time.monotonic(), WATCHDOG, self._nothing))  # rare: kept in any case
            self._damp()

    def period(self) -> None:
        self._period()
        before, self._before = self._before, _use()
        if self._before[0] - before[0] > LONG_GAP_S:
            passed = [new - old for new, old in zip(self._before, before, strict=True)]
            self._gaps.append(Gap(self._before[0], 1e3 * passed[0], 1e3 * passed[1], *(int(one) for one in passed[2:])))
        if not self._keep and self._rows:
            return
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
            gaps=tuple(self._gaps),
        )


def _use() -> tuple[float, ...]:
    """Of this process: time, time that it computed, pages from the kernel, cores given up and lost."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return (
        time.monotonic(),
        used.ru_utime + used.ru_stime,
        used.ru_minflt + used.ru_majflt,
        used.ru_nvcsw,
        used.ru_nivcsw,
    )
