"""Real time as far as the system allows it: priority before ordinary programs, memory that stays where it is.

Priorities, highest first: a twin (a robot is not disturbed by what else this computer does), the motor guard (it goes
first whatever the policy does), the policy. Nothing here fails: what is not allowed is left as it is.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
from pathlib import Path

TWIN, GUARD, POLICY = 30, 20, 10  # of SCHED_FIFO
SWITCH_S = 2e-4  # longest that a thread beside a timed loop may keep it waiting for the interpreter
_CURRENT, _FUTURE, _ON_FAULT = 1, 2, 4  # of mlockall: what is there, what will come, only what is touched
_CAP_IPC_LOCK, _CAP_SYS_NICE = 14, 23
Before = dict[int, tuple[int, os.sched_param]]


def may_raise() -> bool:
    """Whether this process may go before ordinary programs."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        return resource.getrlimit(resource.RLIMIT_RTPRIO)[0] >= GUARD or _has(_CAP_SYS_NICE)
    return False


def raise_priority(priority: int, *, inherited: bool = False) -> Before:
    """SCHED_FIFO for all threads of this process; returns what each had, without those that have as much already.

    All threads: one of ordinary priority may hold the interpreter when another program takes its core, and the timed
    loop would wait for both. `inherited`: threads and processes that are started later have it too.
    """
    before: Before = {}
    reset = 0 if inherited else getattr(os, "SCHED_RESET_ON_FORK", 0)
    with contextlib.suppress(OSError, AttributeError):
        for thread in map(int, os.listdir("/proc/self/task")):
            had = os.sched_getscheduler(thread), os.sched_getparam(thread)
            if had[1].sched_priority < priority:
                os.sched_setscheduler(thread, os.SCHED_FIFO | reset, os.sched_param(priority))
                before[thread] = had
    return before


def restore_priority(before: Before) -> None:
    """Give every thread what it had; those that have ended are left out."""
    for thread, (policy, parameter) in before.items():
        with contextlib.suppress(OSError):
            os.sched_setscheduler(thread, policy, parameter)


def lock_memory() -> bool:
    """Keep every page that is in use in memory, so that no step waits for a disk; whether that was allowed.

    Asked for only where no limit on locked memory could make a later allocation fail.
    """
    return _may_lock() and _call("mlockall", _CURRENT | _FUTURE | _ON_FAULT)


def unlock_memory() -> None:
    """Undo `lock_memory`."""
    _call("munlockall")


def _may_lock() -> bool:
    return resource.getrlimit(resource.RLIMIT_MEMLOCK)[0] == resource.RLIM_INFINITY or _has(_CAP_IPC_LOCK)


def _has(capability: int) -> bool:
    with contextlib.suppress(OSError, ValueError, IndexError):
        status = Path("/proc/self/status").read_text()
        return bool(int(status.split("CapEff:")[1].split()[0], 16) >> capability & 1)
    return False


def _call(name: str, *arguments: int) -> bool:
    with contextlib.suppress(OSError, AttributeError):
        return bool(getattr(ctypes.CDLL(None, use_errno=True), name)(*arguments) == 0)
    return False
