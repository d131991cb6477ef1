"""A robot of two joints, states and commands for it, and a driver in real time that notes when it was sent what."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup.core.arrays import FloatArray
from trueup.core.errors import TrueupError
from trueup.hardware.driver import Command, RobotState
from trueup.hardware.guard.cfg import GuardCfg
from trueup.hardware.guard.motor_guard import MotorGuard
from trueup.robot.load import Robot
from trueup.robot.spec import BaseSpec, JointSpec, RobotSpec

if TYPE_CHECKING:
    from trueup.hardware.guard.driver import GuardDriver

A = JointSpec(name="a", position=(-1.0, 1.0), velocity=10.0, torque=20.0, kp=20.0, kd=0.5, default=0.0)
B = JointSpec(name="b", position=(-2.5, -0.5), velocity=5.0, torque=40.0, kp=40.0, kd=1.0, default=-1.0)
SPEC = RobotSpec(
    schema=1,
    name="two",
    model="two.xml",
    control_hz=50.0,
    physics_hz=1000.0,
    base=BaseSpec(body="base", floating=True),
    joints=(A, B),
    imu="imu",
)
PERIOD = 0.002
ROBOT = Robot(spec=SPEC, model_path=Path("two.xml"))


def state(k: int, **changed: Any) -> RobotState:
    """Report k of a robot at 500 Hz that rests in its default pose, upright."""
    rest = RobotState(
        sequence=k + 1,
        time_s=k * PERIOD,
        joint_pos=np.array([0.0, -1.0]),
        joint_vel=np.zeros(2),
        joint_torque=np.zeros(2),
        joint_temperature=np.full(2, 30.0),
        voltage=28.0,
        imu_quat=np.array([1.0, 0.0, 0.0, 0.0]),
        imu_gyro=np.zeros(3),
        imu_acc=np.array([0.0, 0.0, 9.81]),
    )
    arrays = {name: np.array(value, float) if isinstance(value, list) else value for name, value in changed.items()}
    return replace(rest, **arrays)


def rows(target: list[float] | FloatArray = (0.0, -1.0), **changed: list[float]) -> FloatArray:  # type: ignore[assignment]
    """A command (5, 2): targets with the robot's own gains, unless said otherwise."""
    zero = [0.0, 0.0]
    command = {"target": target, "vel": zero, "kp": [20.0, 40.0], "kd": [0.5, 1.0], "torque": zero}
    return np.array(list((command | changed).values()), float)


class Runner:
    """A guard that is fed a report, and a command every ten reports, on the robot's own clock."""

    def __init__(self, cfg: GuardCfg | None = None, *, spec: RobotSpec = SPEC, start: bool = True) -> None:
        self.guard = MotorGuard(spec, cfg or GuardCfg(), control_hz=50.0, period_s=PERIOD)
        self.k = 0
        self.sent: FloatArray | None = None
        if start:
            self.run(20)
            assert self.guard.phase == "active"

    def step(self, target: list[float] | FloatArray | None = (0.0, -1.0), **changed: Any) -> None:  # type: ignore[assignment]
        """One report, with some of its values changed; a command with every tenth unless `target` is None."""
        now = self.k * PERIOD
        self.guard.observe(state(self.k, **changed), now)
        if target is not None and self.k % 10 == 0:
            self.guard.command(rows(target), now)
        self.sent = self.guard.tick(now)
        self.k += 1

    def run(self, steps: int, target: list[float] | None = (0.0, -1.0), **changed: Any) -> None:  # type: ignore[assignment]
        for _ in range(steps):
            self.step(target, **changed)

    @property
    def tripped(self) -> str:
        return "" if self.guard.trip is None else self.guard.trip.guard

    @property
    def reason(self) -> str:
        return "" if self.guard.trip is None else self.guard.trip.reason


