"""A robot behind ROS 2 topics, in a thread of the test: real DDS on loopback, states that the test writes."""

from __future__ import annotations

import random
import socket
import threading
import time
from typing import Any

from trueup.hardware.drivers.ros2.bus import RosBus
from trueup.hardware.drivers.ros2.messages import Header, Imu, JointState, Time

_TAKEN: list[socket.socket] = []


def free_domain() -> int:
    """A DDS domain that no other test uses, in this process or another: a TCP port each marks those that are taken."""
    for domain in random.SystemRandom().sample(range(100, 230), 130):  # Unitree's tests: below
        mark = socket.socket()
        try:
            mark.bind(("127.0.0.1", 39_000 + domain))
        except OSError:
            mark.close()
            continue
        _TAKEN.append(mark)
        return domain
    raise RuntimeError("every DDS domain is taken")


class Ros2Robot:
    """Publishes `state` (and `imu`) every 2 ms while it is not None, with stamps that rise; collects commands."""

    def __init__(self, domain: int, kind: type[Any] = JointState, *, command: str = "/joint_commands") -> None:
        self.bus = RosBus("lo", domain)
        self._states = self.bus.outbox("/joint_states", JointState)
        self._imus = self.bus.outbox("/imu", Imu)
        self._commands = self.bus.inbox(command, kind)
        self.state: JointState | None = None
        self.imu: Imu | None = None
        self.commands: list[Any] = []
        self.sent = 0
        self.stamps = True
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def await_commands(self, count: int, seconds: float = 3.0) -> list[Any]:
        end = time.monotonic() + seconds
        while len(self.commands) < count and time.monotonic() < end:
            time.sleep(0.002)
        return self.commands

    def close(self) -> None:
        self._is_over.set()
        self._thread.join(5.0)
        self.bus.close()

    def _run(self) -> None:
        while not self._is_over.wait(0.002):
            self.commands += self._commands.take()
            header = Header(Time(100 + self.sent // 500, (self.sent % 500) * 2_000_000)) if self.stamps else Header()
            if (imu := self.imu) is not None:
                imu.header = header
                self._imus.send(imu)
            if (state := self.state) is not None:
                state.header = header
                self._states.send(state)
                self.sent += 1
