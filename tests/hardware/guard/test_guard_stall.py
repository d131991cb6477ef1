"""A guard that was not run for a while notices, wherever in its loop that was, and says so to its checks."""

import socket
import threading
import time

import numpy as np
import pytest

from trueup.hardware.guard.link import Lateness
from trueup.hardware.guard.loop import RealtimeLoop

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
