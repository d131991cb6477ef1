"""A robot of second-order joints inside the test's own process, with faults on request."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from trueup.core.errors import TrueupError
from trueup.hardware.driver import Command, RobotState
from trueup.robot.spec import RobotSpec

FloatArray = NDArray[np.float64]
SUBSTEPS = 10


@dataclass
class FakeDriver:
    """Joints with unit-free inertia kp / w^2, w = 40 rad/s, well damped.

    rate_hz    lock-step: one write advances the clock by 1 / rate_hz
    spoil      may change a state before it is handed out: spoil(state) -> state
    on_write   called with the number of the write, before it acts; may raise
    clamp      the driver's own limit on target positions (rad from the default pose)
    """

    spec: RobotSpec
    rate_hz: float = 200.0
    realtime: bool = False
    start: FloatArray | None = None
    spoil: Callable[[RobotState], RobotState] = lambda state: state
    on_write: Callable[[int], None] = lambda number: None
    blocked: int | None = None
    clamp: float = np.inf
    calls: list[str] = field(default_factory=list)
    written: list[Command] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.joint_names = self.spec.joint_names
        self.pos = (self.spec.default_pose if self.start is None else self.start).copy()
        self.vel = np.zeros_like(self.pos)
        self._inertia = self.spec.kp / 40.0**2
        self._damping = np.maximum(2 * 0.8 * 40.0 * self._inertia - self.spec.kd, 0.0)
        self._command = self._limp()
        self._time, self._sequence, self._wall = 10.0, 0, time.perf_counter()

    def connect(self) -> None:
        self.calls.append("connect")

    def read(self) -> RobotState:
        if self.realtime:
            now = time.perf_counter()
            self._advance(now - self._wall)
            self._wall = now
        state = RobotState(
            sequence=self._sequence,
            time_s=self._time,
            joint_pos=self.pos.copy(),
            joint_vel=self.vel.copy(),
            joint_torque=self._torque(),
            joint_temperature=np.full(len(self.pos), 35.0),
            voltage=24.0,
        )
        return self.spoil(state)

    def write(self, command: Command) -> Command:
        self.on_write(len(self.written))
        low, high = self.spec.default_pose - self.clamp, self.spec.default_pose + self.clamp
        sent = replace(command, target_pos=np.clip(command.target_pos, low, high))
        self.written.append(sent)
        self._command = sent
        if not self.realtime:
            self._advance(1.0 / self.rate_hz)
        return sent

    def damp(self) -> Command:
        self.calls.append("damp")
        self._command = self._limp()
        return self._command

    def close(self) -> None:
        self.calls.append("close")

    def _limp(self) -> Command:
        zero = np.zeros_like(self.pos)
        return Command(target_pos=self.pos.copy(), target_vel=zero, kp=zero, kd=self.spec.kd, torque=zero)

    def _torque(self) -> FloatArray:
        c = self._command
        return c.kp * (c.target_pos - self.pos) + c.kd * (c.target_vel - self.vel) + c.torque

    def _advance(self, seconds: float) -> None:
        dt = seconds / SUBSTEPS
        for _ in range(SUBSTEPS):
            self.vel += dt * (self._torque() - self._damping * self.vel) / self._inertia
            if self.blocked is not None:
                self.vel[self.blocked] = 0.0
            self.pos += dt * self.vel
        self._time += seconds
        self._sequence += 1


def lost(*_: object) -> None:
    raise TrueupError("the robot does not answer")
