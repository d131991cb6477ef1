"""Facts of the machine, read from files as containers and systems write them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from trueup.core import machine

AFFINITY = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


@pytest.mark.parametrize(
    ("files", "cores"),
    [
        ({}, AFFINITY),
        ({"cpu.max": "max 100000"}, AFFINITY),
        ({"cpu.max": "100000 100000"}, 1),
        ({"cpu.max": "50000 100000"}, 1),  # half a core still runs one thread
        ({"cpu.max": "9900000 100000"}, AFFINITY),
        ({"cpu/cpu.cfs_quota_us": "100000", "cpu/cpu.cfs_period_us": "100000"}, 1),
        ({"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, AFFINITY),
        ({"cpu.max": "rubbish"}, AFFINITY),
    ],
)
def test_cores_are_those_that_affinity_and_container_grant(tmp_path: Path, files: dict[str, str], cores: int):
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text + "\n")
    assert machine.usable_cores(tmp_path) == cores


def test_memory_is_the_smaller_of_system_and_container(tmp_path: Path):
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemTotal:  9000 kB\nMemAvailable:  5000 kB\n")
    assert machine.free_memory_bytes(meminfo, tmp_path) == 5000 * 1024
    (tmp_path / "memory.max").write_text("3000000\n")
    (tmp_path / "memory.current").write_text("1000000\n")
    assert machine.free_memory_bytes(meminfo, tmp_path) == 2_000_000
    (tmp_path / "memory.max").write_text("max\n")
    assert machine.free_memory_bytes(meminfo, tmp_path) == 5000 * 1024


def test_browser_is_found_on_the_path_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    if not Path("/Applications").exists():
        assert machine.find_browser() is None
    browser = tmp_path / "firefox"
    browser.write_text("#!/bin/sh\n")
    browser.chmod(0o755)
    assert machine.find_browser() == str(browser)
