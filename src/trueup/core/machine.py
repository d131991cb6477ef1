"""Resources of this computer: usable cores, load, memory, disk. Facts only, no verdicts."""

from __future__ import annotations

import math
import os
import shutil
from pathlib import Path

_CGROUP = Path("/sys/fs/cgroup")


def usable_cores(cgroup: Path = _CGROUP) -> int:
    """Cores this process may keep busy: its affinity, and the share of time that a container grants."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, math.floor(min(allowed, _cpu_quota(cgroup))))


def _cpu_quota(cgroup: Path) -> float:
    """Cores' worth of CPU time that a container grants (cgroup 2, else 1); infinite without a limit."""
    try:
        quota, period = (cgroup / "cpu.max").read_text().split()
    except (OSError, ValueError):
        quota, period = _read(cgroup / "cpu/cpu.cfs_quota_us"), _read(cgroup / "cpu/cpu.cfs_period_us")
    if not (quota.isdigit() and period.isdigit() and int(period) > 0):
        return math.inf
    return int(quota) / int(period)


def load_average() -> float | None:
    """Mean number of running processes over the last minute; None where the system does not say."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else None


def free_memory_bytes(meminfo: Path = Path("/proc/meminfo"), cgroup: Path = _CGROUP) -> int | None:
    """Memory that can still be taken, within a container's limit; None where the system does not say."""
    rows = dict(line.split(":", 1) for line in _read(meminfo).splitlines() if ":" in line)
    found = [int(rows["MemAvailable"].split()[0]) * 1024] if "MemAvailable" in rows else []
    limit, used = _read(cgroup / "memory.max"), _read(cgroup / "memory.current")
    if limit.isdigit() and used.isdigit():
        found.append(max(0, int(limit) - int(used)))
    return min(found, default=None)


def free_disk_bytes(folder: str | Path = ".") -> int:
    """Free space on the disk that holds `folder`."""
    return shutil.disk_usage(folder).free


def find_browser() -> str | None:
    """Path of a browser that opens report pages, or None."""
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "firefox", "microsoft-edge")
    found = [path for path in map(shutil.which, names) if path]
    applications = ("Google Chrome", "Firefox", "Safari")
    found += [str(path) for name in applications if (path := Path(f"/Applications/{name}.app")).exists()]
    return found[0] if found else None


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
