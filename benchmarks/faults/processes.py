"""What is done to processes and to the robot's port: signals, a full disk, a second driver."""

from __future__ import annotations

import os
import resource
import socket
import time
from collections.abc import Callable

import numpy as np

from trueup.hardware import wire
from trueup.robot.load import load_robot

ROBOT = "go2"
Act = Callable[[int, int, int], None]  # pid of the policy, pid of the guard (0: none), port of the robot


def send_signal(number: int, *, guard: bool = False) -> Act:
    """A signal to the policy's process, or to the guard's where there is one."""

    def act(policy: int, motor_guard: int, port: int) -> None:
        pid = motor_guard if guard else policy
        if pid:  # 0 would be this very group of processes
            os.kill(pid, number)

    return act


def fill_disk(policy: int, guard: int, port: int) -> None:
    """From now on no write of either process succeeds (EFBIG)."""
    for pid in (policy, guard):
        if pid:
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, 0))


def second_driver(policy: int, guard: int, port: int) -> None:
    """Another driver says hello to the robot and sends commands, for a tenth of a second."""
    spec, zero = load_robot(ROBOT).spec, np.zeros(12)
    rows = np.stack([spec.position_low, zero, spec.kp, spec.kd, zero])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.connect(("127.0.0.1", port))
        for k in range(50):
            other.send(wire.encode(wire.Kind.HELLO, 0, 0.0))
            other.send(wire.encode_rows(1_000_000 + k, 0.0, rows))
            time.sleep(0.002)
