"""A guard that was not run for a while notices, wherever in its loop that was, and says so to its checks."""

import contextlib
import math
import os
import socket
import threading
import time
from pathlib import Path

import pytest
from guard_doubles import SPEC, reference, rows, state

from trueup.hardware import wire
from trueup.hardware.driver import damping
from trueup.hardware.guard.cfg import GuardCfg
from trueup.hardware.guard.driver import GuardDriver
from trueup.hardware.guard.link import GuardLink, Lateness
from trueup.hardware.guard.loop import RealtimeLoop
from trueup.hardware.guard.motor_guard import MotorGuard
from trueup.hardware.guard.recorder import GuardRecorder
from trueup.hardware.realtime import GUARD, raise_priority, restore_priority
from trueup.robot.load import Robot

PERIOD, STALL_S = 0.01, 0.08
GUARD_PERIOD = 0.002


class SilentDriver:
    """A robot that reports nothing."""

    realtime = True

    def read(self):
        time.sleep(0.005)
        raise TimeoutError


class StallingLink:
    """Ends after ten points of the schedule; stands still once, in `place`."""

    is_deaf = False

    def __init__(self, place):
        self.guard, self.excused, self.missed, self.place = self, [], 0, place
        self.driver_s, self.idle_s, self.hint = 0.0, 0.0, ""
        self.channel, self._other = socket.socketpair()
        self.lateness, self.ticks, self.trip, self.phase = Lateness(), 0, None, "active"

    def excuse(self, stalled_s):
        self.excused.append(stalled_s)

    def is_over(self, now):
        self._stall("before")
        return self.ticks >= 10

    def take_frames(self, now):
        return False

    def send(self, now):
        self.ticks += 1
        self._stall("inside")

    def _stall(self, place):
        if not self.place.startswith(place) or self.ticks != 5:
            return
        began, busy, how, self.place = time.monotonic(), time.process_time(), self.place, "nowhere"
        while how.endswith("busy") and time.process_time() < busy + STALL_S:
            pass
        while not how.endswith("busy") and time.monotonic() < began + STALL_S:
            time.sleep(0.001)
        if how.endswith("driver"):
            self.driver_s += time.monotonic() - began
        self.idle_s = time.monotonic() - began - STALL_S * (how.endswith(("busy", "driver")))

    def damp(self):
        return

    def look_for_policy(self, now):
        return

    report = look_for_policy


@pytest.mark.flaky(reruns=2)
@pytest.mark.parametrize("place", ["before", "inside", "inside, driver", "inside, busy", "nowhere"])
def test_time_that_the_loop_was_not_run_is_excused_once(place):
    """What a slow driver or the guard's own work takes is not: the guard did run."""
    link = StallingLink(place)
    RealtimeLoop(link, SilentDriver(), PERIOD).run(threading.Event())
    assert max(link.excused, default=0.0) < link.idle_s + PERIOD  # idle_s: of the stall, what it was not run
    if place in ("before", "inside"):
        assert sum(one > STALL_S - 2 * PERIOD for one in link.excused) == 1


class SlowDriver:
    """A robot that reports at 500 Hz, or is silent, and takes 15 ms for every command."""

    realtime, other_commander = True, None

    def __init__(self):
        self.began, self.damped_s, self.is_silent = time.monotonic(), math.nan, False

    def read(self):
        time.sleep(0.3 if self.is_silent else 0.002)
        return state(int((time.monotonic() - self.began) / GUARD_PERIOD))

    def write(self, command):
        time.sleep(0.015)
        return command

    def damp(self):
        if math.isnan(self.damped_s):
            self.damped_s = time.monotonic()
        return damping(SPEC.default_pose, SPEC.kd)


@pytest.mark.flaky(reruns=1)
def test_a_slow_driver_gives_a_hung_policy_no_more_time():
    """The guard runs 8 points late again and again, and that is not the computer standing still."""
    policy, channel = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    guard, driver = MotorGuard(SPEC, GuardCfg(), control_hz=50.0, period_s=GUARD_PERIOD), SlowDriver()
    link = GuardLink(guard, driver, channel, GuardRecorder(None, SPEC.joint_names, {}))
    guard.observe(driver.read(), time.monotonic())
    stop, sent_s = threading.Event(), time.monotonic()
    guard.command(rows(), sent_s)  # and no more
    loop = threading.Thread(target=RealtimeLoop(link, driver, GUARD_PERIOD).run, args=(stop,))
    loop.start()
    time.sleep(0.2)
    stop.set()
    loop.join()
    policy.close()
    assert guard.trip is not None
    assert guard.trip.guard == "silence"
    assert driver.damped_s - sent_s < 0.04 + 0.015 + 0.01  # two periods, a write in hand, waking up


@pytest.mark.flaky(reruns=1)
def test_a_guard_that_is_told_to_end_damps_before_it_waits_for_a_silent_robot():
    policy, channel = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    cfg = GuardCfg(stale_s=0.1, silence_s=1.0)
    guard, driver = MotorGuard(SPEC, cfg, control_hz=50.0, period_s=GUARD_PERIOD), SlowDriver()
    link = GuardLink(guard, driver, channel, GuardRecorder(None, SPEC.joint_names, {}))
    guard.observe(driver.read(), time.monotonic())
    guard.command(rows(), time.monotonic())
    stop, driver.is_silent = threading.Event(), True
    loop = threading.Thread(target=RealtimeLoop(link, driver, GUARD_PERIOD).run, args=(stop,))
    loop.start()
    time.sleep(0.05)
    assert math.isnan(driver.damped_s)
    stopped_s = time.monotonic()
    stop.set()
    loop.join()
    policy.close()
    assert driver.damped_s - stopped_s < 0.015 + 0.015 + 0.01  # a write in hand, the damping's own, waking up


def test_a_policy_that_sends_without_end_does_not_hold_up_the_guard():
    policy, channel = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    guard = MotorGuard(SPEC, GuardCfg(), control_hz=50.0, period_s=GUARD_PERIOD)
    link, seen = GuardLink(guard, SlowDriver(), channel, GuardRecorder(None, SPEC.joint_names, {})), []
    guard.observe(state(0), 0.0)
    with contextlib.suppress(BlockingIOError):
        while True:
            policy.send(wire.encode_rows(1, 0.0, rows()), socket.MSG_DONTWAIT)
            seen.append(1)
    assert link.take_frames(0.0)
    policy.send(wire.encode_rows(1, 0.0, rows()), socket.MSG_DONTWAIT)  # there is room, but not for all
    left = 0
    with contextlib.suppress(BlockingIOError):
        while channel.recv(wire.MAX_FRAME_BYTES, socket.MSG_DONTWAIT):
            left += 1
    assert len(seen) // 2 < left < len(seen)


@pytest.mark.flaky(reruns=1)
def test_every_thread_of_a_guard_has_its_priority_the_reader_of_the_robot_too(tmp_path):
    """One thread of ordinary priority that reads the robot would make a busy computer look like a silent robot."""
    driver = GuardDriver(reference(tmp_path / "log"), Robot(spec=SPEC, model_path=Path("two.xml")), command_hz=500.0)
    with driver:
        driver.read()
        threads = os.listdir(f"/proc/{driver.guard_pid}/task")
        found = {os.sched_getparam(int(thread)).sched_priority for thread in threads}
    before = raise_priority(GUARD)
    restore_priority(before)
    assert len(threads) >= 2
    assert found == {GUARD if before else 0}
