"""The one timed loop: a tick at every point of an absolute schedule, and damping at every exit.

Tick k is due at start + k / rate, whatever happened before, so lateness does not add up. A tick that runs past the next
due time is an overrun: the points that pass meanwhile are missed, not made up for in a burst, and the next tick gets
the number of the point it runs at, so that references indexed by it keep to the clock. A lock-step driver (not
`realtime`) is ticked as fast as it answers.

Ctrl-C and SIGTERM end the loop after the tick in hand; a second Ctrl-C interrupts at once.
"""

from __future__ import annotations

import logging
import threading
import time
from array import array
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from trueup.core.errors import TrueupError
from trueup.core.stop import stop_on_signal
from trueup.hardware.driver import Driver

_log = logging.getLogger(__name__)
Tick = Callable[[int], bool]
DAMP_TRIES = 3


@dataclass(frozen=True, kw_only=True)
class LoopReport:
    """Timing of a loop.

    ended     "done": the tick returned False; "interrupted": Ctrl-C or SIGTERM
    ticks     that ran; `overruns` of them ran past the next due time; `missed` points of the schedule had no tick
    late_*    from due time to start of the tick, seconds: median, 99 %, worst
    seconds   from the first tick's due time to the end of the last tick
    """

    ended: Literal["done", "interrupted"]
    ticks: int
    overruns: int
    missed: int
    late_median_s: float
    late_p99_s: float
    late_max_s: float
    seconds: float


def run_loop(driver: Driver, tick: Tick, *, rate_hz: float) -> LoopReport:
    """Call `tick(k)` on schedule until it returns False or the user interrupts; damp the driver in any case.

    An exception of the tick is raised after damping.
    """
    if not 0.0 < rate_hz <= 100_000.0:
        raise TrueupError(f"a loop needs a rate above 0 and up to 100000 Hz, found {rate_hz}")
    with stop_on_signal() as stop:
        try:
            return run_ticks(tick, stop, 1.0 / rate_hz if driver.realtime else 0.0)
        finally:
            damp_surely(driver)


def damp_surely(driver: Driver) -> None:
    """Damp, trying again when the robot does not answer; the last failure is logged, not raised.

    An exception from here would hide the one that made damping necessary; drivers damp by themselves when no command
    comes, so there is nothing more to be done.
    """
    for left in reversed(range(DAMP_TRIES)):
        try:
            driver.damp()
            return
        except Exception as error:  # any driver, any failure: try again
            if not left:
                _log.error("damping failed %d times: %s", DAMP_TRIES, error)


def run_ticks(tick: Tick, stop: threading.Event, period: float) -> LoopReport:
    """Tick every `period` seconds (0: without waiting) until the tick returns False or `stop`; does not damp."""
    late, overruns, last, k, seconds, go_on = array("d"), 0, -1, 0, 0.0, True
    start = time.perf_counter()
    while go_on and not stop.is_set():
        due = start + k * period
        if period:
            time.sleep(max(0.0, due - time.perf_counter()))
        late.append(time.perf_counter() - due if period else 0.0)
        go_on = tick(k)
        seconds = time.perf_counter() - start
        following = max(k, int(seconds / period) if period else k) + 1
        overruns += go_on and following > k + 1
        last, k = k, following
    median, p99, worst = np.quantile(late, (0.5, 0.99, 1.0)) if late else (0.0, 0.0, 0.0)
    return LoopReport(
        ended="interrupted" if go_on else "done",
        ticks=len(late),
        overruns=overruns,
        missed=last + 1 - len(late),
        late_median_s=float(median),
        late_p99_s=float(p99),
        late_max_s=float(worst),
        seconds=seconds,
    )
