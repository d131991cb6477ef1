"""Does a calibrated simulator train a better policy? Results: docs/results/transfer.md and .json.

    python benchmarks/transfer.py --runs FOLDER [--steps 2000000] [--only posterior,truth] [--twins harmonic-0,worn-0]

Nine hidden twins around the built-in go2 (harmonic, worn, payload; three seeds each) and a user who starts from a wrong
model (`transfer_worlds`). `go2-velocity` is trained for the same number of steps in six simulators and one more:

    nominal    the wrong model as it is
    ranges     the wrong model with the task's usual hand-set ranges
    estimate   the calibrated estimate, no spread on what was fitted; the task's ranges on what was not
    posterior  the calibrated posterior with the load that squats show; the task's ranges on what was not fitted
    air        the same without the squats (asked for by name only)
    learned    the same with the learned actuator
    truth      the twin's own truth as far as the simulator has it, in narrow ranges: the limit

Pushes, sensor noise, rewards and the curriculum are the task's own in all six. `nominal` and `ranges` know nothing of a
twin: they are trained once for each of three training seeds, and the twin of the same number judges them. Each policy
then walks on its twin, with commands that are the same for all policies.

One row is one (simulator, twin); it is on disk as soon as it is done, and trainings go on where they were killed.
"""

from __future__ import annotations

import math
import os
import shutil
import sys
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Literal

import tyro
from on_twin import walk_on_twins
from parts import TRANSFER, Numbers
from train_hard import continued
from transfer_page import CONDITIONS, longer_section, page
from transfer_worlds import TASK, World, air_errors, fitted, learned, public_go2, truth_world, weighed

from trueup.policy.runner import PolicyRunner
from trueup.train.config import Budget, RunCfg, default_learner
from trueup.train.folder import RunFolder
from trueup.train.train import assess_run, run_env

Condition = Literal["nominal", "ranges", "estimate", "air", "posterior", "learned", "truth"]
PRESETS = ("harmonic", "worn", "payload")
FIRST_SEED = 260  # of twins; 160 was looked at while building
ALIKE: tuple[Condition, ...] = ("ranges", "nominal")  # for every twin
OWN: tuple[Condition, ...] = ("posterior", "truth", "learned", "estimate")
COMMANDS = 2600  # seed of the commands on twins
PLAIN_TASK = f"{Path(__file__).resolve().parent / 'transfer_tasks.py'}:plain"


@dataclass(frozen=True, kw_only=True)
class BenchCfg:
    """What is measured."""

    runs: Path = Path("runs/transfer")
    """Recordings, fits and trainings are kept here."""
    steps: int = 2_000_000
    seeds: int = 3
    """Twins of each preset, and training seeds."""
    episodes: int = 40
    """On the twin, of 20 s each."""
    nenv: int = 512
    threads: int = 2
    only: tuple[Condition, ...] = ()
    """None named: all."""
    twins: tuple[str, ...] = ()
    """Such as harmonic-0; none named: all."""
    longer: bool = False
    """Go on with the trainings named by `only` and `twins` to twice the steps, in copies: had they ended?"""
    fresh: bool = False
    """Judge again what is there already; trainings stay."""


def main(cfg: BenchCfg) -> None:
    cfg = replace(cfg, runs=cfg.runs.resolve())
    os.environ["XDG_STATE_HOME"] = str(cfg.runs / "sealed")  # opened by `truth_world` alone
    if cfg.longer:
        longer(cfg)
        return
    TRANSFER.each("transfer", [], partial(measure, cfg), fresh=cfg.fresh)
    for key in row_keys(cfg):
        TRANSFER.each("transfer", [key], partial(measure, cfg), fresh=False)
        publish(cfg)


def row_keys(cfg: BenchCfg) -> list[str]:
    """`CONDITION TWIN`, what all comparisons need first."""
    twins = [f"{preset}-{k}" for k in range(cfg.seeds) for preset in PRESETS]
    rows = [(name, twin) for name in ALIKE for twin in twins]
    rows += [(name, twin) for twin in twins for name in (*OWN, *({"air"} & set(cfg.only)))]
    return [
        f"{name} {twin}"
        for name, twin in rows
        if (not cfg.only or name in cfg.only) and (not cfg.twins or twin in cfg.twins)
    ]


