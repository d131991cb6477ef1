"""The relay: a process between controller and twin, over UDP on loopback, that injects a fault from a moment on."""

from __future__ import annotations

import heapq
import os
import select
import socket
import time
from collections import deque
from collections.abc import Callable, MutableSequence
from multiprocessing.connection import Connection

import numpy as np

from faults.frames import FrameFault, is_state
from trueup.hardware import wire

# a run's clock, shared by its processes: time.monotonic() in seconds, 0 = not yet
BEGAN, FAULT, OVER, DELAY = range(4)  # policy's first step, first thing touched, let everything pass, BEGAN to fault
Plan = MutableSequence[float]
MakeFault = Callable[[np.random.Generator, deque[bytes]], FrameFault]
_MEMORY = 500  # reports that a replay has
_QUIET_S = 0.05


def is_due(plan: Plan, now: float) -> bool:
    """Whether the fault has begun and is not over."""
    return bool(plan[BEGAN]) and now >= plan[BEGAN] + plan[DELAY] and not plan[OVER]


def note_fault(plan: Plan, now: float) -> None:
    """The first time that something was touched."""
    if not plan[FAULT]:
        plan[FAULT] = now


def run_relay(pipe: Connection, robot_port: int, plan: Plan, make: MakeFault | None, seed: int) -> None:
    """Relay frames until the pipe says so; sends its own port first."""
    real_time(31)
    here, there = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
    here.bind(("127.0.0.1", 0))
    there.connect(("127.0.0.1", robot_port))
    for one in (here, there):
        one.setblocking(False)
    memory: deque[bytes] = deque(maxlen=_MEMORY)
    fault = None if make is None else make(np.random.default_rng(seed), memory)
    pipe.send(here.getsockname()[1])
    Relay(here, there, plan, fault, memory).run(pipe)


class Relay:
    """Two sockets and a queue of frames that are late."""

    def __init__(
        self, here: socket.socket, there: socket.socket, plan: Plan, fault: FrameFault | None, memory: deque[bytes]
    ) -> None:
        self._here, self._there, self._plan, self._fault, self._memory = here, there, plan, fault, memory
        self._controller: tuple[str, int] | None = None
        self._late: list[tuple[float, int, bool, bytes]] = []
        self._count = 0

    def run(self, pipe: Connection) -> None:
        """Until something comes on the pipe."""
        while True:
            wait = min(_QUIET_S, self._late[0][0] - time.monotonic()) if self._late else _QUIET_S
            ready = select.select([self._there, self._here, pipe], [], [], max(0.0, wait))[0]
            if pipe in ready:
                return
            if self._there in ready:
                self._take(self._there, is_up=True)
            if self._here in ready:
                self._take(self._here, is_up=False)
            while self._late and self._late[0][0] <= time.monotonic():
                _, _, is_up, frame = heapq.heappop(self._late)
                self._send(frame, is_up)

    def _take(self, source: socket.socket, *, is_up: bool) -> None:
        try:
            while True:
                frame, address = source.recvfrom(wire.MAX_FRAME_BYTES)
                self._controller = self._controller if is_up else address
                self._pass(frame, is_up)
        except (BlockingIOError, ConnectionRefusedError):
            return

    def _pass(self, frame: bytes, is_up: bool) -> None:
        now = time.monotonic()
        if self._fault is not None and is_due(self._plan, now):
            changed = self._fault(frame, is_up, now)
            if changed is not None:
                note_fault(self._plan, now)
                for delay, one in changed:
                    self._send(one, is_up) if not delay else self._hold(now + delay, is_up, one)
                return
        elif is_up and is_state(frame):
            self._memory.append(frame)
        self._send(frame, is_up)

    def _hold(self, due: float, is_up: bool, frame: bytes) -> None:
        self._count += 1
        heapq.heappush(self._late, (due, self._count, is_up, frame))

    def _send(self, frame: bytes, is_up: bool) -> None:
        try:
            if not is_up:
                self._there.send(frame)
            elif self._controller is not None:
                self._here.sendto(frame, self._controller)
        except OSError:  # nobody there any more
            return


def real_time(priority: int) -> None:
    """Robot and network are not disturbed by what else this computer does, as far as it allows that."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))
    except OSError:
        return
