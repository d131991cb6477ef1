"""One run of the matrix: twin, relay and controller as processes, a fault at a time, and what the motors got."""

from __future__ import annotations

import contextlib
import json
import math
import multiprocessing
import os
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.context import ForkProcess
from pathlib import Path
from typing import Any

import numpy as np

from faults.cases import Case
from faults.policies import Order, guarded, plain
from faults.relay import BEGAN, DELAY, FAULT, OVER, Plan, note_fault, run_relay
from faults.robot import DAMPING, REFUSED, STIFF, MotorLog, run_twin
from trueup.hardware.guard.cfg import GuardCfg
from trueup.hardware.twin_cfg import ServeCfg
from trueup.policy.bundle.bundle import PolicyBundle
from trueup.robot.load import Robot
from trueup.twin.firmware import Twin

_fork = multiprocessing.get_context("fork")
_START_S = 20.0
_AFTER_S = 0.3
WATCH_S = {"tolerate": 0.7, "either": 0.7, "later": 0.7, "stop": 0.4, "robot": 0.5}
BAD = ("nonfinite", "negative_gain", "malformed", "beyond_limits")
PEAK_S = 0.3  # after the fault


@dataclass(frozen=True, kw_only=True)
class Bench:
    """What all runs share; the twins are built once and every run gets a copy by fork."""

    bundle: PolicyBundle
    robot: Robot
    serve: ServeCfg
    twins: tuple[Twin, ...]
    guard: GuardCfg


@dataclass
class Served:
    """A twin that is served at `port`, and its log, once that is over."""

    port: int
    log: MotorLog | None = None


@contextlib.contextmanager
def served(twin: Twin, serve: ServeCfg) -> Iterator[Served]:
    """A twin in a process of its own with real-time priority, for long: its log has counts and gaps alone."""
    with contextlib.ExitStack() as stack:
        pipe, port = _start(stack, run_twin, twin, serve, False)
        one = Served(port)
        yield one
        one.log = _fetch(pipe)


@contextlib.contextmanager
def in_process(target: Callable[..., None], *arguments: object) -> Iterator[tuple[Connection, int]]:
    """`target(pipe, *arguments)` in a process of its own, which sends its port first; gives pipe and port."""
    with contextlib.ExitStack() as stack:
        yield _start(stack, target, *arguments)


def run_case(bench: Bench, case: Case, repeat: int, *, is_guarded: bool) -> dict[str, Any]:
    """One run; what was counted at the motors and who stopped it."""
    random = np.random.default_rng([17, repeat])
    plan: Plan = _fork.RawArray("d", 4)
    plan[DELAY] = float(random.uniform(0.2, 0.9))
    goal = f"forward={random.uniform(-0.5, 0.9):.2f}", f"turn={random.uniform(-0.5, 0.5):.2f}"
    watch_s = WATCH_S[case.expect] if is_guarded else 0.5
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="faults-")))
        twin, port = _start(stack, run_twin, bench.twins[repeat % len(bench.twins)], bench.serve)
        relay, relay_port = _start(stack, run_relay, port, plan, case.frames, repeat)
        order = Order(
            bundle=bench.bundle, robot=bench.robot, port=relay_port, goal=goal if repeat % 4 else (),
            seconds=plan[DELAY] + watch_s, folder=folder, guard=bench.guard, output=case.output,
        )  # fmt: skip
        pipe, guard_pid, process = _controller(stack, guarded if is_guarded else plain, order, plan)
        said = _drive(case, plan, process, pipe, guard_pid, port, watch_s)
        end = time.monotonic()
        plan[OVER] = 1.0
        _end(process, guard_pid)
        log = _fetch(twin)
        relay.send("stop")
        trip = _trip(folder)
    return judge(log, plan, said, trip, end, is_guarded=is_guarded)


def _drive(
    case: Case, plan: Plan, process: ForkProcess, pipe: Connection, guard_pid: int, port: int, watch_s: float
) -> dict[str, Any]:
    """Wait for the policy to begin, do the fault, look on; what the controller says about its end."""
    _wait(lambda: plan[BEGAN] > 0.0 or pipe.poll(0.0), _START_S)
    due = plan[BEGAN] + plan[DELAY]
    if case.act is not None and plan[BEGAN] and process.is_alive():
        time.sleep(max(0.0, due - time.monotonic()))
        note_fault(plan, time.monotonic())
        assert process.pid is not None
        case.act(process.pid, guard_pid, port)
    said: dict[str, Any] = {"ended": "silent", "guard": "", "reason": ""}
    until = due + watch_s + 0.15 if plan[BEGAN] else time.monotonic() + 0.1
    while time.monotonic() < until:
        if pipe.poll(0.01):
            with contextlib.suppress(EOFError):  # it is gone
                said = pipe.recv()
            if said["ended"] != "done":  # what is left acts for a while
                time.sleep(_AFTER_S if case.expect == "robot" or said["ended"] == "silent" else 0.05)
            break
    return said


