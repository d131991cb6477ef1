"""The reference of every lateness: a loop that only sleeps, on the same machine at the same time.

It is due at 50 Hz on an absolute schedule as the policy's loop is, and does nothing else: what it is late by is the
machine's share. One has the policy's real-time priority, one none. Others, at the highest priority and each bound to a
core, look every 2 ms whether their core runs at all: a core of a virtual machine stands still while its host runs
something else, and nothing inside can help that.
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
CONTROL_HZ, LOOK_HZ = 50.0, 500.0
_HIGHEST, STILL_S = 90, 0.008


@contextlib.contextmanager
def sleepers(found: dict[str, object]) -> Iterator[None]:
    """Run both beside what is measured; `found` gets their lateness in ms, the machine's load and its stolen time, and
    `stand_stills`: core, when it went on (time.monotonic), ms that it had stood still.
    """
    loops = {name: _start(priority) for name, priority in (("sleeper", PRIORITY), ("ordinary_sleeper", 0))}
    cores = {core: _start(_HIGHEST, core) for core in sorted(os.sched_getaffinity(0))}
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
            _end(process)
        still: list[tuple[int, float, float]] = []
        for core, (process, pipe) in cores.items():
            pipe.send("stop")
            if pipe.poll(5.0):
                still += [(core, at_s, ms) for at_s, ms in pipe.recv()]
            _end(process)
        found["stand_stills"] = sorted(still, key=lambda one: one[1])


def before(trip_s: object, still: object) -> list[tuple[int, float]]:
    """Cores (or robots) that stood still in the 100 ms before a trip or still did at the trip, and for how many ms."""
    if not isinstance(trip_s, float) or not isinstance(still, list):
        return []
    return [(core, ms) for core, at_s, ms in still if trip_s - 0.1 <= at_s and at_s - 1e-3 * ms <= trip_s]


def _start(priority: int, core: int | None = None) -> tuple[multiprocessing.process.BaseProcess, Connection]:
    here, there = _fork.Pipe()
    task = (_sleep, (there, priority)) if core is None else (_look, (there, priority, core))
    process = _fork.Process(target=task[0], args=task[1], daemon=True)
    process.start()
    return process, here


def _end(process: multiprocessing.process.BaseProcess) -> None:
    process.join(1.0)
    if process.is_alive():
        process.kill()


def _look(pipe: Connection, priority: int, core: int) -> None:
    """Sleep on one core until the pipe says so; sends when it had stood still, and for how long (ms)."""
    os.sched_setaffinity(0, {core})
    real_time(priority)
    still, last = [], time.monotonic()
    while not pipe.poll(0.0):
        time.sleep(1.0 / LOOK_HZ)
        now = time.monotonic()
        if now - last > STILL_S:
            still.append((now, round(1e3 * (now - last), 1)))
        last = now
    with contextlib.suppress(OSError):
        pipe.send(still)


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
