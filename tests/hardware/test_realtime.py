"""Priority and locked memory: asked for where that is allowed, undone whole, and never an error."""

from __future__ import annotations

import ctypes
import os
import resource
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from trueup.hardware.realtime import (
    POLICY,
    TWIN,
    lock_memory,
    may_raise,
    raise_priority,
    restore_priority,
    unlock_memory,
)

_PLAIN = ~getattr(os, "SCHED_RESET_ON_FORK", 0)


def _locked_kb() -> int:
    return int(Path("/proc/self/status").read_text().split("VmLck:")[1].split()[0])


def test_all_threads_get_the_priority_and_have_their_own_back_afterwards() -> None:
    over = threading.Event()
    thread = threading.Thread(target=over.wait, daemon=True)
    thread.start()
    assert thread.native_id is not None
    try:
        before = raise_priority(POLICY)
        allowed = os.sched_getscheduler(0) & _PLAIN == os.SCHED_FIFO
        assert set(before) == ({int(one) for one in os.listdir("/proc/self/task")} if allowed else set())
        if allowed:
            assert os.sched_getparam(thread.native_id).sched_priority == POLICY
            assert raise_priority(POLICY - 1) == {}  # more is kept
        restore_priority(before)
        assert {os.sched_getscheduler(one) & _PLAIN for one in (0, thread.native_id)} == {os.SCHED_OTHER}
    finally:
        over.set()
        thread.join()


@pytest.mark.parametrize("inherited", [True, False])
def test_a_thread_that_is_started_later_has_the_priority_only_where_that_is_asked(inherited: bool) -> None:
    before = raise_priority(POLICY, inherited=inherited)
    found: list[int] = []
    try:
        thread = threading.Thread(target=lambda: found.append(os.sched_getscheduler(0) & _PLAIN))
        thread.start()
        thread.join()
    finally:
        restore_priority(before)
    assert found == [os.SCHED_FIFO if before and inherited else os.SCHED_OTHER]


def test_the_right_to_priority_is_told_before_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    before = raise_priority(POLICY)
    restore_priority(before)
    assert may_raise() == bool(before)
    monkeypatch.setattr(Path, "read_text", lambda _: "CapEff:\t0000000000000000\n")
    monkeypatch.setattr(resource, "getrlimit", lambda _: (0, 0))
    assert not may_raise()
    monkeypatch.setattr(resource, "getrlimit", lambda _: (99, 99))
    assert may_raise()


def test_memory_is_locked_where_allowed_and_let_go() -> None:
    if lock_memory():
        assert _locked_kb() > 1000
        block = bytearray(4_000_000)
        assert len(block) == 4_000_000
    unlock_memory()
    assert _locked_kb() == 0


def test_memory_is_not_locked_where_a_limit_could_make_an_allocation_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1 << 23, 1 << 23))
    with monkeypatch.context() as unprivileged:
        unprivileged.setattr(Path, "read_text", lambda _: "CapEff:\t0000000000000000\n")
        assert not lock_memory()
    assert _locked_kb() == 0


def test_a_twin_in_real_time_goes_first_and_one_in_lock_step_does_not() -> None:
    ask = (
        "import os, sys; from trueup.hardware.twin_cfg import ServeCfg; from trueup.robot.load import load_robot;"
        "from trueup.twin.server import serve;"
        "serve(ServeCfg(preset='ideal', lockstep=sys.argv[1] == 'lockstep'), load_robot('pendulum'),"
        " lambda server: (print(os.sched_getparam(0).sched_priority, flush=True), os._exit(0)))"
    )
    found = [
        int(subprocess.run([sys.executable, "-c", ask, mode], capture_output=True, text=True, check=True).stdout)
        for mode in ("realtime", "lockstep")
    ]
    before = raise_priority(TWIN)
    restore_priority(before)
    assert found == [TWIN if before else 0, 0]


def test_locked_memory_comes_in_small_pages_and_only_as_long() -> None:
    """A large page is cleared as a whole at the first touch: milliseconds in the middle of a control step."""
    asked = ctypes.CDLL(None).prctl
    before = asked(42, 0, 0, 0, 0)  # PR_GET_THP_DISABLE
    lock_memory()
    assert asked(42, 0, 0, 0, 0) == 1
    unlock_memory()
    assert asked(42, 0, 0, 0, 0) == before == 0
