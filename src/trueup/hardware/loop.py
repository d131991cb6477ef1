"""The one timed loop: a tick at every point of an absolute schedule, and damping at every exit.

Tick k is due at start + k / rate, whatever happened before, so lateness does not add up. A tick that runs
past the next due time is an overrun: the points it slept through are missed, not made up for in a burst, and
the next tick gets the number of the point it runs at, so that whatever is played by number stays on the
clock. A lock-step driver (not `realtime`) is ticked as fast as it answers.

Ctrl-C and SIGTERM end the loop after the tick in hand; a second Ctrl-C interrupts at once.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import threading
import time
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import FrameType
from typing import Literal

import numpy as np

from trueup.core.errors import TrueupError
from trueup.hardware.driver import Driver

_log = logging.getLogger(__name__)
Tick = Callable[[int], bool]
DAMP_TRIES = 3


@dataclass(frozen=True, kw_only=True)
class LoopCfg:
    """Timing of the loop.

    spin_s         the last part of each wait is spun instead of slept: less jitter for a busy core (0.0003 is
                   plenty)
    fifo_priority  1 to 99: ask for the real-time scheduler SCHED_FIFO; without the permission the loop runs
                   as usual
    """

    rate_hz: float
    spin_s: float = 0.0
    fifo_priority: int = 0

    def __post_init__(self) -> None:
        if not 0.0 < self.rate_hz <= 100_000.0:
            raise TrueupError(f"a loop needs a rate above 0 and up to 100000 Hz, found {self.rate_hz}")
        if not 0.0 <= self.spin_s < 1.0 / self.rate_hz or not 0 <= self.fifo_priority <= 99:
            raise TrueupError("spin_s must be shorter than a period and fifo_priority 0 to 99")


@dataclass(frozen=True, kw_only=True)
class LoopReport:
    """How the loop went.

    ended     "done": the tick said so; "interrupted": Ctrl-C or SIGTERM
    ticks     that ran; `overruns` of them ran past the next due time; `missed` points of the schedule had no
              tick
    late_*    from due time to start of the tick, seconds: median, 99 %, worst
    seconds   from the first tick's due time to the end of the last tick
    fifo      whether the real-time scheduler was granted
    """

    ended: Literal["done", "interrupted"]
    ticks: int
    overruns: int
    missed: int
    late_median_s: float
    late_p99_s: float
    late_max_s: float
    seconds: float
    fifo: bool


def run_loop(driver: Driver, tick: Tick, cfg: LoopCfg) -> LoopReport:
    """Call `tick(k)` on schedule until it returns False or the user interrupts; damp the driver in any case.

    An exception of the tick passes through, after the damping.
    """
    with _asked_to_stop() as asked, _scheduler(cfg.fifo_priority if driver.realtime else 0) as fifo:
        run = _Run(cfg)
        try:
            is_done = run.on_schedule(tick, asked) if driver.realtime else run.in_lock_step(tick, asked)
        finally:
            damp_surely(driver)
        return run.report("done" if is_done else "interrupted", fifo)


def damp_surely(driver: Driver) -> None:
    """Damp, trying again when the robot does not answer; the last failure is logged, not raised.

    An exception from here would hide the one that made damping necessary; drivers damp by themselves when no
    command comes, so there is nothing more to be done.
    """
    for left in reversed(range(DAMP_TRIES)):
        try:
            driver.damp()
            return
        except Exception as error:  # any driver, any failure: try again
            if not left:
                _log.error("damping failed %d times: %s", DAMP_TRIES, error)


class _Run:
    """Counters of one run."""

    def __init__(self, cfg: LoopCfg) -> None:
        self._period, self._spin = 1.0 / cfg.rate_hz, cfg.spin_s
        self._late = array("d")
        self._overruns = self._missed = 0
        self._seconds = 0.0

    def on_schedule(self, tick: Tick, asked: threading.Event) -> bool:
        """Tick at the points of the schedule; returns whether the tick ended it."""
        start, k = time.perf_counter(), 0
        while not asked.is_set():
            due = start + k * self._period
            self._wait(due)
            self._late.append(time.perf_counter() - due)
            go_on = tick(k)
            self._seconds = time.perf_counter() - start
            if not go_on:
                return True
            following = max(k, int(self._seconds / self._period)) + 1
            if following > k + 1:
                self._overruns += 1
                self._missed += following - k - 1
            k = following
        return False

    def in_lock_step(self, tick: Tick, asked: threading.Event) -> bool:
        start, k = time.perf_counter(), 0
        while not asked.is_set():
            self._late.append(0.0)
            go_on = tick(k)
            self._seconds = time.perf_counter() - start
            if not go_on:
                return True
            k += 1
        return False

    def _wait(self, due: float) -> None:
        """Sleep until shortly before the due time, spin the rest."""
        left = due - self._spin - time.perf_counter()
        if left > 0.0:
            time.sleep(left)
        if self._spin:
            while time.perf_counter() < due:
                pass

    def report(self, ended: Literal["done", "interrupted"], fifo: bool) -> LoopReport:
        late = np.frombuffer(self._late, np.float64) if self._late else np.zeros(1)
        return LoopReport(
            ended=ended,
            ticks=len(self._late),
            overruns=self._overruns,
            missed=self._missed,
            late_median_s=float(np.median(late)),
            late_p99_s=float(np.quantile(late, 0.99)),
            late_max_s=float(late.max()),
            seconds=self._seconds,
            fifo=fifo,
        )


@contextlib.contextmanager
def _asked_to_stop() -> Iterator[threading.Event]:
    """Turn the first SIGINT or SIGTERM into a flag, so that no tick is cut in two (main thread only)."""
    asked = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield asked
        return

    def remember(number: int, frame: FrameType | None) -> None:
        if asked.is_set() and number == signal.SIGINT:
            raise KeyboardInterrupt
        asked.set()

    before = {number: signal.signal(number, remember) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def _scheduler(priority: int) -> Iterator[bool]:
    """Run under SCHED_FIFO where asked for and permitted; yields whether it is so."""
    if not priority or not hasattr(os, "sched_setscheduler"):
        yield False
        return
    before = os.sched_getscheduler(0), os.sched_getparam(0)
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))
    except (PermissionError, OSError) as error:
        _log.warning("the real-time scheduler was not granted (%s); going on without", error)
        yield False
        return
    try:
        yield True
    finally:
        os.sched_setscheduler(0, *before)
