"""What holds for all tests: signals as a terminal has them, and a second try for what runs against the wall clock."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

_REAL_TIME = ("deploy", "hardware", "record", "twin")  # folders whose tests talk to processes in real time
_TRIES = 2


def pytest_configure() -> None:
    """Let Ctrl-C reach child processes also where the tests were started in the background, with SIGINT ignored."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run a failed real-time test once more: a shared machine may have taken the processor away from it."""
    for item in items:
        if Path(item.path).relative_to(Path(__file__).parent).parts[0] in _REAL_TIME:
            item.add_marker(pytest.mark.flaky(reruns=_TRIES - 1))
