"""Start time of a command, and stop requests: the first Ctrl-C or SIGTERM ends a loop in order, the second
ends it at once.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_began: list[float] = []


def begin_command() -> None:
    """Record the start of a command: its time budget counts from here."""
    _began[:] = [time.monotonic()]


def command_began() -> float:
    """Start of the running command on the monotonic clock; now, if there is none."""
    return _began[0] if _began else time.monotonic()


@contextmanager
def stop_on_signal() -> Iterator[threading.Event]:
    """SIGINT and SIGTERM set the event while the block runs, a second one ends it at once; main thread only."""
    requested = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield requested
        return

    def request(number: int, frame: FrameType | None) -> None:
        if requested.is_set():
            raise KeyboardInterrupt
        requested.set()

    before = {number: signal.signal(number, request) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield requested
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
