"""What longer training alone is worth: the second round of a twin without anything that the first one found.

The policy of round 1 goes on for as many control steps as in round 2, but in the fit of round 1; then the same runs on
the same robot. Part `control` of `loop.py`, which needs the twins' workspaces of part `rounds`.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from loop_rounds import BUDGETS, Row, asked_of

from trueup.core.files import write_atomic
from trueup.loop.compare import compare, round_figures
from trueup.loop.context import Context
from trueup.loop.run import standing
from trueup.loop.stage import StageCommand
from trueup.loop.stages.act import deploy
from trueup.loop.stages.learn import BUNDLE, train
from trueup.loop.workspace import Workspace


@dataclass(frozen=True, kw_only=True)
class Control:
    """Falls and error (m/s) on the robot after longer training alone, and its change against round 1."""

    twin: str
    falls: int | None
    runs: int
    error: float | None
    change: float | None


def run_control(twin: str, runs: Path, start: Path) -> Control:
    """Train on in the fit of round 1 and deploy; a row that is on disk is read."""
    file = runs / "control" / f"{twin}.json"
    if not file.exists():
        first, space = runs / "rounds" / twin, runs / "control" / twin
        _link(space / "round-1", first / "round-1")
        _link(space / "round-2" / "calibrate", first / "round-1" / "calibrate")
        loop = Context(asked=asked_of(twin, space, start), budgets=BUDGETS, workspace=Workspace(space))
        _run(train(loop, 2).commands(_new(loop.folder(2, "train"))))
        verified = _new(loop.folder(2, "verify"))
        shutil.copytree(loop.folder(2, "train") / BUNDLE, verified / BUNDLE)
        _run(deploy(loop, 2).commands(_new(loop.folder(2, "deploy"))))
        figures = round_figures(loop.robot, loop.folder(2, "deploy"), BUDGETS.deploy_s)
        before = standing(Context(asked=asked_of(twin, first, start), budgets=BUDGETS, workspace=Workspace(first)))
        found = compare(before.figures.get(1), figures)
        row = Control(
            twin=twin, runs=0 if figures is None else figures.runs, falls=None if figures is None else figures.falls,
            error=None if figures is None else figures.error, change=None if found is None else found.change,
        )  # fmt: skip
        write_atomic(file, json.dumps(asdict(row), indent=1) + "\n")
    return Control(**json.loads(file.read_text()))


def control_table(rows: Sequence[tuple[Row, Control]]) -> str:
    """Both second rounds beside the first."""
    lines = [
        "| twin | round 1 | longer training alone | round 2 | falls |",
        "| --- | --- | --- | --- | --- |",
    ]
    for row, alone in rows:
        errors = " | ".join(
            "not reached" if one is None else f"{one:.3f}" for one in (row.error[0], alone.error, row.error[1])
        )
        falls = " / ".join("-" if one is None else str(one) for one in (row.falls[0], alone.falls, row.falls[1]))
        lines.append(f"| {row.twin} | {errors} | {falls} of {alone.runs} |")
    return "\n".join(lines)


def _new(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def _link(place: Path, target: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.unlink(missing_ok=True)
    place.symlink_to(target, target_is_directory=True)


def _run(commands: Sequence[StageCommand]) -> None:
    for command in commands:
        code = subprocess.run([sys.executable, "-m", *command.words], stdout=subprocess.DEVNULL).returncode
        if code in command.last:
            return
        if code not in command.ok:
            raise SystemExit(f"failed with exit code {code}: {' '.join(command.words)}")
