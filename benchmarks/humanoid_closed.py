"""Closed loop: a policy learns a little more in different worlds, then acts on the target without them.

    python benchmarks/humanoid_closed.py --runs F [--targets NAME ...] [--arms ARM ...] [--seeds K ...]
    python benchmarks/humanoid_closed.py --runs F --by feedforward+ppo [--targets NAME ...] [--arms ARM ...] [--steps N]
    python benchmarks/humanoid_closed.py --runs F --by ppo [--targets NAME ...] [--arms ARM ...] [--steps N]
    python benchmarks/humanoid_closed.py --runs F --by ppo --home [--targets NAME ...] [--steps N]

It learns a feedforward (`trueup policy feedforward`), by PPO (`trueup train --from`), or the one after the other.
`--home`: how far a policy is from its motion in the simulator that it was trained in, before and after.

Stands on what `humanoid_delta.py` recorded and learned in F. Every arm has the same learner, its defaults and the same
start; `vanilla` is the policy as it came. Arms that know nothing of the target (`nominal`, `noise`, `ranges`) learn
once for all targets. Rows are kept one by one, and what was learned in F.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Literal

import numpy as np
import tyro
from humanoid_closed_page import sections
from humanoid_delta import TARGETS, BenchCfg, identified_of, policy_of
from humanoid_targets import Act, roll
from parts import HUMANOID, Numbers

import trueup as tu
from trueup.calibrate.delta.beside.baselines import ActionNoise
from trueup.core.arrays import FloatArray
from trueup.policy.bundle.bundle import PolicyBundle, load_bundle
from trueup.policy.mlp import load_policy
from trueup.policy.runner import PolicyRunner
from trueup.tasks.env import EnvCfg, TaskEnv
from trueup.tasks.load import load_task
from trueup.tasks.task import Task
from trueup.tasks.terms.tracking import near_error
from trueup.train.bundles.feedforward import learn_feedforward
from trueup.train.bundles.verbs import FeedforwardVerb
from trueup.train.bundles.warm import warm_net
from trueup.train.folder import RunFolder
from trueup.train.play.assess import ASSESS_SEED, assess
from trueup.world.actuators.target_stages import TargetStage
from trueup.world.batch import BatchSim
from trueup.world.replay.replay import Prepare

Arm = Literal["vanilla", "nominal", "noise", "ranges", "published", "identified", "delta", "both"]
_OF_TARGET = ("published", "identified", "delta", "both")  # arms that learn from the target's logs
_EPISODES = 3
_FEEDFORWARD_EPISODES = 4
_COPIES = 8


@dataclass(frozen=True)
class ClosedCfg:
    runs: Path
    targets: tuple[str, ...] = tuple(name for name in TARGETS if not name.startswith("ideal"))
    arms: tuple[Arm, ...] = ("vanilla", "nominal", "noise", "ranges", "identified", "delta")
    by: Literal["feedforward", "ppo", "feedforward+ppo"] = "feedforward"
    seeds: tuple[int, ...] = (0,)
    steps: int = 600_000  # of PPO
    nenv: int = 256
    seed: int = 0  # of PPO
    fresh: bool = False
    home: bool = False
    label: str = ""  # of a policy of our own (`humanoid_delta.py`)


def measure(cfg: ClosedCfg, target: str, arm: Arm, seed: int = 0) -> Numbers:
    """Let an arm learn, and act on the target."""
    opened, task = policy_of(BenchCfg(part="page", runs=cfg.runs))
    act: Act = opened.runner(1).act
    spec, trained = opened.passport.policy, {"steps": 0, "seconds": 0.0}
    episodes = _EPISODES
    if cfg.by != "ppo":
        episodes = _FEEDFORWARD_EPISODES
    if arm != "vanilla" and cfg.by != "ppo":
        bundle, trained = _fed(cfg, task, target, arm, seed)
        act, spec = bundle.runner(1).act, bundle.passport.policy
    if arm != "vanilla" and cfg.by != "feedforward":
        run, more = _trained(cfg, task.name, target, arm)
        act = load_policy(RunFolder(run).policy).act
        both = ("steps", "seconds") if cfg.by == "feedforward+ppo" else ()
        trained = {**more, **{name: more[name] + trained[name] for name in both}}
    rolls = [roll(TARGETS[target], act, spec, task, k) for k in range(episodes)]
    lasted = [one.seconds if one.fell_s is not None else task.rates.episode_s for one in rolls]
    return {
        "mpjpe_mm": float(np.mean([one.mpjpe_mm for one in rolls])),
        "worst_mm": float(max(one.mpjpe_mm for one in rolls)),
        "global_mm": float(np.mean([one.global_mm for one in rolls])),
        "falls": sum(one.fell_s is not None for one in rolls),
        "lasted_s": float(np.mean(lasted)),
        "episodes": episodes,
        **trained,
    }


def _fed(cfg: ClosedCfg, task: Task, target: str, arm: Arm, seed: int) -> tuple[PolicyBundle, Numbers]:
    """The policy with a feedforward that was learned in the world of an arm, and what that took."""
    whose = target if arm in _OF_TARGET else "all"
    out = cfg.runs / "fed" / f"{whose}-{arm}-{seed}.bundle"
    took = out.with_suffix(".json")
    if not took.exists() or cfg.fresh:
        began = time.process_time()
        delta, stages = _world(cfg, target, arm)
        verb = FeedforwardVerb(
            cfg.runs / "dance.bundle",
            out=out,
            task=task.name,
            delta=delta,
            randomize=arm == "ranges",
            threads=1,
            seed=seed,
        )
        found = learn_feedforward(verb, stages=stages)
        home = {"before_mm": 1e3 * found.rounds[0].near_m, "after_mm": 1e3 * found.rounds[found.kept].near_m}
        seconds = time.process_time() - began
        took.write_text(json.dumps({"steps": found.steps, "seconds": seconds, "kept": found.kept, **home}))
    return load_bundle(out), json.loads(took.read_text())


def _world(cfg: ClosedCfg, target: str, arm: Arm) -> tuple[Path | None, tuple[TargetStage, ...]]:
    """The delta action and the stages of an arm's simulator."""
    if arm == "noise":
        return None, (ActionNoise(_noise(cfg), cfg.seed),)
    stages: tuple[TargetStage, ...] = ()
    if arm in ("identified", "both", "published"):
        found = identified_of(BenchCfg(part="methods", runs=cfg.runs), target, published=arm == "published")
        assert found.prepare is not None
        stages = (Prepared(found.prepare),)
    folder = {"delta": "delta", "both": "both"}.get(arm)
    return None if folder is None else cfg.runs / folder / target, stages


