"""Is the built-in go2 the robot, and would its policy do on one? Results: docs/results/true.md and .json.

    python benchmarks/true.py zoo --recordings FOLDER     open-loop error of zoo robots on motion that was not fitted
    python benchmarks/true.py foreign --policies FOLDER   a policy that others run on real go2s, in our go2
    python benchmarks/true.py ours --policies FOLDER      three seeds of go2-velocity beside it
    python benchmarks/true.py varied --policies FOLDER    the same under randomisation and pushes
    python benchmarks/true.py twins --policies FOLDER     the same on twins
    python benchmarks/true.py b2                          another quadruped from `robot init` and `task init` alone

FOLDER of policies holds `go2_robot_lab/` (ONNX and config.yaml of rl_sar). Trainings are kept under --runs, go on if
they were stopped, and are those of `train.py target` if it ran before.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import tyro
from on_twin import walk_on_twins
from parts import TRUE, Numbers, table
from train_hard import ASSESS_SEED, TASK, continued
from true_b2 import b2
from true_zoo import zoo

from trueup.policy.runner import Policy, PolicyRunner
from trueup.tasks.env import EnvCfg, TaskEnv
from trueup.train.config import Budget, RunCfg, default_learner
from trueup.train.folder import RunFolder
from trueup.train.play.assess import Assessment, assess
from trueup.train.play.witness import open_witness
from trueup.train.train import run_env

Part = Literal["zoo", "foreign", "ours", "varied", "twins", "b2"]
WITNESS = "go2_robot_lab"
EPISODES = 100
PRESETS = ("mild", "harmonic", "worn", "payload", "pace")
TWIN_SEEDS = (71, 72)
HEAD = (
    "policy",
    "error m/s",
    "turn rad/s",
    "falls of 100",
    "power W",
    "shuffling",
    "swing cm",
    "drift at rest cm/s",
    "joint speed at rest rad/s",
)


@dataclass(frozen=True, kw_only=True)
class BenchCfg:
    """What is measured, where others' recordings and policies are, and how long a training takes."""

    part: tyro.conf.Positional[Part]
    recordings: Path | None = None
    policies: Path | None = None
    seeds: tuple[int, ...] = (0, 1, 2)
    minutes: float = 10.0
    runs: Path = Path("runs/benchmark")
    fresh: bool = False

    @property
    def witness(self) -> Path:
        if self.policies is None:
            raise SystemExit(f"name the folder that holds {WITNESS}/: --policies FOLDER")
        return self.policies / WITNESS


def main(cfg: BenchCfg) -> None:
    parts: dict[Part, Callable[[BenchCfg], tuple[Numbers, str]]] = {
        "zoo": zoo,
        "foreign": foreign,
        "ours": ours,
        "varied": varied,
        "twins": twins,
        "b2": b2,
    }
    numbers, text = parts[cfg.part](cfg)
    arguments = [
        "FOLDER" if before in ("--recordings", "--policies", "--runs") else argument
        for before, argument in zip(["", *sys.argv[1:]], sys.argv[1:], strict=False)
    ]
    TRUE.merge(cfg.part, numbers, text, " ".join(["python", "benchmarks/true.py", *arguments]))


# --- policies in our go2 ---
def foreign(cfg: BenchCfg) -> tuple[Numbers, str]:
    found = _foreign_once(cfg, varied=False)
    text = f"""## A policy of others in our go2

`{WITNESS}` (rl_sar, trained in Isaac Lab on a GPU, run on real go2s) at its own gains, rate and observations, read from
its own `config.yaml`: {EPISODES} episodes of 20 s, the task's whole range of commands, nominal robot, no pushes.

{table(HEAD, [_row(WITNESS, found)])}
"""
    return {"foreign_error": found["error"], "foreign_falls": found["falls"], "foreign_power_w": found["power_w"]}, text


def ours(cfg: BenchCfg) -> tuple[Numbers, str]:
    theirs = _foreign_once(cfg, varied=False)
    runs = TRUE.each("ours", [str(seed) for seed in cfg.seeds], lambda seed: _ours(cfg, int(seed)), fresh=cfg.fresh)
    rows = [_row(f"go2-velocity, seed {seed}", run["nominal"]) for seed, run in runs.items()]
    found = [run["nominal"] for run in runs.values()]
    took = ", ".join(f"{run['minutes']:.1f} min, {run['steps'] / 1e6:.1f} M steps" for run in runs.values())
    text = f"""## go2-velocity after {cfg.minutes:g} minutes

{len(runs)} seeds on two cores ({took}), measured as above on episodes that training never drew.
Rewards were tuned on seeds 0 to 3, these among them; other seeds were not tried.

{table(HEAD, [*rows, _row(WITNESS, theirs)])}
"""
    numbers = {
        "ours_error": max(row["error"] for row in found),
        "ours_turn_error": max(row["turn_error"] for row in found),
        "ours_falls": max(row["falls"] for row in found),
        "power_ratio": max(row["power_w"] for row in found) / theirs["power_w"],
        "shuffling": max(row["shuffling"] for row in found),
        "swing_m": min(row["swing_m"] for row in found),
    }
    return numbers, text


