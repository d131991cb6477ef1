"""The guard's process: `python -m trueup.hardware.guard.process`, started by `GuardDriver`.

    in   one line of JSON on standard input (`Order`), then frames of `hardware.wire` on an inherited socket
    out  WELCOME (or REFUSAL), STATE, COMMAND (what was really sent), STATUS, SUMMARY on the same socket

It owns the driver. Every end is damping: the policy's disconnect or death, a signal, an exception.
"""

from __future__ import annotations

import contextlib
import gc
import logging
import signal
import socket
import sys
import threading
import time
from dataclasses import asdict
from pathlib import Path
from types import FrameType

import msgspec

from trueup.core.errors import TrueupError
from trueup.hardware import wire
from trueup.hardware.driver import Driver
from trueup.hardware.guard.cfg import GuardCfg
from trueup.hardware.guard.link import GuardLink
from trueup.hardware.guard.loop import LockstepLoop, RealtimeLoop
from trueup.hardware.guard.motor_guard import MotorGuard
from trueup.hardware.guard.readings import GuardFault
from trueup.hardware.guard.recorder import GuardRecorder
from trueup.hardware.realtime import GUARD, SWITCH_S, lock_memory, raise_priority
from trueup.robot.load import Robot
from trueup.robot.spec import RobotSpec

_log = logging.getLogger(__name__)
FASTEST_HZ = 500.0
_DAMPINGS, _DAMPING_APART_S = 5, 0.005
_READY_S = 3.0
_IN_THIS_PROCESS = ("unitree:", "ros2:", "feetech:", "dynamixel:")  # drivers that start no process and import little


class Order(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Arguments of the guard's process; `channel` is the inherited socket's number."""

    channel: int
    reference: str
    cfg: GuardCfg
    spec: RobotSpec
    model_path: str
    root: str | None
    built_in: bool
    options: dict[str, float]
    control_hz: float
    command_hz: float | None = None
    lockstep: bool | None = None
    out: str | None = None

    def robot(self) -> Robot:
        """The robot of the order."""
        root = None if self.root is None else Path(self.root)
        path, options = Path(self.model_path), dict(self.options)
        return Robot(spec=self.spec, model_path=path, root=root, built_in=self.built_in, options=options)


def main() -> int:
    """Run the guard that standard input describes."""
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    stop = threading.Event()

    def request(number: int, frame: FrameType | None) -> None:
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, request)
    order = msgspec.json.decode(sys.stdin.buffer.readline(), type=Order)
    channel = socket.socket(fileno=order.channel)
    try:
        _guard(order, channel, stop)
    except TrueupError as error:
        refusal = wire.encode_refusal(0, time.monotonic(), str(error))
        with contextlib.suppress(OSError):  # nobody is there to read it
            channel.send(refusal, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
        return 1
    return 0


def _guard(order: Order, channel: socket.socket, stop: threading.Event) -> None:
    """Connect the robot, guard it, disconnect."""
    from trueup.hardware.drivers.open import open_driver

    meta = {"robot": order.spec.name, "driver": order.reference, "control_hz": order.control_hz, "what": "motor guard"}
    recorder = GuardRecorder(None if order.out is None else Path(order.out), order.spec.joint_names, meta)
    driver = open_driver(order.reference, order.robot(), command_hz=order.command_hz, lockstep=order.lockstep)
    if order.cfg.realtime_priority and order.reference.startswith(_IN_THIS_PROCESS):
        raise_priority(GUARD, inherited=True)  # taking over a robot takes seconds, in which its states must be read too
    try:
        driver.connect()
        _run(order, driver, channel, recorder, stop)
    finally:
        try:
            driver.close()  # first: a slow disk is not the robot's business
        finally:
            recorder.close()


def _run(order: Order, driver: Driver, channel: socket.socket, recorder: GuardRecorder, stop: threading.Event) -> None:
    command_hz = float(getattr(driver, "command_hz", 0.0) or order.command_hz or order.control_hz)
    hz = min(FASTEST_HZ, command_hz) if order.cfg.guard_hz is None else order.cfg.guard_hz
    substeps = 1 if driver.realtime else _substeps(command_hz, order.control_hz)
    period_s = 1.0 / (hz if driver.realtime else command_hz)
    guard = MotorGuard(order.spec, order.cfg, control_hz=order.control_hz, period_s=period_s, realtime=driver.realtime)
    link = GuardLink(guard, driver, channel, recorder)
    recorder.wait(_READY_S)
    _prepare(order.cfg)
    link.welcome(str(getattr(driver, "name", "") or order.reference), command_hz)
    is_free = False
    try:
        if driver.realtime:
            is_free = RealtimeLoop(link, driver, period_s).run(stop)
        else:
            is_free = LockstepLoop(link, driver, substeps).run(stop)
    except BaseException as error:
        guard.stop(GuardFault("driver", f"the guard itself failed: {error!r}"), time.monotonic())
        raise
    finally:
        if stop.is_set():
            guard.stop(GuardFault("stop", "the motor guard was told to end by a signal"), time.monotonic())
        for _ in range(_DAMPINGS):
            link.damp()
            if driver.realtime:
                time.sleep(min(period_s, _DAMPING_APART_S))  # one gap of the line does not swallow them all
        link.finish(time.monotonic(), _tap(driver) if is_free else {})


def _substeps(command_hz: float, control_hz: float) -> int:
    count = max(1, round(command_hz / control_hz))
    if abs(count * control_hz - command_hz) > 1e-6 * command_hz:
        raise TrueupError(
            f"in lock-step the driver's rate {command_hz:g} Hz must be a whole multiple of the control rate"
            f" {control_hz:g} Hz"
        )
    return count


def _prepare(cfg: GuardCfg) -> None:
    """Set up this process for a timed loop, as far as the system allows it."""
    gc.collect()
    gc.freeze()
    sys.setswitchinterval(SWITCH_S)
    if cfg.realtime_priority:
        raise_priority(GUARD, inherited=True)  # the reader of the driver is started after this
        lock_memory()


def _tap(driver: Driver) -> dict[str, int]:
    """Counts at a twin's motors."""
    tap = getattr(driver, "tap", None)
    if tap is None:
        return {}
    try:
        return asdict(tap())
    except Exception as error:  # it is for tests, and the robot is damped
        _log.debug("no counts: %s", error)
        return {}


if __name__ == "__main__":
    raise SystemExit(main())
