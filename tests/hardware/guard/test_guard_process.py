"""The guard's process against real faults: processes that are killed, stopped or hang, drivers that fail, odd frames.

Times are taken on the machine's monotonic clock, in the driver that the guard owns. The guard ticks at 500 Hz; what a
busy machine adds to a wake-up is allowed for with 20 ms.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from guard_doubles import ROBOT, SPEC, command, drive, notes, priority, reference, times

from trueup.core.errors import TrueupError
from trueup.hardware import wire
from trueup.hardware.driver import RobotState
from trueup.hardware.guard.cfg import GuardCfg
from trueup.hardware.guard.driver import GuardDriver
from trueup.hardware.guard.trip import GuardTripped
from trueup.hardware.wire import Kind
from trueup.robot.load import Robot, load_robot
from trueup.twin.tap import read_tap

medium = pytest.mark.medium
in_time = pytest.mark.usefixtures("_priority")
PATIENT = GuardCfg(silence_s=0.5)  # where the policy is a test on a busy machine
TWO_PERIODS, TWO_SLOW_PERIODS, WAKE_UP = 0.04, 0.1, 0.02  # at 50 Hz; at 20 Hz, for processes that share a machine
POLICY = """
import sys, time, numpy as np
from pathlib import Path
sys.path[:0] = [{helpers!r}]
from guard_doubles import SPEC
from trueup.hardware.driver import Command
from trueup.hardware.guard.cfg import GuardCfg
from trueup.hardware.guard.driver import GuardDriver
from trueup.robot.load import Robot, load_robot
robot = Robot(spec=SPEC, model_path=Path("two.xml")) if {robot!r} == "two" else load_robot({robot!r})
spec, zero = robot.spec, np.zeros(robot.spec.njoint)
driver = GuardDriver({reference!r}, robot, GuardCfg(stale_s=0.1), out={out}, command_hz=500.0, control_hz=20.0)
driver.connect()
start, t0 = driver.read().joint_pos, time.monotonic()
for k in range(10000):
    time.sleep(max(0.0, t0 + k / 20.0 - time.monotonic()))
    target = np.clip(start + 0.2 * np.sin(0.2 * k), spec.position_low, spec.position_high)
    driver.write(Command(target_pos=target, target_vel=zero, kp=spec.kp, kd=spec.kd, torque=zero))
    driver.read()
    if k == 10:
        print(driver.guard_pid, flush=True)
    if k == {hang_at}:
        print(time.monotonic(), flush=True)
        while True: pass
