"""The controllers of a fault run, each a process: the session behind the motor guard, and a plain loop."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading
import time
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

import trueup.data.mcap.write
import trueup.hardware.drivers.open  # noqa: F401
from faults.relay import BEGAN, OVER, Plan, is_due, note_fault, real_time
from trueup.core.errors import TrueupError
from trueup.deploy.control.controller import ControlCfg, Controller
from trueup.deploy.control.goal import AskedGoal
from trueup.deploy.control.monitors import MonitorCfg
from trueup.deploy.control.motions import plan_ramp
from trueup.deploy.ladder.records import RUNG_CFGS
from trueup.deploy.session import session
from trueup.deploy.session.recording import FILE, RowsHeader, RowWriter, column_widths
from trueup.deploy.session.session import DeploySessionCfg
from trueup.deploy.session.undisturbed import PRIORITY
from trueup.hardware.driver import RobotState
from trueup.hardware.drivers.twin import TwinDriver
from trueup.hardware.guard import process
from trueup.hardware.guard.cfg import GuardCfg
from trueup.hardware.guard.driver import GuardDriver
from trueup.policy.bundle.bundle import PolicyBundle
from trueup.robot.load import Robot

_READY_S = 5.0


@dataclass(frozen=True, kw_only=True)
class Order:
    """What a controller is to do.

    goal      what is asked of the policy, such as ("forward=0.5",)
    seconds   that the policy runs
    output    fault of the policy's own: "nan", "huge", "slow", "hung", "crash", "abort"; "" for none
    guard     thresholds of the motor guard
    """

    bundle: PolicyBundle
    robot: Robot
    port: int
    goal: tuple[str, ...]
    seconds: float
    folder: Path
    guard: GuardCfg
    output: str = ""


class ForkedGuard(GuardDriver):
    """The motor guard in a process of its own as ever, but forked: a second less for each of a thousand runs."""

    def _spawn(self) -> socket.socket:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        order = msgspec.json.decode(self._order(theirs.fileno()), type=process.Order)
        pid = os.fork()
        if not pid:
            _guard_process(order, ours, theirs)
        theirs.close()
        self.forked_pid = pid
        return ours

    @property
    def guard_pid(self) -> int:
        return self.forked_pid


def _guard_process(order: process.Order, ours: socket.socket, theirs: socket.socket) -> None:
    """What `python -m trueup.hardware.guard.process` does, in a child that never returns."""
    try:
        os.setsid()
        for one in _descriptors(keep=theirs.fileno()):
            os.close(one)
        stop = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda number, frame: stop.set())
        process._guard(order, theirs, stop)
    finally:
        os._exit(0)


def _descriptors(keep: int) -> list[int]:
    """Open descriptors beyond the standard ones and `keep`: none of the parent's pipes may be held open."""
    found = [int(name) for name in os.listdir("/proc/self/fd")]
    return [one for one in found if one > 2 and one != keep and _is_open(one)]


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


class FaultyNet:
    """A policy's network that goes wrong from a moment on; its first call tells when the policy began."""

    def __init__(self, net: Any, plan: Plan, output: str) -> None:
        self._net, self._plan, self._output = net, plan, output

    def restart(self, rows: NDArray[np.intp]) -> None:
        self._net.restart(rows)

    def __call__(self, actor: NDArray[np.float32]) -> NDArray[np.float32]:
        now = time.monotonic()
        if not self._plan[BEGAN]:
            self._plan[BEGAN] = now
        action = self._net(actor)
        if self._output and is_due(self._plan, now):
            note_fault(self._plan, now)
            return self._wrong(action)
        return action

    def _wrong(self, action: NDArray[np.float32]) -> NDArray[np.float32]:
        match self._output:
            case "nan":
                return np.full_like(action, np.nan)
            case "huge":
                return np.full_like(action, 1e6)
            case "slow":
                time.sleep(0.03)
            case "hung":
                time.sleep(30.0)
            case "crash":
                raise RuntimeError("the policy crashed")
            case "abort":
                os.abort()
        return action


