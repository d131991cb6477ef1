"""`trueup twin serve -`: a twin as a child of a driver, which reads its order and says where it listens.

    in   one line of JSON: {"serve": ServeCfg, "robot": {"spec", "model_path", "built_in", "options"}}
    out  one line of JSON: {"port": ...} or {"error", "file", "place"}

The child ends when its standard input closes, which the kernel does for a parent that dies in whatever way, or when it
finds itself with another parent.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
from pathlib import Path

import msgspec

from trueup.core.errors import TrueupError
from trueup.hardware.twin_cfg import ServeCfg
from trueup.robot.load import Robot
from trueup.robot.spec import RobotSpec
from trueup.twin.server import serve
from trueup.twin.socket_server import TwinServer

_LOOK_S = 1.0  # between looks at the parent


class _RobotMessage(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    spec: RobotSpec
    model_path: str
    built_in: bool
    options: dict[str, float]


class _Order(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    serve: ServeCfg
    robot: _RobotMessage


def main() -> int:
    """Serve what standard input orders."""
    parent = os.getppid()
    try:
        order = _read_order()
        robot = Robot(
            spec=order.robot.spec,
            model_path=Path(order.robot.model_path),
            built_in=order.robot.built_in,
            options=order.robot.options,
        )
        serve(order.serve, robot, on_ready=lambda server: _ready(server, parent))
    except TrueupError as error:
        _say({"error": error.message, "file": error.file, "place": error.place})
        return 1
    return 0


def _read_order() -> _Order:
    try:
        return msgspec.json.decode(sys.stdin.buffer.readline(), type=_Order)
    except msgspec.MsgspecError as error:
        raise TrueupError(f"the twin was started with an order it cannot read: {error}") from None


def _ready(server: TwinServer, parent: int) -> None:
    threading.Thread(target=_end_with_parent, args=(parent,), daemon=True).start()
    _say({"port": server.address[1]})


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
