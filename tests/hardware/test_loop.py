"""The timed loop: schedule, overruns, and damping at every exit."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time

import pytest
from fake_driver import FakeDriver, lost

from trueup.core.errors import TrueupError
from trueup.hardware.loop import run_loop
from trueup.robot.load import load_robot

SPEC = load_robot("pendulum").spec


def driver(realtime: bool = True) -> FakeDriver:
    return FakeDriver(SPEC, realtime=realtime)


@pytest.mark.medium
def test_200_hz_for_3_s_does_not_drift() -> None:
    starts: dict[int, float] = {}
    begin = time.perf_counter()

    def tick(k: int) -> bool:
        starts[k] = time.perf_counter() - begin
        return k < 600

    report = run_loop(driver(), tick, rate_hz=200.0)
    # a busy machine may delay single ticks, never the schedule: ticks that were on time late in the run show it
    on_time = min(abs(t - k / 200.0) for k, t in starts.items() if k > 500)
    assert on_time < 0.005
    assert report.ended == "done"
    assert report.ticks + report.missed >= 601
    assert report.seconds == pytest.approx(3.0, abs=0.005 + report.late_max_s)


def test_slow_ticks_are_counted_and_their_points_skipped() -> None:
    numbers: list[int] = []
    slow: list[int] = []

    def tick(k: int) -> bool:
        numbers.append(k)
        if k >= (5, 20, 100)[len(slow)]:
            slow.append(k)
            time.sleep(0.035)
        return k < 40

    report = run_loop(driver(), tick, rate_hz=100.0)
    assert report.overruns >= 2
    assert report.missed >= 6  # 35 ms at 100 Hz: at least three points each
    for k in slow:
        assert not {k + 1, k + 2, k + 3} & set(numbers)
    assert numbers == sorted(set(numbers))
    assert report.ticks + report.missed == numbers[-1] + 1


def test_lateness_is_measured_from_the_due_time() -> None:
    report = run_loop(driver(), lambda k: k < 50, rate_hz=500.0)
    assert 0.0 <= report.late_median_s <= report.late_p99_s <= report.late_max_s
    assert report.late_median_s < 0.002  # the median is on time even where the worst is not


def test_lock_step_runs_as_fast_as_the_driver_answers() -> None:
    begin = time.perf_counter()
    report = run_loop(driver(realtime=False), lambda k: k < 999, rate_hz=100.0)
    assert report.ticks == 1000
    assert (report.overruns, report.missed) == (0, 0)
    assert time.perf_counter() - begin < 5.0  # 10 s of robot time


@pytest.mark.parametrize("realtime", [True, False])
@pytest.mark.parametrize("error", [ValueError("bug"), TrueupError("gone"), KeyboardInterrupt(), SystemExit(3)])
def test_any_exception_damps_and_passes_through(realtime: bool, error: BaseException) -> None:
    robot = driver(realtime)

    def tick(k: int) -> bool:
        if k >= 3:
            raise error
        return True

    with pytest.raises(type(error)):
        run_loop(robot, tick, rate_hz=500.0)
    assert robot.calls == ["damp"]


def test_normal_end_damps_too() -> None:
    robot = driver()
    run_loop(robot, lambda k: False, rate_hz=500.0)
    assert robot.calls == ["damp"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_loop_after_the_tick_in_hand(number: signal.Signals) -> None:
    robot, finished = driver(), []
    before = signal.getsignal(number)

    def tick(k: int) -> bool:
        if k >= 2:
            os.kill(os.getpid(), number)
        finished.append(k)
        return k < 1000

    report = run_loop(robot, tick, rate_hz=500.0)
    assert report.ended == "interrupted"
    assert [k for k in finished if k >= 2] == finished[-1:]
    assert robot.calls == ["damp"]
    assert signal.getsignal(number) is before


def test_a_second_ctrl_c_interrupts_a_tick_that_hangs() -> None:
    robot = driver()

    def tick(k: int) -> bool:
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(30.0)
        return True

    with pytest.raises(KeyboardInterrupt):
        run_loop(robot, tick, rate_hz=500.0)
    assert robot.calls == ["damp"]


def test_damping_is_tried_again_and_its_failure_does_not_hide_the_cause(caplog: pytest.LogCaptureFixture) -> None:
    robot = driver()
    tries = []

    def damp() -> None:
        tries.append(1)
        lost()

    robot.damp = damp  # type: ignore[method-assign, assignment]

    def tick(k: int) -> bool:
        raise ValueError("the cause")

    with pytest.raises(ValueError, match="the cause"):
        run_loop(robot, tick, rate_hz=500.0)
    assert len(tries) == 3
    assert "damping failed" in caplog.text


def test_it_runs_outside_the_main_thread() -> None:
    reports = []
    thread = threading.Thread(target=lambda: reports.append(run_loop(driver(), lambda k: k < 5, rate_hz=500.0)))
    thread.start()
    thread.join(10.0)
    assert reports[0].ticks >= 1


@pytest.mark.parametrize("rate_hz", [0.0, 1e6, float("nan")])
def test_impossible_timing_is_refused(rate_hz: float) -> None:
    with pytest.raises(TrueupError):
        run_loop(driver(), lambda k: False, rate_hz=rate_hz)


def test_loop_excitation_and_record_import_no_engine() -> None:
    code = (
        "import sys, trueup.hardware.loop, trueup.record.record, trueup.robot.excitation.excitation;"
        "sys.exit('mujoco' in sys.modules or 'torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
