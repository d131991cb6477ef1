"""Two rounds of the loop on hidden twins: is the second better than the first? Part `rounds` of `loop.py`.

The policy of every twin begins with the same shared part of a training: so many control steps of go2-velocity in the
model as it came, with the task's own ranges. Then each round goes on for `train_steps` in its own calibrated simulator.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from trueup.core.files import write_atomic
from trueup.loop.compare import Comparison, RoundFigures
from trueup.loop.run import run_loop
from trueup.loop.verbs import Budgets, LoopVerb

PRESETS = ("harmonic", "worn", "payload")
FIRST_SEED = 420  # of twins that nobody looked at while building
START_STEPS = 1_228_800
BUDGETS = Budgets(
    record_s=16.0, windows=8, tie="none", iterations=10, rungs="pd", train_steps=245_760, more_steps=614_400, nenv=512,
    trials=4, suite="locomotion_short", worlds=2, deploy_s=8.0, second="none", save_s=15.0,
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Row:
    """One twin: what both rounds came to; None where a round did not reach the last rung of the ladder.

    better   error or falls lower, the other no higher, as plain numbers; verdict: the same beyond what chance does
    found    first cause that the diagnosis of round 1 named
    """

    twin: str
    falls: tuple[int | None, int | None]
    runs: int
    error: tuple[float | None, float | None]
    change: float | None
    low: float | None
    high: float | None
    verdict: str
    found: str
    cpu_minutes: float

    @property
    def better(self) -> bool:
        first, second = self.falls
        if first is None or second is None or self.change is None:
            return first is None and second is not None
        return (self.change < 0.0 and second <= first) or (second < first and self.change <= 0.0)


def shared_start(runs: Path) -> Path:
    """The common part of all trainings; goes on where it was stopped."""
    folder = runs / "start"
    words = ["--resume", folder] if (folder / "config.json").exists() else ["go2-velocity", "--out", folder]
    if not (folder / "policy").is_dir():
        how = ["--steps", START_STEPS, "--film-minutes", 0]
        subprocess.run([sys.executable, "-m", "trueup.cli", "train", *map(str, [*words, *how])], check=True)
    return folder


def twins(count: int) -> list[str]:
    """Presets in turn, each with another seed."""
    return [f"{PRESETS[k % len(PRESETS)]}-{FIRST_SEED + k}" for k in range(count)]


def asked_of(twin: str, workspace: Path, start: Path) -> LoopVerb:
    """Two rounds on a twin, the last one up to the robot."""
    preset, _, seed = twin.rpartition("-")
    return LoopVerb(
        robot="go2", driver=f"twin:{preset}?seed={seed}", workspace=workspace, start=start, threads=1, until="deploy",
        rounds=2, seed=int(seed) - FIRST_SEED, page=False, films=False,
    )  # fmt: skip


def run_row(twin: str, runs: Path, start: Path) -> Row:
    """Both rounds on a twin; a row that is on disk is read."""
    file = runs / "rounds" / f"{twin}.json"
    if not file.exists():
        asked = asked_of(twin, runs / "rounds" / twin, start)
        looped = run_loop(asked, lambda stage, what, seconds, line: None, budgets=BUDGETS)
        row = _row(twin, looped.figures, looped.comparison, _found(runs / "rounds" / twin), looped.workspace.path)
        write_atomic(file, json.dumps(asdict(row), indent=1) + "\n")
    found = json.loads(file.read_text())
    return Row(**found | {"falls": tuple(found["falls"]), "error": tuple(found["error"])})


def _row(twin: str, figures: dict[int, RoundFigures], found: Comparison | None, cause: str, space: Path) -> Row:
    first, second = figures.get(1), figures.get(2)
    cpu = sum(json.loads(one.read_text())["cpu_seconds"] for one in space.glob("round-*/*/times.json"))
    known = [one for one in (first, second) if one is not None]
    return Row(
        twin=twin, runs=max((one.runs for one in known), default=0), found=cause, cpu_minutes=cpu / 60.0,
        falls=(None if first is None else first.falls, None if second is None else second.falls),
        error=(None if first is None else first.error, None if second is None else second.error),
        change=None if found is None else found.change, low=None if found is None else found.low,
        high=None if found is None else found.high,
        verdict="last rung not reached" if found is None else found.verdict,
    )  # fmt: skip


def _found(space: Path) -> str:
    """What the diagnosis of the first round said."""
    file = space / "round-1" / "gap" / "result.json"
    causes = json.loads(file.read_text())["causes"] if file.exists() else []
    return causes[0]["name"] if causes else "nothing wrong"


def table(rows: list[Row]) -> str:
    """The rows as Markdown."""
    lines = [
        "| twin | falls 1 -> 2 | error 1 | error 2 | change, m/s (95 %) | better | beyond chance | cause in 1 |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for one in rows:
        change = "" if one.change is None else f"{one.change:+.3f} ({one.low:+.3f} to {one.high:+.3f})"
        falls = f"{_shown(one.falls[0])} -> {_shown(one.falls[1])} of {one.runs}"
        error = f"{_shown(one.error[0])} | {_shown(one.error[1])}"
        better = "yes" if one.better else "no"
        lines.append(f"| {one.twin} | {falls} | {error} | {change} | {better} | {one.verdict} | {one.found} |")
    return "\n".join(lines)


def _shown(value: float | None) -> str:
    return "not reached" if value is None else f"{value:.3f}" if isinstance(value, float) else str(value)
