"""Settings of the process for a timed loop (garbage collector, priority, locked memory), restored afterwards."""

from __future__ import annotations

import contextlib
import gc
import sys
from collections.abc import Iterator

from trueup.hardware.realtime import POLICY, SWITCH_S, lock_memory, raise_priority, restore_priority, unlock_memory

PRIORITY = POLICY


@contextlib.contextmanager
def undisturbed(*, realtime: bool) -> Iterator[None]:
    """Disable the garbage collector; in real time also raise the priority and lock memory, where allowed."""
    was_on, switch_s = gc.isenabled(), sys.getswitchinterval()
    gc.freeze()
    gc.disable()
    sys.setswitchinterval(SWITCH_S)
    before = raise_priority(PRIORITY) if realtime else {}
    if realtime:
        lock_memory()
    try:
        yield
    finally:
        if realtime:
            unlock_memory()
        restore_priority(before)
        sys.setswitchinterval(switch_s)
        gc.unfreeze()
        if was_on:
            gc.enable()
