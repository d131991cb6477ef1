"""Around the loop: start-up times, priority and garbage collection, the live page's margins."""

import gc
import os
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest
from made_deploys import toy_state

from trueup.deploy.control.goal import AskedGoal
from trueup.deploy.session.live import LivePage
from trueup.deploy.session.undisturbed import PRIORITY, undisturbed
from trueup.deploy.startup import Startup, process_age_s
from trueup.hardware.driver import Command
from trueup.hardware.guard.trip import Margin
from trueup.policy.bundle.passport import GoalFacts
from trueup.robot.load import load_robot


def test_the_age_of_a_process_grows_with_the_clock():
    before = process_age_s()
    time.sleep(0.05)
    assert process_age_s() - before == pytest.approx(0.05, abs=0.03)
    assert 0.0 < before < 1e6


def test_parts_of_a_start_add_up():
    startup = Startup()
    time.sleep(0.02)
    startup.mark("bundle")
    startup.mark_at("first command", time.perf_counter() + 1.0)
    parts = startup.parts
    assert list(parts) == ["imports", "bundle", "total", "first command"]
    assert 0.02 <= parts["bundle"] < 1.0
    assert parts["first command"] == pytest.approx(1.0, abs=0.05)
    assert parts["total"] == pytest.approx(parts["imports"] + parts["bundle"] + parts["first command"])


@pytest.mark.parametrize("was_on", [True, False])
def test_the_collector_is_out_while_a_loop_runs_and_back_as_it_was(was_on):
    (gc.enable if was_on else gc.disable)()
    try:
        with undisturbed(realtime=False):
            assert not gc.isenabled()
        assert gc.isenabled() == was_on
    finally:
        gc.enable()


def test_in_real_time_the_loop_goes_first_where_that_is_allowed_and_only_while_it_runs():
    before = os.sched_getscheduler(0)
    with undisturbed(realtime=True):
        inside = os.sched_getscheduler(0) & ~getattr(os, "SCHED_RESET_ON_FORK", 0)
        if inside == os.SCHED_FIFO:
            assert os.sched_getparam(0).sched_priority == PRIORITY
        else:  # not allowed here: it runs as it did
            assert inside == before
    assert os.sched_getscheduler(0) & ~getattr(os, "SCHED_RESET_ON_FORK", 0) == before


def test_a_thread_that_may_hold_the_interpreter_gets_the_priority_too_and_loses_it_again():
    over = threading.Event()
    thread = threading.Thread(target=over.wait, daemon=True)
    thread.start()
    plain = ~getattr(os, "SCHED_RESET_ON_FORK", 0)
    before = os.sched_getscheduler(thread.native_id)
    with undisturbed(realtime=True):
        assert os.sched_getscheduler(thread.native_id) & plain == os.sched_getscheduler(0) & plain
    assert os.sched_getscheduler(thread.native_id) & plain == before
    over.set()
    thread.join()


def test_a_higher_priority_than_ours_is_kept(monkeypatch):
    monkeypatch.setattr(os, "sched_getscheduler", lambda _: os.SCHED_FIFO)
    monkeypatch.setattr(os, "sched_getparam", lambda _: os.sched_param(PRIORITY + 20))
    monkeypatch.setattr(os, "sched_setscheduler", lambda *_: pytest.fail("it was lowered"))
    with undisturbed(realtime=True):
        pass


def test_an_error_inside_puts_everything_back():
    before = os.sched_getscheduler(0)
    with pytest.raises(ZeroDivisionError), undisturbed(realtime=True):
        raise ZeroDivisionError
    assert gc.isenabled()
    assert os.sched_getscheduler(0) & ~getattr(os, "SCHED_RESET_ON_FORK", 0) == before


def test_a_live_page_is_told_margins_and_why_the_guard_tripped():
    status = SimpleNamespace(margins={"tilt": Margin(value=0.25, limit=1.0), "silence": Margin(value=0.04, limit=0.0)})
    driver = SimpleNamespace(status=status, trip=SimpleNamespace(reason="leans"))
    page, told = LivePage(load_robot("pendulum"), driver), []
    page._telemetry.publish = lambda *parts, **more: told.append((parts, more))
    zero = np.zeros(1)
    command = Command(target_pos=zero, target_vel=zero, kp=zero, kd=zero, torque=zero)
    goal = AskedGoal(GoalFacts(columns=("speed",), units=("rad/s",), low=(-1.0,), high=(1.0,)))
    page.show(1.5, toy_state(), command, goal, "policy")
    page.close()
    (time_s, _, sent, asked, margins, flags), more = told[0]
    assert (time_s, sent, asked, flags) == (1.5, command, {"speed": 0.0}, ("policy",))
    assert margins == {"tilt": 0.75, "silence": 1.0}
    assert more == {"trip": "leans"}
    assert not page.stop_requested
