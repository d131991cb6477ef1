"""The whole loop on hidden twins. Results: docs/results/loop.md and .json.

    python benchmarks/loop.py rounds --runs FOLDER [--count 10] [--twins harmonic-420,worn-421]
    python benchmarks/loop.py control --runs FOLDER --twins harmonic-420,worn-421
    python benchmarks/loop.py resumed --runs FOLDER [--kills 20]
    python benchmarks/loop.py demo --runs FOLDER
    python benchmarks/loop.py stages --workspace WORKSPACE

rounds    two rounds on each of ten twins (three presets): is the second better than the first?
control   what longer training alone is worth on some of these twins
resumed   a loop that is killed with kill -9 at random moments and started again: the same hashes of all artifacts?
stages    time of each stage of a workspace that is there
demo      `trueup loop` as `make demo` runs it: minutes to the page

Every row is kept in FOLDER and read from there when the benchmark runs again.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import tyro
from loop_control import control_table, run_control
from loop_kills import random_moments, run_and_kill
from loop_rounds import BUDGETS, START_STEPS, Row, run_row, shared_start, table, twins
from parts import LOOP
from parts import table as parts_table

from trueup.core.files import write_atomic
from trueup.loop.fingerprint import fingerprint
from trueup.loop.run import opened, standing
from trueup.loop.stages.act import WALKS
from trueup.loop.story import in_words
from trueup.loop.verbs import STAGES
from trueup.loop.workspace import Times, Workspace, read_manifest

KILL_SEED = 11


@dataclass(frozen=True, kw_only=True)
class BenchCfg:
    """What is measured."""

    part: tyro.conf.Positional[Literal["rounds", "control", "resumed", "demo", "stages"]]
    runs: Path = Path("runs/loop")
    """Workspaces and rows are kept here."""
    count: int = 10
    """Twins of `rounds`."""
    twins: tuple[str, ...] = ()
    """Run these twins only; of `rounds` no page is written then."""
    kills: int = 20
    robots: tuple[str, ...] = ("pendulum", "go2")
    """Whose loops are killed."""
    workspace: Path | None = None
    """Of `stages`."""
    ended: bool = False
    """Write the page of `rounds` from the rows that are there."""


def main(cfg: BenchCfg) -> None:
    os.environ["XDG_STATE_HOME"] = str(cfg.runs.resolve() / "sealed")  # truths of the twins; nothing here opens them
    numbers, text = _PARTS[cfg.part](cfg)
    if text:
        LOOP.merge(cfg.part, numbers, text, f"python benchmarks/loop.py {cfg.part}")


def rounds(cfg: BenchCfg) -> tuple[dict[str, object], str]:
    """Every twin in its own workspace."""
    start, names = shared_start(cfg.runs.resolve()), cfg.twins or tuple(twins(cfg.count))
    if cfg.ended:
        names = tuple(one for one in names if (cfg.runs / "rounds" / f"{one}.json").exists())
    rows = []
    for name in names:
        rows.append(run_row(name, cfg.runs.resolve(), start))
        print(json.dumps(asdict(rows[-1])), flush=True)
    if cfg.twins:
        return {}, ""
    return {"rounds_better": f"{sum(one.better for one in rows)} of {len(rows)}",
            "rounds_beyond_chance": f"{sum(one.verdict == 'better' for one in rows)} of {len(rows)}",
            "rounds": [asdict(one) for one in rows]}, rounds_text(rows)  # fmt: skip


def rounds_text(rows: list[Row]) -> str:
    """The section of the page."""
    better, sure = sum(one.better for one in rows), sum(one.verdict == "better" for one in rows)
    worse = sum(one.verdict in ("worse", "mixed") for one in rows)
    minutes = sum(one.cpu_minutes for one in rows) / max(1, len(rows))
    return f"""## Two rounds on hidden twins

Asked: the second round better than the first (velocity error or falls, the other no worse) on 8 of 10 twins. Found:
**{better} of {len(rows)}** by the plain numbers, {sure} beyond the 95 % interval of the paired runs, {worse} worse
beyond it or better in one thing and worse in the other.

A round on the robot is twelve runs of {BUDGETS.deploy_s:g} s with different commands; the error is the distance of the
base's velocity from the one asked for, by the robot's own leg odometry. Round 1: {BUDGETS.record_s:g} s in the air,
fit, training, gate, ladder of rungs, diagnosis. Round 2: another motion, squats that weigh the load, a fit led by the
diagnosis, and the policy goes on from round 1. All trainings share their beginning: {START_STEPS:,} control steps in
the model as it came, with the task's own ranges; round 1 adds {BUDGETS.train_steps:,}, round 2 {BUDGETS.more_steps:,}
({minutes:.1f} CPU minutes a twin with everything else). So a part of what round 2 gains is longer training.

{table(rows)}
"""


def control(cfg: BenchCfg) -> tuple[dict[str, object], str]:
    """Some of the twins again, without what round 1 found."""
    runs = cfg.runs.resolve()
    start = shared_start(runs)
    rows = [(run_row(one, runs, start), run_control(one, runs, start)) for one in cfg.twins]
    text = f"""## What longer training alone is worth

The policy of round 1 trained on for as many control steps as in round 2, but in the fit of round 1: nothing recorded,
weighed or diagnosed anew. Velocity error in m/s of the same twelve runs on the same twin; falls in the same order.