def judge(
    log: MotorLog, plan: Plan, said: dict[str, Any], trip: dict[str, Any], end: float, *, is_guarded: bool
) -> dict[str, Any]:
    """The figures of a run.

    safe_ms    from the fault to the damping that no stiff command followed; NaN if it never came while we looked
    late_ms    from the guard's decision to that damping; trip_ms: from the fault to the decision
    """
    fault = plan[FAULT]
    seen = log.event_s <= end
    event_s, event = log.event_s[seen], log.event[seen]
    stiff = np.flatnonzero(event == STIFF)
    last = int(stiff[-1]) if len(stiff) else -1
    calm = [k for k in range(last + 1, len(event)) if event[k] not in (STIFF, REFUSED)]
    safe = float(event_s[calm[0]]) if calm else math.nan
    watched = (log.time_s >= fault) & (log.time_s <= fault + PEAK_S) if fault else np.zeros(len(log.time_s), bool)
    stopped = said["ended"] in ("tripped", "interrupted", "crashed") or trip.get("guard", "stop") != "stop"
    who, why = _who(said, trip)
    decided = trip.get("time_s", math.nan)
    tilt = log.tilt[(log.time_s <= end) & (log.time_s >= plan[BEGAN])]
    return {
        "fault": bool(fault),
        "early": bool(stopped and fault and who and decided < fault),
        "stopped": bool(stopped),
        "who": who,
        "why": why,
        "safe_ms": 1e3 * (safe - fault) if fault and (stopped or not is_guarded) else math.nan,
        "late_ms": 1e3 * (safe - decided),
        "trip_ms": 1e3 * (decided - fault) if fault and stopped else math.nan,
        "by": {DAMPING: "command", 3: "watchdog"}.get(int(event[calm[0]]), "") if calm else "",
        "peak_torque": float(log.torque[watched].max()) if watched.any() else math.nan,
        "tilt": float(tilt.max()) if len(tilt) else math.nan,
        **{name: log.counts[name] for name in (*BAD, "watchdog", "overruns", "diverged")},
        "unrecorded": int(said.get("unwritten", 0)),
    }


def _who(said: dict[str, Any], trip: dict[str, Any]) -> tuple[str, str]:
    """Which guard stopped it: one of the motor guard, or (where that was told to stop) one of the session."""
    if trip and trip["guard"] != "stop":
        return f"guard: {trip['guard']}", trip["reason"]
    if said["ended"] == "tripped":
        return f"session: {said['guard']}", said["reason"]
    return (said["ended"], said["reason"]) if said["ended"] in ("interrupted", "crashed") else ("", "")


# --- processes ---
def _start(stack: contextlib.ExitStack, target: Callable[..., None], *arguments: object) -> tuple[Connection, int]:
    here, there = _fork.Pipe()
    process = _fork.Process(target=target, args=(there, *arguments), daemon=True)
    process.start()
    stack.callback(_kill, process)
    if not here.poll(_START_S):
        raise TimeoutError(f"{target.__name__} did not start")
    return here, here.recv()


def _controller(
    stack: contextlib.ExitStack, target: Callable[..., None], order: Order, plan: Plan
) -> tuple[Connection, int, ForkProcess]:
    here, there = _fork.Pipe()
    process = _fork.Process(target=target, args=(there, order, plan))
    process.start()
    there.close()
    stack.callback(_kill, process)
    if not here.poll(_START_S):
        raise TimeoutError("the controller did not start")
    return here, here.recv(), process


def _end(process: ForkProcess, guard_pid: int) -> None:
    """Whatever is left of the controller and its guard."""
    for pid in (process.pid, guard_pid):
        with contextlib.suppress(ProcessLookupError, TypeError):
            os.kill(pid or 0, signal.SIGCONT) if pid else None
    process.join(0.3)
    _kill(process)
    if guard_pid and not _wait(lambda: not _is_alive(guard_pid), 4.0):
        os.kill(guard_pid, signal.SIGKILL)


def _kill(process: ForkProcess) -> None:
    if process.is_alive():
        process.kill()
    process.join(2.0)


def _is_alive(pid: int) -> bool:
    try:
        return " Z " not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False


def _fetch(twin: Connection) -> MotorLog:
    twin.send("stop")
    if not twin.poll(_START_S):
        raise TimeoutError("the twin did not end")
    return twin.recv()


def _trip(folder: Path) -> dict[str, Any]:
    """What the guard wrote of its trip, {} if it did not."""
    with contextlib.suppress(OSError):
        for line in (folder / "events.jsonl").read_text().splitlines():
            if '"trip"' in line and (event := json.loads(line)).get("event") == "trip":
                return event
    return {}


def _wait(is_there: Callable[[], bool], seconds: float) -> bool:
    until = time.monotonic() + seconds
    while not is_there() and time.monotonic() < until:
        time.sleep(0.002)
    return is_there()