class TimedDriver:
    """A robot in real time whose joints follow their targets at once; what happens is noted as lines of JSON.

    fault  what goes wrong `at` seconds after the first command: silent, nan, raise, other, freeze, old, spike
    """

    def __init__(self, robot: Robot, command_hz: float, log: str, fault: str, at: float) -> None:
        self.joint_names, self.realtime, self.command_hz = robot.spec.joint_names, True, command_hz
        self.other_commander: str | None = None
        self.sends_gains = fault != "fixed_gains"
        self._log = open(log, "ab", buffering=0)  # noqa: SIM115 - lives as long as the process
        self._fault, self._at = fault, at
        self._start = self._began = self._fault_s = 0.0
        self._k = 0
        self._pos = robot.spec.default_pose
        self._kd = robot.spec.kd
        self._kept: RobotState | None = None

    def connect(self) -> None:
        self._start = time.monotonic()
        self._note("connect", self._start)

    def read(self) -> RobotState:
        self._k = max(self._k + 1, int((time.monotonic() - self._start) * self.command_hz))
        time.sleep(max(0.0, self._start + self._k / self.command_hz - time.monotonic()))
        n = len(self._pos)
        wobble = 1e-6 * np.sin(self._k + np.arange(n))
        now = RobotState(
            sequence=self._k,
            time_s=self._k / self.command_hz,
            joint_pos=self._pos + wobble,
            joint_vel=np.zeros(n),
            joint_torque=np.full(n, np.nan),
            joint_temperature=np.full(n, 30.0),
            voltage=24.0,
        )
        if self._fault and self._began and time.monotonic() - self._began > self._at:
            return self._broken(now)
        self._kept = now
        return now

    def _broken(self, now: RobotState) -> RobotState:
        if not self._fault_s:
            self._fault_s = time.monotonic()
            self._note("fault", self._fault_s)
        if self._fault == "silent":
            time.sleep(2.0)
            raise TrueupError("the robot does not answer")
        if self._fault == "other":
            self.other_commander = "an app on 192.168.0.7"
        if self._fault == "old":
            assert self._kept is not None
            return self._kept
        bad = {"nan": np.nan, "spike": 1.0}.get(self._fault)
        if bad is not None:
            now.joint_pos[0] += bad
        return now

    def write(self, command: Command) -> Command:
        if self._fault == "raise" and self._began and time.monotonic() - self._began > self._at:
            self._note("fault", time.monotonic())
            raise TrueupError("the cable is out")
        self._began = self._began or time.monotonic()
        self._pos = command.target_pos.copy()
        self._note("write", time.monotonic(), target=command.target_pos.tolist())
        return command

    def damp(self) -> Command:
        zero = np.zeros(len(self._pos))
        self._note("damp", time.monotonic())
        return Command(target_pos=self._pos, target_vel=zero, kp=zero, kd=self._kd, torque=zero)

    def close(self) -> None:
        self._note("close", time.monotonic())

    def _note(self, what: str, time_s: float, **facts: object) -> None:
        self._log.write(json.dumps({"what": what, "time_s": time_s, **facts}).encode() + b"\n")


def make_driver(robot: Robot, command_hz: float, log: str, fault: str = "", at: str = "0.2") -> TimedDriver:
    """As `--driver guard_doubles.py:make_driver?log=...` calls it."""
    return TimedDriver(robot, command_hz, log, fault, float(at))


def reference(log: Path, fault: str = "") -> str:
    """What to type after --driver."""
    return f"{Path(__file__)}:make_driver?log={log}" + (f"&fault={fault}" if fault else "")


def notes(log: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in log.read_text().splitlines()]


def times(log: Path, what: str) -> np.ndarray:
    return np.array([note["time_s"] for note in notes(log) if note["what"] == what])


def command(target: np.ndarray | float, robot: Robot = ROBOT) -> Command:
    n = robot.spec.njoint
    zero, pose = np.zeros(n), np.broadcast_to(np.asarray(target, float), n).copy()
    return Command(target_pos=pose, target_vel=zero, kp=robot.spec.kp, kd=robot.spec.kd, torque=zero)


def drive(driver: GuardDriver, seconds: float) -> None:
    """Send the default pose at 50 Hz."""
    start = time.monotonic()
    for k in range(round(50 * seconds)):
        time.sleep(max(0.0, start + k / 50.0 - time.monotonic()))
        driver.read()
        driver.write(command(SPEC.default_pose))


@contextmanager
def priority() -> Iterator[None]:
    """Real-time priority for this process and its children to come, where that is allowed."""
    before = os.sched_getscheduler(0)
    with suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(5))
    yield
    os.sched_setscheduler(0, before, os.sched_param(0))