def varied(cfg: BenchCfg) -> tuple[Numbers, str]:
    theirs = _foreign_once(cfg, varied=True)
    runs = TRUE.each("ours", [str(seed) for seed in cfg.seeds], lambda seed: _ours(cfg, int(seed)), fresh=False)
    rows = [_row(f"go2-velocity, seed {seed}", run["varied"]) for seed, run in runs.items()]
    text = f"""## Under randomisation and pushes

The task's whole ranges (masses, friction, gains, delays to 20 ms, encoder offsets, ...) and pushes; sensor noise as in
training. `{WITNESS}` was trained with ranges of its own.

{table(HEAD, [*rows, _row(WITNESS, theirs)])}
"""
    found = [run["varied"] for run in runs.values()]
    return {"varied_falls": max(row["falls"] for row in found), "varied_falls_foreign": theirs["falls"]}, text


def twins(cfg: BenchCfg) -> tuple[Numbers, str]:
    runs = {str(seed): _folder(cfg, seed) for seed in cfg.seeds}
    env, _ = _open_witness(cfg, 1, varied=False)

    def walk(key: str) -> Numbers:
        name, preset, twin = key.split()
        if name == WITNESS:
            spec, make = env.policy_spec(), lambda n: _open_witness(cfg, n, varied=False)[1]
        else:
            folder = runs[name]
            spec = run_env(folder.config(), 1, threads=1).policy_spec()
            make = lambda n: PolicyRunner(folder.newest_policy(), n)  # noqa: E731
        walked = walk_on_twins(make, spec, preset, [int(twin)])
        return {"error": walked.error, "falls": walked.falls, "power_w": walked.power}

    names = [*runs, WITNESS]
    cases = [f"{preset} {seed}" for preset in PRESETS for seed in TWIN_SEEDS]
    found = TRUE.each("twins", [f"{n} {case}" for n in names for case in cases], walk, fresh=cfg.fresh)
    rows = []
    for name in names:
        mine = [found[f"{name} {case}"] for case in cases]
        means = {key: float(np.mean([row[key] for row in mine])) for key in ("error", "power_w")}
        title = name if name == WITNESS else f"go2-velocity, seed {name}"
        rows.append((title, f"{means['error']:.3f}", sum(row["falls"] for row in mine), f"{means['power_w']:.0f}"))
    text = f"""## On {len(cases)} twins

Hidden physics behind the robot's own interface: presets {", ".join(PRESETS)}, seeds
{", ".join(map(str, TWIN_SEEDS))}, one episode of 20 s each, commands of the task; policies see what the twin reports.

{table(("policy", "error m/s", f"falls of {len(cases)}", "power W"), rows)}
"""
    return {"twin_falls": max(int(row[2]) for row in rows[:-1]), "twin_falls_foreign": int(rows[-1][2])}, text


# --- inside ---
def _ours(cfg: BenchCfg, seed: int) -> Numbers:
    folder = _folder(cfg, seed)
    facts = folder.newest().facts
    return {
        "minutes": facts["elapsed_s"] / 60,
        "steps": facts["steps"],
        "nominal": _record(_assess_run(folder, varied=False)),
        "varied": _record(_assess_run(folder, varied=True)),
    }


def _folder(cfg: BenchCfg, seed: int) -> RunFolder:
    """A training of `train.py target`, if it was made; else one of its own."""
    run = RunCfg(task=TASK, seed=seed, learner=default_learner(TASK))
    return continued(run, cfg.runs / f"target-{seed}", Budget(minutes=cfg.minutes, save_s=60.0))


def _assess_run(folder: RunFolder, *, varied: bool) -> Assessment:
    from dataclasses import replace

    run = replace(folder.config(), seed=ASSESS_SEED)
    env = run_env(run, EPISODES, stagger=False, randomize=varied, pushes=varied)
    return assess(env, PolicyRunner(folder.newest_policy(), EPISODES), env.task.score)


def _foreign_once(cfg: BenchCfg, *, varied: bool) -> Numbers:
    def one(key: str) -> Numbers:
        env, policy = _open_witness(cfg, EPISODES, varied=varied)
        return _record(assess(env, policy, env.task.score))

    key = "varied" if varied else "nominal"
    return TRUE.each(f"foreign {key}", [key], one, fresh=cfg.fresh and cfg.part in ("foreign", "varied"))[key]


def _open_witness(cfg: BenchCfg, nenv: int, *, varied: bool) -> tuple[TaskEnv, Policy]:
    how = EnvCfg(nenv=nenv, seed=ASSESS_SEED, randomize=varied, pushes=varied, stagger=False)
    return open_witness(cfg.witness / "policy.onnx", cfg.witness / "config.yaml", TASK, how)


def _record(found: Assessment) -> Numbers:
    return {
        "error": found.error,
        "turn_error": found.turn_error,
        "falls": found.falls,
        "power_w": found.power_w,
        "shuffling": found.metrics["flag/shuffling"],
        "swing_m": found.swing_m,
        "rest_speed": found.rest_speed,
        "rest_joint_speed": found.rest_joint_speed,
    }


def _row(name: str, found: Numbers) -> tuple[object, ...]:
    return (
        name,
        f"{found['error']:.3f}",
        f"{found['turn_error']:.3f}",
        found["falls"],
        f"{found['power_w']:.0f}",
        f"{found['shuffling']:.3f}",
        f"{100 * found['swing_m']:.1f}",
        f"{100 * found['rest_speed']:.1f}",
        f"{found['rest_joint_speed']:.2f}",
    )


if __name__ == "__main__":
    main(tyro.cli(BenchCfg))
