"""Startup: how long each part of a start took, from the beginning of the process."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path


class Startup:
    """Seconds by part; "imports": from the start of the process to the creation of this object."""

    def __init__(self) -> None:
        self._last = self._now = time.perf_counter()
        self.parts: dict[str, float] = {"imports": process_age_s()}

    def mark(self, name: str) -> None:
        """Assign the time since the last mark to `name`."""
        self.mark_at(name, time.perf_counter())

    def mark_at(self, name: str, at_s: float) -> None:
        """The same for a time of `time.perf_counter()`; "total" follows."""
        self.parts[name] = at_s - self._last
        self._last = at_s
        self.parts["total"] = sum(value for key, value in self.parts.items() if key != "total")


def process_age_s() -> float:
    """Seconds since this process was started (Linux: to 10 ms), 0 where that cannot be told."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        return max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - int(fields[19]) / os.sysconf("SC_CLK_TCK"))
    return 0.0