def _trained(cfg: ClosedCfg, name: str, target: str, arm: Arm) -> tuple[Path, Numbers]:
    """The run of an arm, and what it took."""
    whose = target if arm in _OF_TARGET else "all"
    group = "closed" if cfg.by == "ppo" else "tuned"
    run = cfg.runs / group / f"{whose}-{arm}-{cfg.steps}-{cfg.seed}"
    took = run / "took.json"
    if not took.exists() or cfg.fresh:
        began = time.process_time()
        _train(cfg, name, target, arm, run)
        took.write_text(json.dumps({"steps": cfg.steps, "seconds": time.process_time() - began}))
    return run, json.loads(took.read_text())


def _train(cfg: ClosedCfg, name: str, target: str, arm: Arm, run: Path) -> None:
    task = load_task(name)
    delta, stages = _world(cfg, target, arm)
    start = cfg.runs / "dance.bundle"
    if cfg.by == "feedforward+ppo":
        start = _fed(cfg, task, target, arm, cfg.seed)[0].path
    tu.train(
        replace(task, target_stages=stages),
        out=run,
        start=start,
        steps=cfg.steps,
        nenv=cfg.nenv,
        threads=1,
        seed=cfg.seed,
        randomize=arm == "ranges",
        film_minutes=0.0,
        delta=delta,
    )


