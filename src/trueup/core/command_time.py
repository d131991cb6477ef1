"""When the command line's command began: what a user who gave it minutes counts from, imports included."""

from __future__ import annotations

import time

_began: list[float] = []


def begin_command() -> None:
    """Note that a command begins now."""
    _began[:] = [time.monotonic()]


def command_began() -> float:
    """When the command that runs began, by the monotonic clock; now, where there is none."""
    return _began[0] if _began else time.monotonic()