{control_table(rows)}
"""
    return {"control": [asdict(alone) for _, alone in rows]}, text


def resumed(cfg: BenchCfg) -> tuple[dict[str, object], str]:
    """For each robot one loop undisturbed, one that is killed; a robot that was measured is read."""
    numbers: dict[str, object] = {}
    lines = []
    for robot in cfg.robots:
        folder = cfg.runs.resolve() / f"kills-{robot}"
        whole, file = folder / "whole", folder / "result.json"
        if not file.exists():
            start = shared_start(cfg.runs.resolve()) if robot == "go2" else None
            run_and_kill(whole, robot, start, [])
            moments = random_moments(Workspace(whole), cfg.kills, KILL_SEED)
            ended = run_and_kill(folder / "killed", robot, start, moments)
            write_atomic(file, json.dumps(asdict(ended)))
        found, hashes, again = json.loads(file.read_text()), artifacts(whole), artifacts(folder / "killed")
        same = [key for key in hashes if again.get(key) == hashes[key]]
        where = ", ".join(sorted(set(found["stages"]) - {"between stages"}))
        other = ", ".join(sorted(set(hashes) - set(same))) or "none"
        lines.append(f"| {robot} | {len(found['stages'])} | {len(same)} of {len(hashes)} | {other} | {where} |")
        numbers |= {f"resumed_{robot}": f"{len(same)} of {len(hashes)}", f"kills_{robot}": len(found["stages"])}
    rows = "\n".join(lines)
    return (
        numbers,
        f"""## Killed and started again

A loop of tiny budgets on `twin:mild` (two rounds, every stage), once undisturbed and once killed with kill -9 at
moments spread at random over the time that its stages take, each time started again with the same command. Asked: the
same hash of every artifact, by stages. (The pendulum's task has no scenarios: its gate is left out, and recorded so.)

| robot | kills | artifacts of the same hash | others | killed in |
| --- | --- | --- | --- | --- |
{rows}
""",
    )


def artifacts(space: Path) -> dict[str, dict[str, str]]:
    """Of every stage the hashes of what it left, computed from the files that are there."""
    workspace, out = Workspace(space), {}
    for key in workspace.hashes():
        manifest = read_manifest(space / key)
        assert manifest is not None
        out[key] = {name: fingerprint(space / key / name) for name in manifest.outputs}
    return out


def demo(cfg: BenchCfg) -> tuple[dict[str, object], str]:
    """The command of `make demo` in a new workspace: minutes on the clock, and of all its processes."""
    space, file = cfg.runs.resolve() / "demo", cfg.runs.resolve() / "demo.json"
    if not file.exists():
        words = ["loop", "go2", "--driver", "twin:harmonic?seed=7", "--workspace", str(space)]
        began, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-m", "trueup.cli", *words], check=True)
        after, load = resource.getrusage(resource.RUSAGE_CHILDREN), os.getloadavg()
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        write_atomic(file, json.dumps({"wall": time.monotonic() - began, "cpu": cpu, "load": load}))
    found = json.loads(file.read_text())
    wall, cpu, load = found["wall"] / 60.0, found["cpu"] / 60.0, found["load"][1]
    looped = standing(opened(space))
    said = "" if looped.comparison is None else in_words(looped.comparison)
    runs = max((one.runs for one in looped.figures.values()), default=len(WALKS))
    if runs < len(WALKS):
        more = sum(Workspace(space).times(k, "deploy").seconds for k in looped.figures) * (len(WALKS) / runs - 1.0)
        said += f"\nRounds had {runs} runs then; the {len(WALKS)} that they have now take at most {more:.0f} s more."
    text = f"""## The demo

`make demo` on a fresh clone, after set-up: **{wall:.1f} minutes** on the clock to the page, asked at most 10;
{cpu:.1f} CPU minutes of all its processes together, {os.cpu_count()} cores, mean load {load:.1f}, its own included.
{said}
"""
    return {"demo_minutes": wall, "demo_cpu_minutes": cpu, "demo_load": load}, text


def stages(cfg: BenchCfg) -> tuple[dict[str, object], str]:
    """Time and processor time of every stage of a workspace that is there."""
    if cfg.workspace is None:
        raise SystemExit("stages: name a workspace of `trueup loop` with --workspace")
    space = Workspace(cfg.workspace)
    times = {key: space.times(int(key[6]), key[8:]) for key in space.hashes()}
    steps = {k: found.config["steps"] for k in space.rounds() if (found := space.manifest(k, "train")) is not None}
    pace = sum(steps.values()) / sum(times[f"round-{k}/train"].cpu_seconds for k in steps)
    rows = [(name, *(_seconds(times.get(f"round-{k}/{name}")) for k in space.rounds())) for name in STAGES]
    asked = " and ".join(f"{count:,}" for count in steps.values())
    text = f"""## What a round costs

Seconds on the clock, and processor seconds of all processes of a stage together, with {asked}
control steps of training in the rounds ({pace:,.0f} a processor second, the final assessment included):

{parts_table(("stage", *(f"round {k}" for k in space.rounds())), rows)}
"""
    return {"stage_seconds": {key: [one.seconds, one.cpu_seconds] for key, one in times.items()}}, text


def _seconds(times: Times | None) -> str:
    return "" if times is None else f"{times.seconds:.0f} ({times.cpu_seconds:.0f})"


_PARTS = {"rounds": rounds, "control": control, "resumed": resumed, "demo": demo, "stages": stages}


if __name__ == "__main__":
    main(tyro.cli(BenchCfg))
