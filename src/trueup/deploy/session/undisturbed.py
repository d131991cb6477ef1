"""Undisturbed: what a computer can do for a timed loop while it runs, undone afterwards."""

from __future__ import annotations

import contextlib
import gc
import os
import sys
from collections.abc import Iterator

PRIORITY = 10  # below the motor guard's: whatever the policy does, the guard goes first
_SWITCH_S = 2e-4  # longest that the recorder may keep the loop waiting for the interpreter


@contextlib.contextmanager
def undisturbed(*, realtime: bool) -> Iterator[None]:
    """Keep the garbage collector out and, in real time and where it is allowed, run before ordinary programs.

    All threads that are there get the priority: the recorder's may hold the interpreter when an ordinary program takes
    its core, and the loop would wait for both.
    """
    was_on, switch_s = gc.isenabled(), sys.getswitchinterval()
    gc.freeze()
    gc.disable()
    sys.setswitchinterval(_SWITCH_S)
    before = _raise_priority() if realtime else {}
    try:
        yield
    finally:
        for thread, (policy, parameter) in before.items():
            with contextlib.suppress(OSError):
                os.sched_setscheduler(thread, policy, parameter)
        sys.setswitchinterval(switch_s)
        gc.unfreeze()
        if was_on:
            gc.enable()


def _raise_priority() -> dict[int, tuple[int, os.sched_param]]:
    """SCHED_FIFO for the threads of this process; returns what each had, without those that have as much already."""
    before: dict[int, tuple[int, os.sched_param]] = {}
    with contextlib.suppress(OSError, AttributeError):
        for thread in map(int, os.listdir("/proc/self/task")):
            had = os.sched_getscheduler(thread), os.sched_getparam(thread)
            if had[1].sched_priority < PRIORITY:
                fifo = os.SCHED_FIFO | getattr(os, "SCHED_RESET_ON_FORK", 0)
                os.sched_setscheduler(thread, fifo, os.sched_param(PRIORITY))
                before[thread] = had
    return before