"""


@pytest.fixture
def _priority() -> Iterator[None]:
    """Run this process, and what it starts, ahead of others where that is allowed."""
    with priority():
        yield


@pytest.fixture(autouse=True)
def _own_state_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    except FileNotFoundError:
        return False


def wait_for(is_there: Callable[[], bool], seconds: float = 10.0) -> None:
    deadline = time.monotonic() + seconds
    while not is_there():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.01)


def start_policy(place: str, *, robot: str = "two", hang_at: int = -1, out: str = "None") -> subprocess.Popen[str]:
    helpers = str(Path(__file__).parent)
    script = POLICY.format(helpers=helpers, robot=robot, reference=place, hang_at=hang_at, out=out)
    return subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)


def guard_pid(policy: subprocess.Popen[str]) -> int:
    assert policy.stdout is not None
    line = policy.stdout.readline()
    assert line, "the policy did not start"
    return int(line)


def end(policy: subprocess.Popen[str], guard: int) -> None:
    policy.kill()
    policy.wait()
    wait_for(lambda: not is_alive(guard))


# --- the policy's process fails ---
@in_time
@medium
@pytest.mark.parametrize("how", ["SIGKILL", "SIGSTOP", "hang"])
def test_damping_follows_within_two_control_periods_when_the_policy_fails(how: str, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    policy = start_policy(reference(log), hang_at=16 if how == "hang" else -1)
    guard = guard_pid(policy)
    if how == "hang":
        assert policy.stdout is not None
        failed_s = float(policy.stdout.readline())
    else:
        time.sleep(0.3)
        policy.send_signal(getattr(signal, how))
        failed_s = time.monotonic()
    time.sleep(0.3)
    damped, sent = times(log, "damp"), times(log, "write")
    first = damped[damped > failed_s].min()
    assert first - failed_s < TWO_SLOW_PERIODS + WAKE_UP
    assert sent.max() < first  # and nothing but damping since
    assert (np.diff(damped[damped > failed_s]) < 0.05).all()  # again and again
    assert is_alive(guard)
    end(policy, guard)
    assert notes(log)[-1]["what"] == "close"


@in_time
@medium
@pytest.mark.parametrize("how", ["SIGKILL", "SIGSTOP"])
def test_the_motors_of_a_twin_get_damping_and_nothing_bad_when_the_policy_fails(how: str, tmp_path: Path) -> None:
    tap_file, out = tmp_path / "tap", tmp_path / "out"
    place = f"twin:ideal?tap={tap_file}&timeout=60"  # the twin's own watchdog shall not be what damps
    policy = start_policy(place, robot="pendulum", out=f"Path({str(out)!r})")
    guard = guard_pid(policy)
    time.sleep(0.3)
    policy.send_signal(getattr(signal, how))
    time.sleep(0.3)
    end(policy, guard)
    events = [json.loads(line) for line in (out / "events.jsonl").read_text().splitlines()]
    summary, trip = events[-1], next(event for event in events if event["event"] == "trip")
    assert trip["guard"] == "silence"
    assert trip["damped_s"] - trip["time_s"] < WAKE_UP
    counts = summary["tap"]
    assert counts["accepted"] == counts["commands"] > 200
    assert counts["nonfinite"] == counts["beyond_limits"] == counts["negative_gain"] == counts["watchdog"] == 0
    rows = read_tap(tap_file).commands
    rows = rows[np.isfinite(rows).all(axis=(1, 2))]
    moving = np.flatnonzero(rows[:, 2, 0] > 0.0)
    assert len(moving) > 100
    assert len(rows) - moving[-1] > 50  # damping to the end: kp 0 since the trip
    assert (rows[moving[-1] + 1 :, 3, 0] > 0.0).all()


# --- the robot or its driver fails ---
@in_time
@medium
@pytest.mark.parametrize(
    ("fault", "guard", "words"),
    [
        ("silent", "stale", "no new state for"),
        ("nan", "nonfinite", "joint 'a': joint_pos reports nan"),
        ("raise", "driver", "the cable is out"),
        ("other", "commander", "an app on 192.168.0.7"),
        ("old", "stale", "no new state for"),
        ("spike", "jump", "joint 'a' jumped"),
    ],
)
def test_a_fault_of_the_robot_ends_in_damping_in_time(fault: str, guard: str, words: str, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    driver = GuardDriver(reference(log, fault), ROBOT, PATIENT, command_hz=500.0)
    with driver:
        with pytest.raises(GuardTripped, match=words):
            drive(driver, 2.0)
        assert driver.trip is not None
        assert driver.trip.guard == guard
        with pytest.raises(GuardTripped):
            driver.read()
        with pytest.raises(GuardTripped):
            driver.write(command(SPEC.default_pose))
    fault_s, damped = times(log, "fault").min(), times(log, "damp")
    assert damped[damped > fault_s].min() - fault_s < TWO_PERIODS + WAKE_UP
    assert times(log, "write").max() < damped[damped > fault_s].min()
    assert driver.summary is not None
    assert driver.summary.status.trip == driver.trip


# --- the channel ---
@in_time
@medium
def test_garbage_on_the_channel_is_counted_and_is_no_sign_of_life(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    driver = GuardDriver(reference(log), ROBOT, GuardCfg(silence_s=0.1), command_hz=500.0)
    with driver:
        drive(driver, 0.3)
        channel = driver._channel
        random = np.random.default_rng(0)
        frame = wire.encode_rows(99, 0.0, np.zeros((5, 2)))
        odd = [random.bytes(40), frame[:-1], frame[:30] + b"\xff" + frame[31:], wire.encode(Kind.TAP, 0, 0.0)]
        start = time.monotonic()
        while time.monotonic() < start + 0.2:
            for data in odd:
                channel.send(data, socket.MSG_NOSIGNAL)
            time.sleep(0.01)
        status = driver.poll()
        assert status.clips["bad_frames"] >= 4
        assert driver.trip is not None
        assert driver.trip.guard == "silence"
    assert times(log, "damp")[-1] - times(log, "write").max() > 0.0


@in_time
@pytest.mark.parametrize("bad", [np.nan, pytest.param(np.inf, marks=medium), pytest.param(1e30, marks=medium)])
def test_a_command_that_is_no_number_never_reaches_the_driver(bad: float, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    with GuardDriver(reference(log), ROBOT, PATIENT, command_hz=500.0) as driver:
        drive(driver, 0.2)
        with pytest.raises(GuardTripped, match="joint 'b'"):
            driver.write(command(np.array([0.0, bad])))
    targets = np.array([note["target"] for note in notes(log) if note["what"] == "write"])
    assert np.isfinite(targets).all()


@in_time
def test_what_write_returns_is_what_was_sent(tmp_path: Path) -> None:
    with GuardDriver(reference(tmp_path / "log"), ROBOT, PATIENT, command_hz=500.0) as driver:
        driver.read()
        sent = driver.write(command(np.array([0.5, -1.0])))
        assert sent.target_pos[0] == pytest.approx(0.1, abs=1e-5)


@in_time
@medium
def test_a_wish_to_damp_is_a_trip_of_its_own(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with GuardDriver(reference(log), ROBOT, PATIENT, command_hz=500.0) as driver:
        drive(driver, 0.1)
        sent = driver.damp()
        assert not sent.kp.any()
        assert driver.trip is not None
        assert driver.trip.guard == "stop"
    assert notes(log)[-1]["what"] == "close"


@in_time
def test_an_orderly_end_is_no_trip_and_damps(tmp_path: Path) -> None:
    log = tmp_path / "log"
    driver = GuardDriver(reference(log), ROBOT, PATIENT, command_hz=500.0)
    driver.connect()
    drive(driver, 0.1)
    driver.close()
    driver.close()
    assert driver.trip is None
    assert driver.summary is not None
    assert driver.summary.states > 30
    assert [note["what"] for note in notes(log)][-4:] == ["damp", "damp", "damp", "close"]


@in_time
@medium
def test_a_guard_that_is_told_to_end_damps_and_lets_go(tmp_path: Path) -> None:
    log = tmp_path / "log"
    driver = GuardDriver(reference(log), ROBOT, PATIENT, command_hz=500.0)
    driver.connect()
    drive(driver, 0.1)
    os.kill(driver.guard_pid, signal.SIGTERM)
    with pytest.raises(GuardTripped, match="stop.*told to end by a signal"):
        drive(driver, 2.0)
    driver.close()
    assert [note["what"] for note in notes(log)][-4:] == ["damp", "damp", "damp", "close"]


@in_time
@medium
def test_a_guard_that_is_killed_is_told_with_what_is_left_to_the_robot(tmp_path: Path) -> None:
    driver = GuardDriver(reference(tmp_path / "log"), ROBOT, PATIENT, command_hz=500.0)
    driver.connect()
    drive(driver, 0.1)
    os.kill(driver.guard_pid, signal.SIGKILL)
    with pytest.raises(TrueupError, match=r"was killed by SIGKILL; the robot is left to its own watchdog"):
        drive(driver, 2.0)
    driver.close()


@in_time
@medium
def test_until_the_first_command_there_is_damping(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with GuardDriver(reference(log), ROBOT, PATIENT, command_hz=500.0) as driver:
        for _ in range(20):
            driver.read()
        assert driver.poll().phase == "idle"
        assert driver.trip is None
    assert len(times(log, "damp")) > 20
    assert len(times(log, "write")) == 0


@pytest.mark.parametrize("place", ["nonsense:eth0", f"{Path(__file__).parent}/no_such.py:make_driver"])
def test_a_driver_that_cannot_be_opened_is_told_by_its_own_words(place: str) -> None:
    with pytest.raises(TrueupError, match="no driver|no_such"):
        GuardDriver(place, ROBOT).connect()


@in_time
@medium
def test_a_guard_can_be_started_ahead_and_again_after_its_end(tmp_path: Path) -> None:
    driver = GuardDriver(reference(tmp_path / "log"), ROBOT, PATIENT, command_hz=500.0)
    driver.start()
    driver.connect()
    with pytest.raises(TrueupError, match="connected already"):
        driver.connect()
    drive(driver, 0.1)
    driver.damp()
    driver.close()
    assert driver.trip is not None
    driver.connect()
    assert driver.trip is None
    drive(driver, 0.1)
    driver.close()


def test_an_unconnected_driver_says_so() -> None:
    driver = GuardDriver("twin:ideal", ROBOT)
    with pytest.raises(TrueupError, match="call connect"):
        driver.read()
    driver.close()


# --- lock-step ---
def states_of(driver: GuardDriver, robot: Robot, steps: int) -> list[RobotState]:
    driver.connect()
    states = [driver.read()]
    for k in range(steps):
        driver.write(command(robot.spec.default_pose + 0.1 * np.sin(0.1 * k), robot))
        states.append(driver.read())
    driver.close()
    return states


@medium
def test_lock_step_is_repeatable_and_passes_a_control_period_with_each_command() -> None:
    robot = load_robot("pendulum")
    runs = [
        states_of(GuardDriver("twin:worn?seed=3", robot, command_hz=400.0, lockstep=True), robot, 40) for _ in range(2)
    ]
    for one, other in zip(*runs, strict=True):
        np.testing.assert_array_equal(one.joint_pos, other.joint_pos)
        assert one.time_s == other.time_s
    assert np.diff([state.time_s for state in runs[0]]) == pytest.approx(1.0 / robot.spec.control_hz)


@medium
def test_rates_that_do_not_fit_are_refused_in_lock_step() -> None:
    robot = load_robot("pendulum")
    with pytest.raises(TrueupError, match="whole multiple"):
        GuardDriver("twin:ideal", robot, command_hz=250.0, lockstep=True).connect()


@medium
def test_a_trip_in_lock_step_is_raised_by_the_command_that_caused_it() -> None:
    robot = load_robot("pendulum")
    with GuardDriver("twin:ideal", robot, lockstep=True) as driver:
        driver.read()
        driver.write(command(robot.spec.default_pose, robot))
        with pytest.raises(GuardTripped, match="not a finite number"):
            driver.write(command(np.nan, robot))


@medium
def test_a_minute_of_ordinary_motion_in_lock_step_trips_nothing() -> None:
    robot = load_robot("go2")
    cfg = GuardCfg()
    with GuardDriver("twin:worn?seed=1", robot, cfg, command_hz=200.0, lockstep=True) as driver:
        start = driver.read().joint_pos
        phase = np.arange(12)
        for k in range(3000):
            share = min(1.0, k / 75)
            swing = 0.3 * share * np.sin(2 * np.pi * 1.5 * k / 50 + phase)
            pose = start + share * (robot.spec.default_pose - start) + swing
            driver.write(command(pose if k < 1000 or k > 1500 else robot.spec.default_pose, robot))  # ten seconds' rest
            driver.read()
    assert driver.summary is not None
    assert driver.summary.status.trip is None
    assert driver.summary.states == 12001
    assert driver.summary.tap["nonfinite"] == 0


@medium
@pytest.mark.parametrize("fault", ["", "fixed_gains"])
def test_the_policy_hears_whether_the_robots_gains_can_be_commanded(tmp_path: Path, fault: str) -> None:
    driver = GuardDriver(reference(tmp_path / "log", fault), ROBOT, PATIENT, command_hz=200.0)
    driver.connect()
    try:
        assert driver.sends_gains == (fault == "")
    finally:
        driver.close()
