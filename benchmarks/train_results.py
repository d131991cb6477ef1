"""The results of `train` in one place: parts add their numbers and their text, runs are kept one by one.

`docs/results/train.json` holds the headline numbers, `runs` (by name, so that an interrupted part goes on) and
`sections` (text). `train.md` is made of the sections.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Callable
from importlib.metadata import version

from results import RESULTS

from trueup.core.files import write_atomic

Numbers = dict[str, object]
_FILE = RESULTS / "train.json"
_ORDER = ("target", "race", "overhead", "update", "kills", "rough", "adaptation", "adr")


def load() -> Numbers:
    """What is there already."""
    return json.loads(_FILE.read_text()) if _FILE.exists() else {"runs": {}, "sections": {}}


def each(part: str, keys: list[str], measure: Callable[[str], Numbers], *, fresh: bool) -> dict[str, Numbers]:
    """Measure every key that is not there yet; each is on disk as soon as it is done."""
    if fresh:
        _change(lambda record: record["runs"].pop(part, None))
    for key in keys:
        if key not in load()["runs"].get(part, {}):
            found = measure(key)
            print(
                part, key, json.dumps({k: v for k, v in found.items() if not isinstance(v, list)}), flush=True
            )
            _change(
                lambda record, key=key, found=found: record["runs"].setdefault(part, {}).update({key: found})
            )
    runs = load()["runs"].get(part, {})
    return {key: runs[key] for key in keys}


def merge(part: str, numbers: Numbers, text: str, command: str) -> None:
    """Add a part's headline numbers and its section, and write the page anew."""
    versions = f"Python {platform.python_version()}, mujoco {version('mujoco')}, torch {version('torch')}"
    machine = f"{os.cpu_count()} cores, {platform.machine()}, {versions}"

    def put(record: Numbers) -> None:
        record.update(numbers)
        record["sections"][part] = f"{text.strip()}\n\nMade by `{command}` on {machine}."

    record = _change(put)
    sections = record["sections"]
    names = [name for name in _ORDER if name in sections]
    page = "\n\n".join(["# Train: results", *(sections[name] for name in names)])
    write_atomic(RESULTS / "train.md", page + "\n")
    print(json.dumps({name: value for name, value in record.items() if name not in ("runs", "sections")}))


def _change(change: Callable[[Numbers], object]) -> Numbers:
    record = load()
    change(record)
    write_atomic(_FILE, json.dumps(record, indent=1) + "\n")
    return record


def table(head: tuple[str, ...], rows: list[tuple[object, ...]]) -> str:
    """A Markdown table."""
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows])
