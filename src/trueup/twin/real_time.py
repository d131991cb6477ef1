"""Real time of a twin that is served: command periods on an absolute schedule."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from trueup.twin.firmware import Twin

SLIP_S = 0.5  # behind the wall clock by more than this: the schedule starts anew


def periods(twin: Twin, hz: float, is_over: Callable[[], bool]) -> Iterator[tuple[float, float]]:
    """Yield (begins, is due) of each command period, s of `time.perf_counter`, until it is over.

    The caller waits until it is due and lets the twin pass the period; one that took longer counts as an overrun.
    """
    period, start, k = 1.0 / hz, time.perf_counter(), 0
    while not is_over():
        k += 1
        due = start + k * period
        yield due - period, due
        late = time.perf_counter() - due
        if late > period:
            twin.count("overruns")
        if late > SLIP_S:
            start += late