def guarded(pipe: Connection, order: Order, plan: Plan) -> None:
    """Run the session behind the guard; sends the guard's pid first, how it ended last."""
    with contextlib.suppress(OSError):
        os.nice(-10)  # for a quick start; the loops of session and guard ask for real-time priority themselves
    os.setpgid(0, 0)
    _quiet()
    controller = Controller(order.bundle, order.robot.spec.joint_names)
    controller._net = FaultyNet(controller._net, plan, order.output)
    driver = ForkedGuard(
        f"twin@127.0.0.1:{order.port}", order.robot, order.guard, out=order.folder, control_hz=controller.control_hz
    )
    driver.connect()
    pipe.send(driver.guard_pid)
    goal = AskedGoal(controller.passport.goal)
    goal.set(order.goal)
    writer = RowWriter(order.folder / FILE, _header(order))
    session.plan_ramp = partial(plan_ramp, most_speed=2.0)  # it stands already
    cfg = DeploySessionCfg(
        seconds=order.seconds, ramp_s=0.2, rest_s=0.1, monitors=MonitorCfg(trip=RUNG_CFGS["full"].trips)
    )
    try:
        _await_ready(driver)
        outcome = session.DeploySession(controller, driver, goal, cfg, writer=writer).run()
        found = {"ended": outcome.ended, "guard": outcome.guard, "reason": outcome.reason, "misses": outcome.misses}
    except Exception as error:  # damping has been sent by the session
        found = {"ended": "crashed", "guard": "", "reason": repr(error), "misses": 0}
    written = writer.close()
    pipe.send(found | {"unwritten": written.dropped, "write_error": written.error})
    parent = os.getppid()
    while not plan[OVER] and os.getppid() == parent:  # the fault lasts as long as somebody looks
        time.sleep(0.01)
    driver.close()


def plain(pipe: Connection, order: Order, plan: Plan) -> None:
    """Clip and send: newest state, policy, np.clip to the joint limits; a thread repeats the target at 500 Hz.

    What public stacks do: no check of states or targets, no time-out, no damping at the end.
    """
    real_time(PRIORITY)  # as the session has
    os.setpgid(0, 0)
    _quiet()
    spec = order.robot.spec
    controller = _Unchecked(order.bundle, spec.joint_names, ControlCfg(target_step=np.inf))
    controller._net = FaultyNet(controller._net, plan, order.output)
    driver = TwinDriver(order.robot, address=("127.0.0.1", order.port))
    driver.connect()
    goal = AskedGoal(controller.passport.goal)
    goal.set(order.goal)
    loop = _PlainLoop(controller, driver, driver.read())
    pipe.send(0)
    time.sleep(0.1)
    loop.run(goal, order.seconds)
    pipe.send({"ended": "done", "guard": "", "reason": "", "misses": 0, "unwritten": 0, "write_error": ""})


class _PlainLoop:
    """One thread reads, one repeats the newest command, the main thread runs the policy at its rate."""

    def __init__(self, controller: Controller, driver: TwinDriver, state: RobotState) -> None:
        self._controller, self._driver, self._state = controller, driver, state
        self._command = controller.command(controller.default_pose)
        for work in (self._read, self._write):
            threading.Thread(target=work, daemon=True).start()

    def _read(self) -> None:
        while True:
            with contextlib.suppress(TrueupError):
                self._state = self._driver.read()

    def _write(self) -> None:
        while True:
            with contextlib.suppress(TrueupError):
                self._driver.write(self._command)
            time.sleep(0.002)

    def run(self, goal: AskedGoal, seconds: float) -> None:
        controller, dt, start = self._controller, 1.0 / self._controller.control_hz, time.perf_counter()
        limits = self._driver._robot.spec.position_low, self._driver._robot.spec.position_high
        controller.restart(controller.default_pose)
        for k in range(round(seconds / dt)):
            time.sleep(max(0.0, start + k * dt - time.perf_counter()))
            step = controller.step(self._state, goal.values)
            self._command = controller.command(np.clip(step.target, *limits))


class _Unchecked(Controller):
    """The controller without its checks of numbers."""

    def _check(self, actor: NDArray[np.float32]) -> None:
        return

    def _act(self, actor: NDArray[np.float32]) -> NDArray[np.float32]:
        try:
            return self._net(actor)
        except TrueupError:  # a network itself passes NaN on
            return np.full((1, self._map.naction), np.nan, np.float32)


def _await_ready(driver: GuardDriver) -> None:
    until = time.monotonic() + _READY_S
    while driver.poll().not_ready and time.monotonic() < until:
        driver.read()


def _header(order: Order) -> RowsHeader:
    spec, names = order.bundle.passport.policy, order.robot.spec.joint_names
    return RowsHeader(
        bundle=str(order.bundle.path),
        bundle_hash=order.bundle.hash,
        robot=order.robot.spec.name,
        joint_names=names,
        control_hz=spec.control_hz,
        has_imu=True,
        settings={"smoothing": 1.0, "target_step": None, "engine": "numpy"},
        columns=column_widths(
            len(names), spec.observation.ncommand, spec.observation.nactor, len(spec.action.controlled_joints)
        ),
    )


def _quiet() -> None:
    """A forked process starts with the usual signals, and says nothing."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 2)
