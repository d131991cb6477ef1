"""The results of `calibrate` in one place: parts add their numbers and their text, runs are kept one by one.

`docs/results/calibrate.json` holds the headline numbers, `runs` (every measured seed, so that an interrupted part goes
on) and `sections` (text). `calibrate.md` is made of the sections.
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
_FILE = RESULTS / "calibrate.json"
_ORDER = ("coverage", "invisible", "race", "honesty")


def load() -> Numbers:
    """What is there already."""
    return json.loads(_FILE.read_text()) if _FILE.exists() else {"runs": {}, "sections": {}}


def each(part: str, keys: list[str], measure: Callable[[str], Numbers], *, fresh: bool) -> dict[str, Numbers]:
    """Measure every key (a seed, or a case and a seed) that is not there yet; each is on disk as soon as it is done."""
    if fresh:
        _change(lambda record: record["runs"].pop(part, None))
    for key in keys:
        if key not in load()["runs"].get(part, {}):
            found = measure(key)
            print(
                part,
                key,
                json.dumps({k: v for k, v in found.items() if not isinstance(v, list | dict)}),
                flush=True,
            )
            _change(
                lambda record, key=key, found=found: record["runs"].setdefault(part, {}).update({key: found})
            )
    runs = load()["runs"].get(part, {})
    return {key: runs[key] for key in keys}


def merge(part: str, numbers: Numbers, text: str, command: str) -> None:
    """Add a part's headline numbers and its section, and write the page anew."""
    python, mujoco = platform.python_version(), version("mujoco")
    machine = f"{os.cpu_count()} cores, {platform.machine()}, Python {python}, mujoco {mujoco}"

    def put(record: Numbers) -> None:
        record.update(numbers)
        record["sections"][part] = f"{text.strip()}\n\nMade by `{command}` on {machine}."

    record = _change(put)
    sections = record["sections"]
    names = [name for name in _ORDER if name in sections] + sorted(set(sections) - set(_ORDER))
    page = "# Calibrate\n\n" + "\n\n".join(sections[name] for name in names) + "\n"
    write_atomic(RESULTS / "calibrate.md", page)
    print(text)
    print(json.dumps({"part": part, **numbers}))


def _change(change: Callable[[Numbers], object]) -> Numbers:
    """Read, change, write: other parts may have written meanwhile."""
    record = load()
    record.setdefault("runs", {})
    record.setdefault("sections", {})
    change(record)
    write_atomic(_FILE, json.dumps(record, indent=1) + "\n")
    return record
