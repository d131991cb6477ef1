"""Real-time settings as far as the system allows them: SCHED_FIFO priority, locked memory.

Priorities, highest first: a twin (a robot does not depend on this computer's load), the motor guard (it goes
before the policy), the policy. Nothing here fails: a setting that is not allowed is skipped.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
from pathlib import Path

TWIN, GUARD, POLICY = 30, 20, 10  # of SCHED_FIFO
SWITCH_S = 2e-4  # longest time that another thread may hold the interpreter beside a timed loop
_NO_LARGE_PAGES = 41  # of prctl: PR_SET_THP_DISABLE
_CURRENT, _FUTURE, _ON_FAULT = 1, 2, 4  # of mlockall: what is there, what will come, only what is touched
_CAP_IPC_LOCK, _CAP_SYS_NICE = 14, 23
Before = dict[int, tuple[int, os.sched_param]]


def may_raise() -> bool:
    """Whether this process may raise its priority."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        return resource.getrlimit(resource.RLIMIT_RTPRIO)[0] >= GUARD or _has(_CAP_SYS_NICE)
    return False


def raise_priority(priority: int, *, inherited: bool = False) -> Before:
    """SCHED_FIFO for all threads of this process; returns the previous setting of each changed thread.

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
    """Restore the setting of every thread that still runs."""
    for thread, (policy, parameter) in before.items():
        with contextlib.suppress(OSError):
            os.sched_setscheduler(thread, policy, parameter)


def lock_memory() -> bool:
    """Lock all pages in use in memory, so that no step waits for a disk; returns whether that was allowed.

    New memory comes in small pages then: the kernel clears a page of 2 MB at once, which takes milliseconds (4 to 8 on
    a virtual machine) whatever the priority. Locking is requested only where no limit on locked memory could make a
    later allocation fail.
    """
    _call("prctl", _NO_LARGE_PAGES, 1, 0, 0, 0)
    return _may_lock() and _call("mlockall", _CURRENT | _FUTURE | _ON_FAULT)


def unlock_memory() -> None:
    """Undo `lock_memory`."""
    _call("prctl", _NO_LARGE_PAGES, 0, 0, 0, 0)
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
        return bool(getattr(ctypes.CDLL(None, use_errno=True), name)(*map(ctypes.c_long, arguments)) == 0)
    return False
