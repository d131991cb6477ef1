"""Where results of benchmarks go: `docs/results/NAME.md` and `.json`, with the command and the machine."""

from __future__ import annotations

import json
import os
import platform
import sys
from importlib.metadata import version
from pathlib import Path

from trueup.core.files import write_atomic

RESULTS = Path(__file__).resolve().parents[1] / "docs" / "results"


def publish(name: str, numbers: dict[str, object], text: str) -> None:
    """Write both files and print the numbers as one JSON object, the last line of every benchmark."""
    command = " ".join(["python", *(_shown(arg) for arg in sys.argv)])
    python, mujoco = platform.python_version(), version("mujoco")
    machine = f"{os.cpu_count()} cores, {platform.machine()}, Python {python}, mujoco {mujoco}"
    record = {"command": command, "machine": machine, **numbers}
    write_atomic(RESULTS / f"{name}.json", json.dumps(record, indent=1) + "\n")
    write_atomic(RESULTS / f"{name}.md", f"{text.strip()}\n\nMade by `{command}` on {machine}.\n")
    print(text)
    print(json.dumps(record))


def _shown(argument: str) -> str:
    """An argument as it may be printed: paths inside the project relative to it, others by their kind only."""
    path = Path(argument).resolve()
    if not path.exists():
        return argument
    root = RESULTS.parents[1]
    return str(path.relative_to(root)) if path.is_relative_to(root) else "FOLDER" if path.is_dir() else "FILE"