def publish(cfg: BenchCfg) -> None:
    """Write the page from all rows that there are."""
    runs = TRANSFER.load()["runs"]["transfer"]  # type: ignore[index]
    numbers, text = page(runs, cfg.steps, cfg.episodes)
    arguments = [
        "FOLDER" if before == "--runs" else argument
        for before, argument in zip(["", *sys.argv[1:]], sys.argv[1:], strict=False)
    ]
    TRANSFER.merge("transfer", numbers, text, " ".join(["python", "benchmarks/transfer.py", *arguments]))


def longer(cfg: BenchCfg) -> None:
    """Rows whose training had not ended, after twice the steps."""
    TRANSFER.each("longer", row_keys(cfg), partial(measure, replace(cfg, steps=2 * cfg.steps)), fresh=cfg.fresh)
    runs = TRANSFER.load()["runs"]
    text = longer_section(runs["transfer"], runs["longer"], cfg.episodes)  # type: ignore[index]
    TRANSFER.merge("longer", {}, text, "python benchmarks/transfer.py --runs FOLDER --longer --only ... --twins ...")


# --- one row ---
def measure(cfg: BenchCfg, key: str) -> Numbers:
    """Train in one simulator, or take what is trained, and walk on the twin."""
    name, twin = key.split()
    world = world_of(cfg, twin)
    seed = int(twin.rsplit("-", 1)[1])
    assert name in CONDITIONS
    folder = trained(cfg, name, world, seed)  # type: ignore[arg-type]
    spec = run_env(folder.config(), 1, threads=1).policy_spec()
    walked = walk_on_twins(
        lambda n: PolicyRunner(folder.newest_policy(), n),
        spec,
        world.preset,
        [world.seed] * cfg.episodes,
        command_seed=COMMANDS,
    )
    home = assess_run(folder)
    return {
        "error": walked.error,
        "falls": walked.falls,
        "power": walked.power,
        "home_error": home.error,
        "home_falls": home.falls,
        "steps": folder.newest().facts["steps"],
        "minutes": folder.newest().facts["elapsed_s"] / 60.0,
        "outside": folder.read_metrics()[-1].get("actuator_outside"),
        "each": [_plain(asdict(episode)) for episode in walked.each],
    } | (air_errors(world) if name not in ALIKE else {})


def _plain(episode: dict[str, float]) -> Numbers:
    """Rounded, and nothing where a robot fell at once."""
    return {k: v if isinstance(v, bool) else round(v, 5) if math.isfinite(v) else None for k, v in episode.items()}


def world_of(cfg: BenchCfg, twin: str) -> World:
    preset, number = twin.rsplit("-", 1)
    return World(preset=preset, seed=FIRST_SEED + int(number), folder=cfg.runs / twin)


def trained(cfg: BenchCfg, name: Condition, world: World, seed: int) -> RunFolder:
    path = cfg.runs / f"{name}-{seed}" if name in ALIKE else world.folder / f"run-{name}"
    if cfg.longer:
        path, short = path.with_name(path.name + "-longer"), path
        if short.exists() and not path.exists():
            shutil.copytree(short, path)
    run = run_cfg(cfg, name, world, seed)
    return continued(run, path, Budget(steps=cfg.steps, save_s=60.0))


def run_cfg(cfg: BenchCfg, name: Condition, world: World, seed: int) -> RunCfg:
    """The training of one condition."""
    public_go2(world.public)
    plain = RunCfg(
        task=TASK, robot=str(world.public), seed=seed, nenv=cfg.nenv, threads=cfg.threads, learner=default_learner(TASK)
    )
    match name:
        case "nominal":
            return replace(plain, task=PLAIN_TASK)
        case "ranges":
            return plain
        case "estimate":
            return replace(plain, params=str(weighed(world, fitted(world))), posterior=False)
        case "air":
            return replace(plain, params=str(fitted(world)))
        case "posterior":
            return replace(plain, params=str(weighed(world, fitted(world))))
        case "learned":
            base, net = learned(world)
            return replace(plain, params=str(weighed(world, base)), actuator=str(net))
        case "truth":
            truth = str(truth_world(world))
            return replace(plain, task=PLAIN_TASK, robot=truth, params=truth)


if __name__ == "__main__":
    main(tyro.cli(BenchCfg))
