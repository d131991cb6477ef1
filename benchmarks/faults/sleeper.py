"""The reference of every lateness: a loop that only sleeps, on the same machine at the same time.

It is due at 50 Hz on an absolute schedule as the policy's loop is, and does nothing else: what it is late by is the
machine's share. One has the policy's real-time priority, one none.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection

import numpy as np

from faults.relay import real_time
from trueup.deploy.session.undisturbed import PRIORITY

_fork = multiprocessing.get_context("fork")
CONTROL_HZ = 50.0


@contextlib.contextmanager
def sleepers(found: dict[str, object]) -> Iterator[None]:
    """Run both beside what is measured; `found` gets their lateness in ms, the machine's load and its stolen time."""
    loops = {name: _start(priority) for name, priority in (("sleeper", PRIORITY), ("ordinary_sleeper", 0))}
    loads, steal, began = [os.getloadavg()[0]], _stolen_s(), time.monotonic()
    try:
        yield
    finally:
        found["stolen_share"] = round((_stolen_s() - steal) / ((time.monotonic() - began) * (os.cpu_count() or 1)), 4)
        loads += os.getloadavg()[:2]  # of the last minute and the last five
        found["load_averages"] = [round(min(loads), 1), round(max(loads), 1)]
        for name, (process, pipe) in loops.items():
            pipe.send("stop")
            if pipe.poll(5.0):
                found[f"{name}_late_ms"] = pipe.recv()
            process.join(1.0)
            if process.is_alive():
                process.kill()


def _start(priority: int) -> tuple[multiprocessing.process.BaseProcess, Connection]:
    here, there = _fork.Pipe()
    process = _fork.Process(target=_sleep, args=(there, priority), daemon=True)
    process.start()
    return process, here


def _sleep(pipe: Connection, priority: int) -> None:
    """Sleep until the pipe says so; sends median, 99.9 % and worst lateness, ms."""
    if priority:
        real_time(priority)
    late, start, k = [], time.perf_counter(), 0
    while not pipe.poll(0.0):
        k = max(k, int((time.perf_counter() - start) * CONTROL_HZ)) + 1
        due = start + k / CONTROL_HZ
        time.sleep(max(0.0, due - time.perf_counter()))
        late.append(time.perf_counter() - due)
    with contextlib.suppress(OSError):
        pipe.send([round(1e3 * float(q), 3) for q in np.quantile(late, (0.5, 0.999, 1.0))])


def _stolen_s() -> float:
    """Time that the host took from all cores so far; 0 where nobody says."""
    with contextlib.suppress(OSError, ValueError, IndexError), open("/proc/stat") as file:
        return int(file.readline().split()[8]) / os.sysconf("SC_CLK_TCK")
    return 0.0