def measure_home(cfg: ClosedCfg, target: str, arm: Arm) -> Numbers:
    """Distance from a motion that stands where the robot does, in the world of an arm: vanilla, and trained in it."""
    _, task = policy_of(BenchCfg(part="page", runs=cfg.runs))
    run, _ = _trained(cfg, task.name, target, arm)
    delta = cfg.runs / "delta" / target if arm == "delta" else None
    made = replace(task, terminations={}, metrics={**task.metrics, "near": near_error})
    env = EnvCfg(nenv=_COPIES, threads=1, seed=ASSESS_SEED, randomize=False, pushes=False, stagger=False, delta=delta)
    nets = {"before": warm_net(cfg.runs / "dance.bundle"), "after": RunFolder(run).newest_policy()}
    out: Numbers = {}
    for name, net in nets.items():
        world = TaskEnv(made, env)
        found = assess(world, PolicyRunner(net, _COPIES), task.score, task.rates.episode_s)
        out[f"{name}_mm"] = 1e3 * found.metrics["near"]
    return out


class Prepared(TargetStage):
    """Leaves targets alone; sets parameters on every simulation once."""

    def __init__(self, prepare: Prepare) -> None:
        self._prepare, self._set = prepare, []

    def __call__(self, targets: FloatArray, sim: BatchSim) -> FloatArray:
        return targets

    def reset(self, sim: BatchSim, ids: object) -> None:
        if not any(sim is one for one in self._set):
            self._set.append(sim)
            self._prepare(sim)


def _noise(cfg: ClosedCfg) -> float:
    """As large as the learned corrections are, median over targets, rad."""
    found = HUMANOID.load()["runs"][f"methods {cfg.label}".strip()]
    sizes = [list(run["by_joint"].values()) for key, run in found.items() if key.endswith("/delta action")]
    return float(median(np.sqrt(np.mean(np.square(one))) for one in sizes))


def _homes(cfg: ClosedCfg) -> None:
    """Of the trainings that are there."""
    trained: list[tuple[str, Arm]] = [(target, "delta") for target in cfg.targets]
    for target, arm in [("all", "nominal"), *trained]:
        if (cfg.runs / "closed" / f"{target}-{arm}-{cfg.steps}-{cfg.seed}" / "took.json").exists():
            key = f"{target}/{arm}/{cfg.steps}"
            HUMANOID.each("home", [key], lambda _, t=target, a=arm: measure_home(cfg, t, a), fresh=cfg.fresh)


def main(cfg: ClosedCfg) -> None:
    if cfg.home:
        _homes(cfg)
    for target in () if cfg.home else cfg.targets:
        for arm in cfg.arms:
            if cfg.by != "feedforward":
                part, key = "closed" if cfg.by == "ppo" else "tuned", f"{target}/{arm}/{cfg.steps}"
                HUMANOID.each(part, [key], lambda _, t=target, a=arm: measure(cfg, t, a), fresh=cfg.fresh)
                continue
            for seed in cfg.seeds if arm != "vanilla" else (0,):
                key = f"{cfg.label}{': ' if cfg.label else ''}{target}/{arm}/{seed}"
                HUMANOID.each(
                    "feedforward", [key], lambda _, t=target, a=arm, s=seed: measure(cfg, t, a, s), fresh=cfg.fresh
                )
    made = sections(HUMANOID.load()["runs"])
    for part, by in (("feedforward", ""), ("tuned", " --by feedforward+ppo"), ("closed", " --by ppo")):
        if part in made:
            HUMANOID.merge(part, *made[part], f"python benchmarks/humanoid_closed.py --runs F{by}")


if __name__ == "__main__":
    main(tyro.cli(ClosedCfg))
