"""A guard that was not run for a while notices, wherever in its loop that was, and says so to its checks."""

import os
import socket
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from guard_doubles import SPEC, reference

from trueup.hardware.guard.driver import GuardDriver
from trueup.hardware.guard.link import Lateness
from trueup.hardware.guard.loop import RealtimeLoop
from trueup.hardware.realtime import GUARD, raise_priority, restore_priority
from trueup.robot.load import Robot

PERIOD, STALL_S = 0.01, 0.08


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
        if self.place == place and self.ticks == 5:
            self.place = ""
            time.sleep(STALL_S)

    def look_for_policy(self, now):
        return

    report = look_for_policy


@pytest.mark.flaky(reruns=1)
@pytest.mark.parametrize("place", ["before", "inside", "nowhere"])
def test_time_that_the_loop_was_not_run_is_excused_once(place):
    link = StallingLink(place)
    RealtimeLoop(link, SilentDriver(), PERIOD).run(threading.Event())
    stalls = np.array([one for one in link.excused if one > 0.5 * STALL_S])
    assert len(stalls) == (place != "nowhere")
    assert ((stalls > STALL_S - 2 * PERIOD) & (stalls < STALL_S + 0.05)).all()


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
