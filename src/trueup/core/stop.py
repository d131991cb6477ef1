"""Stop requests: the first Ctrl-C or SIGTERM asks a loop to end in order, the second ends it at once."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType


@dataclass
class StopFlag:
    """`requested` becomes true with the first Ctrl-C or SIGTERM."""

    requested: bool = False


@contextmanager
def stop_on_signal() -> Iterator[StopFlag]:
    """SIGINT and SIGTERM set the flag while the block runs; outside the main thread signals are left alone."""
    flag = StopFlag()
    if threading.current_thread() is not threading.main_thread():
        yield flag
        return

    def request(number: int, frame: FrameType | None) -> None:
        if flag.requested:
            raise KeyboardInterrupt
        flag.requested = True

    before = {number: signal.signal(number, request) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield flag
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
