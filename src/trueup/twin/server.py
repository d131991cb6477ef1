"""The twin's process: build the twin, seal its truth, serve it until told to stop."""

from __future__ import annotations

import contextlib
import gc
import logging
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType

import mujoco

from trueup.hardware.twin_cfg import ServeCfg
from trueup.robot.load import Robot
from trueup.twin.firmware import Twin
from trueup.twin.socket_server import TwinServer
from trueup.twin.truth.seal import seal

_log = logging.getLogger(__name__)


def serve(cfg: ServeCfg, robot: Robot, on_ready: Callable[[TwinServer], None] | None = None) -> None:
    """Serve a twin until SIGTERM, Ctrl-C, or the goodbye of the driver of a `once` server.

    `on_ready` is called when the socket listens.
    """
    # else the engine writes a file into the working folder
    mujoco.set_mju_user_warning(lambda text: _log.warning("physics: %s", text))
    twin = Twin(robot, cfg)
    server = TwinServer(twin, cfg)
    seal(twin.name, twin.truth)
    gc.collect()
    gc.freeze()  # what is here stays: collections while the robot moves need not look at it
    with _stops_on_signal():
        _log.info("twin %s listens on %s:%d", twin.name, *server.address)
        if on_ready is not None:
            on_ready(server)
        server.run()


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
