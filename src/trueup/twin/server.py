"""The twin's process: build the twin, seal its truth, serve it until stopped.

`trueup twin serve -` is a twin as a child of a driver, which reads its config and prints its port.

    in   one line of JSON: {"serve": ServeCfg, "robot": {"spec", "model_path", "built_in", "options"}}
    out  one line of JSON: {"port": ..., "reference": ...} or {"error", "file", "place"}

The child ends when its standard input closes, which the kernel does for a parent that dies in whatever way, or when it
finds itself with another parent.
"""

from __future__ import annotations

import contextlib
import gc
import logging
import os
import select
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from types import FrameType

import msgspec
import mujoco

from trueup.core.errors import TrueupError
from trueup.hardware.realtime import TWIN, lock_memory, raise_priority
from trueup.hardware.twin_cfg import ServeCfg
from trueup.robot.load import Robot
from trueup.robot.spec import RobotSpec
from trueup.twin.firmware import Twin
from trueup.twin.real_time import ServedTwin
from trueup.twin.socket_server import TwinServer
from trueup.twin.truth.seal import seal

_log = logging.getLogger(__name__)
_LOOK_S = 1.0  # between looks at the parent


# by protocol: the class in the module of that name
_SPEAKERS = {
    "unitree": "UnitreeSpeaker", "ros2": "Ros2Speaker", "feetech": "FeetechSpeaker", "dynamixel": "DynamixelSpeaker",
}  # fmt: skip


def serve(cfg: ServeCfg, robot: Robot, on_ready: Callable[[ServedTwin], None] | None = None) -> None:
    """Serve a twin until SIGTERM, Ctrl-C, or the goodbye of the driver of a `once` server.

    `on_ready` is called when the twin can be reached.
    """
    # else the engine writes a file into the working folder
    mujoco.set_mju_user_warning(lambda text: _log.warning("physics: %s", text))
    twin = Twin(robot, cfg)
    server = _speaker(twin, cfg)
    seal(twin.name, twin.truth)
    gc.collect()
    gc.freeze()  # what is here stays: collections while the robot moves need not look at it
    if cfg.realtime_priority and not cfg.lockstep:
        raise_priority(TWIN, inherited=True)
        lock_memory()
    with _stops_on_signal():
        _log.info("twin %s listens: %s", twin.name, server.reference)
        if on_ready is not None:
            on_ready(server)
        try:
            server.run()
        finally:
            server.close()


def _speaker(twin: Twin, cfg: ServeCfg) -> ServedTwin:
    """The requested protocol; those of vendors need their packages."""
    if cfg.speak == "trueup":
        return TwinServer(twin, cfg)
    kind = getattr(import_module(f"trueup.twin.speak.{cfg.speak}"), _SPEAKERS[cfg.speak])
    made: ServedTwin = kind(twin, cfg)
    return made


class _Stop(BaseException):
    """Raised in the main thread by a signal."""


@contextlib.contextmanager
def _stops_on_signal() -> Iterator[None]:
    """Turn SIGTERM and Ctrl-C into an orderly end."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        raise _Stop

    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    except _Stop:
        pass
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _RobotMessage(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    spec: RobotSpec
    model_path: str
    built_in: bool
    options: dict[str, float]


class _Order(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    serve: ServeCfg
    robot: _RobotMessage


def serve_parent() -> int:
    """Serve the twin that standard input describes."""
    parent = os.getppid()

    def ready(server: ServedTwin) -> None:
        threading.Thread(target=_end_with_parent, args=(parent,), daemon=True).start()
        _say({"port": server.address[1] if isinstance(server, TwinServer) else 0, "reference": server.reference})

    try:
        try:
            order = msgspec.json.decode(sys.stdin.buffer.readline(), type=_Order)
        except msgspec.MsgspecError as error:
            raise TrueupError(f"the twin was started with an order it cannot read: {error}") from None
        fields = msgspec.structs.asdict(order.robot)
        serve(order.serve, Robot(**fields | {"model_path": Path(order.robot.model_path)}), ready)
    except TrueupError as error:
        _say({"error": error.message, "file": error.file, "place": error.place})
        return 1
    return 0


def _end_with_parent(parent: int) -> None:
    """Wait for the parent's end, then stop this process in order."""
    while os.getppid() == parent:
        if select.select([sys.stdin], [], [], _LOOK_S)[0] and not os.read(sys.stdin.fileno(), 4096):
            break
    main_thread = threading.main_thread().ident
    assert main_thread is not None
    signal.pthread_kill(main_thread, signal.SIGTERM)  # to the thread that may be waiting for a packet


def _say(message: dict[str, object]) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(message) + b"\n")
    sys.stdout.buffer.flush()
