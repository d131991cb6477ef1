"""The guard's loop in real time: an absolute schedule, a thread that reads the robot, a channel to the policy.

A command of the policy is checked and sent at once; in between, the newest one is limited again with the newest state
and sent again at every point of the schedule. A state is checked and passed on at once.
"""

from __future__ import annotations

import contextlib
import os
import select
import threading
import time
from collections import deque

from trueup.hardware.driver import Driver, RobotState
from trueup.hardware.guard.link import GuardLink
from trueup.hardware.guard.readings import GuardFault

_STATUS_S = 0.05
_RETRY_S = 0.005
_SPIN_S = 0.0003
_STALL_S, _CATCH_UP_S = 0.005, 0.001
_SPIN_FROM_HZ = 200.0  # slower loops do not need it


class Reader:
    """Reads a driver in a thread: `states` are (state, arrival), and a byte on `wake` says that there is one."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self.states: deque[tuple[RobotState, float]] = deque(maxlen=1000)
        self.error = ""
        self.wake, self._wake_end = os.pipe()
        os.set_blocking(self.wake, False)
        os.set_blocking(self._wake_end, False)
        self._is_over = False
        self._thread = threading.Thread(target=self._run, name="reader", daemon=True)
        self._thread.start()

    def stop(self, wait_s: float = 0.5) -> bool:
        """End the thread; False if the driver blocks it."""
        self._is_over = True
        self._thread.join(wait_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        last = None
        while not self._is_over:
            try:
                state = self._driver.read()
                arrived = time.monotonic()
            except Exception as error:  # silence shows as age of the newest state; the words are for the trip's reason
                self.error = str(error)
                time.sleep(_RETRY_S)
                continue
            self.error = ""
            self.states.append((state, arrived))
            with contextlib.suppress(BlockingIOError):
                os.write(self._wake_end, b"x")
            if state.sequence == last:  # a driver that does not wait
                time.sleep(_RETRY_S / 5)
            last = state.sequence


class RealtimeLoop:
    """Runs until the policy disconnects or its process has been gone for `linger_s`."""

    def __init__(self, link: GuardLink, driver: Driver, period_s: float) -> None:
        self._link, self._driver, self._period = link, driver, period_s
        self._spin_s = _SPIN_S if 1.0 / period_s >= _SPIN_FROM_HZ else 0.0
        self._reader = Reader(driver)
        self._status_s = 0.0
        self._has_tripped = False

    def run(self, stop: threading.Event) -> bool:
        """Tick on schedule; returns whether the reader's thread has ended."""
        link, period, k = self._link, self._period, 0
        start = last = time.monotonic()
        busy = self._busy_s()
        while not link.is_over(time.monotonic()) and not stop.is_set():
            due = start + k * period
            self._wait(due)
            now = time.monotonic()
            link.lateness.add(now - due)
            before, last, was_busy, busy = last, now, busy, self._busy_s()
            stalled = now - before - period - (busy - was_busy)
            if stalled > _STALL_S:  # not scheduled itself: late states and commands may be no fault
                link.guard.excuse(stalled)
                time.sleep(_CATCH_UP_S)
            self._tick(time.monotonic())
            passed = int((time.monotonic() - start) / period)
            link.missed += max(0, passed - k)
            k = max(k, passed) + 1
        link.damp()  # before the reader is waited for: a silent robot may hold it
        return self._reader.stop()

    def _busy_s(self) -> float:
        """Time in which this process did run: its own, and that in which the driver held it.

        A slow driver is no reason to wait longer for a policy that hangs.
        """
        return time.process_time() + self._link.driver_s

    def _tick(self, now: float) -> None:
        self._take_states()
        self._link.take_frames(now)
        self._link.send(now)
        if now >= self._status_s:
            self._status_s = now + _STATUS_S
            self._link.look_for_policy(now)
            self._link.report(now)

    def _is_new_trip(self) -> bool:
        tripped, self._has_tripped = self._has_tripped, self._link.guard.trip is not None
        return self._has_tripped and not tripped

    def _wait(self, due: float) -> None:
        """Wait for the next point of the schedule, handling states and commands at once."""
        channel, wake = self._link.channel, self._reader.wake
        inputs = [channel.fileno(), wake]
        while (left := due - self._spin_s - time.monotonic()) > 0.0:
            ready = select.select(inputs, [], [], left)[0]
            if wake in ready:
                self._take_states()
            if channel.fileno() in ready and self._link.take_frames(time.monotonic()):
                self._link.send(time.monotonic())
            if self._link.is_deaf:
                inputs = [wake]
            if self._is_new_trip():
                self._link.send(time.monotonic())
        while time.monotonic() < due:
            pass

    def _take_states(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(self._reader.wake, 4096)
        guard = self._link.guard
        while self._reader.states:
            state, arrived = self._reader.states.popleft()
            self._link.observe(state, arrived)
        guard.hint = self._reader.error
        other = getattr(self._driver, "other_commander", None)
        if other and guard.phase == "active":
            guard.stop(GuardFault("commander", f"somebody else commands this robot: {other}"), time.monotonic())


class LockstepLoop:
    """Every command of the policy advances the robot by `substeps` command periods, each checked and limited."""

    def __init__(self, link: GuardLink, driver: Driver, substeps: int) -> None:
        self._link, self._driver, self._substeps = link, driver, substeps
        self._time_s = 0.0

    def run(self, stop: threading.Event) -> bool:
        """Answer commands until the policy disconnects or is gone."""
        link = self._link
        self._read()
        link.report(self._time_s)
        while not link.said_goodbye and not link.is_deaf and not stop.is_set():
            if not select.select([link.channel], [], [], 0.5)[0]:
                continue
            if link.take_frames(self._time_s) and not link.said_goodbye:
                self._pass_control_step()
        return True

    def _pass_control_step(self) -> None:
        for _ in range(self._substeps):
            self._link.send(self._time_s)
            self._read()
        self._link.report(self._time_s)

    def _read(self) -> None:
        link, guard = self._link, self._link.guard
        try:
            state = self._driver.read()
        except Exception as error:
            guard.stop(GuardFault("driver", f"the driver failed: {error}"), self._time_s)
            return
        before, self._time_s = guard.clips["repeated"], max(self._time_s, state.time_s)
        link.observe(state, self._time_s)
        if guard.clips["repeated"] > before:
            guard.stop(
                GuardFault("stale", f"no new state after a command: number {state.sequence} came again"), self._time_s
            )
