"""Ctrl-C as a wish: the first asks the loop to save and end, the second ends at once."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType


@dataclass
class StopWish:
    """`asked` becomes true with the first Ctrl-C or SIGTERM."""

    asked: bool = False


@contextmanager
def stop_wish() -> Iterator[StopWish]:
    """Turn SIGINT and SIGTERM into a wish while the block runs; outside the main thread nothing changes."""
    wish = StopWish()
    if threading.current_thread() is not threading.main_thread():
        yield wish
        return

    def ask(number: int, frame: FrameType | None) -> None:
        if wish.asked:
            raise KeyboardInterrupt
        wish.asked = True

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield wish
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
