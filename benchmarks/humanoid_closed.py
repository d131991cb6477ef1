"""Closed loop: a policy of others is trained a little more in different worlds, then acts on the target without them.

    python benchmarks/humanoid_closed.py --runs F [--targets NAME ...] [--arms ARM ...] [--steps N]
    python benchmarks/humanoid_closed.py --runs F --home [--targets NAME ...] [--steps N]

`--home`: how far a policy is from its motion in the simulator that it was trained in, before and after: which step of
the way to the target loses what is lost.

Stands on what `humanoid_delta.py` recorded and learned in F. Every arm has the same steps, the same learner and the
same start; `vanilla` is the policy as it came. Arms that know nothing of the target (`nominal`, `noise`, `ranges`) are
trained once for all targets. Rows are kept one by one, and trainings in F.
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
from humanoid_delta import TARGETS, BenchCfg, identified_of, policy_of
from humanoid_delta_page import sections
from humanoid_targets import Act, roll
from parts import HUMANOID, Numbers

import trueup as tu
from trueup.calibrate.delta.beside.baselines import ActionNoise
from trueup.core.arrays import FloatArray
from trueup.policy.mlp import load_policy
from trueup.policy.runner import PolicyRunner
from trueup.tasks.env import EnvCfg, TaskEnv
from trueup.tasks.load import load_task
from trueup.tasks.terms.tracking import near_error
from trueup.train.bundles.warm import warm_net
from trueup.train.folder import RunFolder
from trueup.train.play.assess import ASSESS_SEED, assess
from trueup.world.actuators.target_stages import TargetStage
from trueup.world.batch import BatchSim
from trueup.world.replay.replay import Prepare

Arm = Literal["vanilla", "nominal", "noise", "ranges", "identified", "delta", "both"]
_OF_TARGET = ("identified", "delta", "both")  # arms that learn from the target's logs
_EPISODES = 3
_COPIES = 8


@dataclass(frozen=True)
class ClosedCfg:
    runs: Path
    targets: tuple[str, ...] = tuple(name for name in TARGETS if not name.startswith("ideal"))
    arms: tuple[Arm, ...] = ("vanilla", "nominal", "noise", "ranges", "identified", "delta")
    steps: int = 600_000
    nenv: int = 256
    seed: int = 0
    fresh: bool = False
    home: bool = False


def measure(cfg: ClosedCfg, target: str, arm: Arm) -> Numbers:
    """Train an arm, and let it act on the target."""
    bundle, task = policy_of(BenchCfg(part="page", runs=cfg.runs))
    act: Act = bundle.runner(1).act
    trained: Numbers = {"steps": 0, "seconds": 0.0}
    if arm != "vanilla":
        run, trained = _trained(cfg, task.name, target, arm)
        act = load_policy(RunFolder(run).policy).act
    rolls = [roll(TARGETS[target], act, bundle.passport.policy, task, k) for k in range(_EPISODES)]
    lasted = [one.seconds if one.fell_s is not None else task.rates.episode_s for one in rolls]
    return {
        "mpjpe_mm": float(np.mean([one.mpjpe_mm for one in rolls])),
        "worst_mm": float(max(one.mpjpe_mm for one in rolls)),
        "falls": sum(one.fell_s is not None for one in rolls),
        "lasted_s": float(np.mean(lasted)),
        "episodes": _EPISODES,
        **trained,
    }


def _trained(cfg: ClosedCfg, name: str, target: str, arm: Arm) -> tuple[Path, Numbers]:
    """The run of an arm, and what it took."""
    whose = target if arm in _OF_TARGET else "all"
    run = cfg.runs / "closed" / f"{whose}-{arm}-{cfg.steps}-{cfg.seed}"
    took = run / "took.json"
    if not took.exists() or cfg.fresh:
        began, noise = time.process_time(), _noise(cfg)
        _train(cfg, name, target, arm, run, noise)
        found = {"steps": cfg.steps, "seconds": time.process_time() - began}
        took.write_text(json.dumps(found | ({"noise_rad": noise} if arm == "noise" else {})))
    return run, json.loads(took.read_text())


def _train(cfg: ClosedCfg, name: str, target: str, arm: Arm, run: Path, noise: float) -> None:
    task, more = load_task(name), {}
    stages: tuple[TargetStage, ...] = ()
    if arm == "noise":
        stages = (ActionNoise(noise, cfg.seed),)
    if arm in ("identified", "both"):
        prepare = identified_of(BenchCfg(part="methods", runs=cfg.runs), target).prepare
        assert prepare is not None
        stages = (Prepared(prepare),)
    if arm in ("delta", "both"):
        more = {"delta": cfg.runs / ("delta" if arm == "delta" else "both") / target}
    tu.train(
        replace(task, target_stages=stages),
        out=run,
        start=cfg.runs / "dance.bundle",
        steps=cfg.steps,
        nenv=cfg.nenv,
        threads=1,
        seed=cfg.seed,
        randomize=arm == "ranges",
        film_minutes=0.0,
        **more,
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
    found = HUMANOID.load()["runs"]["methods"]
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
            key = f"{target}/{arm}/{cfg.steps}"
            HUMANOID.each("closed", [key], lambda _, t=target, a=arm: measure(cfg, t, a), fresh=cfg.fresh)
    made = sections(HUMANOID.load()["runs"])
    HUMANOID.merge("closed", *made["closed"], f"python benchmarks/humanoid_closed.py --runs F --steps {cfg.steps}")


if __name__ == "__main__":
    main(tyro.cli(ClosedCfg))
