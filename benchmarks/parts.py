"""Results that are made in parts: each adds its numbers and its text, and runs are kept one by one.

`docs/results/NAME.json` holds the headline numbers, `runs` (every measured key, so that an interrupted part goes on)
and `sections` (text). `NAME.md` is made of the sections.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from results import RESULTS

from trueup.core.files import write_atomic

Numbers = dict[str, object]


@dataclass(frozen=True, kw_only=True)
class Parts:
    """The results of one benchmark; `order` is that of the sections, `packages` are named beside the machine."""

    name: str
    title: str
    order: tuple[str, ...]
    packages: tuple[str, ...] = ("mujoco",)

    @property
    def _file(self) -> Path:
        return RESULTS / f"{self.name}.json"

    def load(self) -> Numbers:
        """What is there already."""
        return json.loads(self._file.read_text()) if self._file.exists() else {"runs": {}, "sections": {}}

    def each(self, part: str, keys: list[str], measure: Callable[[str], Numbers], *, fresh: bool) -> dict[str, Numbers]:
        """Measure every key (a seed, say) that is not there yet; each is on disk as soon as it is done."""
        if fresh:
            self._change(lambda record: [record["runs"].get(part, {}).pop(key, None) for key in keys])
        for key in keys:
            if key not in self.load()["runs"].get(part, {}):
                found = measure(key)
                plain = {k: v for k, v in found.items() if not isinstance(v, list | dict)}
                print(part, key, json.dumps(plain), flush=True)
                self._keep(part, key, found)
        runs = self.load()["runs"].get(part, {})
        return {key: runs[key] for key in keys}

    def merge(self, part: str, numbers: Numbers, text: str, command: str) -> None:
        """Add a part's headline numbers and its section, and write the page anew."""
        versions = [f"Python {platform.python_version()}", *(f"{p} {version(p)}" for p in self.packages)]
        machine = ", ".join([f"{os.cpu_count()} cores", platform.machine(), *versions])

        def put(record: Numbers) -> None:
            record.update(numbers)
            record["sections"][part] = f"{text.strip()}\n\nMade by `{command}` on {machine}."

        sections = self._change(put)["sections"]
        page = [f"# {self.title}", *(sections[name] for name in self.order if name in sections)]
        write_atomic(RESULTS / f"{self.name}.md", "\n\n".join(page) + "\n")
        print(text)
        print(json.dumps({"part": part, **numbers}))

    def _keep(self, part: str, key: str, found: Numbers) -> None:
        self._change(lambda record: record["runs"].setdefault(part, {}).update({key: found}))

    def _change(self, change: Callable[[Numbers], object]) -> Numbers:
        """Read, change, write: other parts may have written meanwhile."""
        record = self.load()
        change(record)
        write_atomic(self._file, json.dumps(record, indent=1) + "\n")
        return record


def table(head: tuple[str, ...], rows: list[tuple[object, ...]]) -> str:
    """A Markdown table."""
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows])


CALIBRATE = Parts(
    name="calibrate", title="Calibrate", order=("coverage", "invisible", "verdicts", "race", "again", "honesty")
)
TRAIN = Parts(
    name="train",
    title="Train: results",
    order=("target", "race", "overhead", "update", "kills", "rough", "adaptation", "adr"),
    packages=("mujoco", "torch"),
)
ACTUATORS = Parts(
    name="actuators",
    title="Actuator models: results",
    order=("harmonic", "drift", "clean", "real", "supervised", "methods", "speed"),
    packages=("mujoco", "torch"),
)
TRUE = Parts(
    name="true",
    title="A true go2: results",
    order=("zoo", "foreign", "ours", "varied", "twins", "b2"),
    packages=("mujoco", "torch"),
)
TRANSFER = Parts(
    name="transfer",
    title="What a calibration is worth: results",
    order=("transfer", "longer", "outside"),
    packages=("mujoco", "torch"),
)
PROVE = Parts(
    name="prove",
    title="Prove: results",
    order=("gate", "prediction", "foreign", "g1", "engines", "sim2sim", "sim2sim_ours", "refused", "suite"),
    packages=("mujoco", "onnxruntime", "sapien"),
)
DEPLOY = Parts(
    name="deploy",
    title="Deploy: results",
    order=(
        "start",
        "ladder",
        "velocity",
        "faults",
        "plain",
        "sample",
        "false_trips",
        "timing",
        "timing_loaded",
        "preflight",
        "wiggle",
        "recording",
    ),
)
HUMANOID = Parts(
    name="humanoid",
    title="Humanoid: results",
    order=(
        *("tracking", "walking", "witnesses", "retarget", "checked"),
        *("headroom", "delta", "analytic", "data", "forms", "feedforward", "tuned", "closed"),
    ),
    packages=("mujoco", "torch", "mink"),
)
LOOP = Parts(
    name="loop",
    title="Loop: results",
    order=("rounds", "control", "resumed", "demo", "stages", "diagnosis"),
    packages=("mujoco", "torch"),
)
