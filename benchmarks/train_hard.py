"""Harder ground and harder robots: the parts `rough`, `adaptation` and `adr` of `train.py`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
import tyro
from parts import TRAIN, table

from trueup.rl.distill import DistillCfg
from trueup.sim.randomize import Draw
from trueup.tasks.env import EnvCfg
from trueup.tasks.load import load_task, make_env
from trueup.train.assess import Assessment, assess
from trueup.train.config import Budget, RunCfg, default_ppo
from trueup.train.folder import RunFolder
from trueup.train.frozen import FrozenPolicy, Policy, frozen
from trueup.train.train import assess_run, train

Part = Literal["target", "race", "update", "overhead", "kills", "rough", "adaptation", "adr"]
TASK = "go2-velocity"


@dataclass(frozen=True, kw_only=True)
class BenchCfg:
    """What is measured (all parts if none is named), and how long each training may take."""

    part: tyro.conf.Positional[Part | None] = None
    seeds: tuple[int, ...] = (0, 1, 2)
    minutes: float = 15.0
    runs: Path = Path("runs/benchmark")
    fresh: bool = False


def continued(cfg: RunCfg, path: Path, budget: Budget) -> RunFolder:
    """Train, or go on with what is there."""
    folder = RunFolder(path)
    train(cfg, path, budget, resume=(path / "config.json").exists())
    return folder


# --- rough ---
def rough(cfg: BenchCfg) -> tuple[dict[str, object], str]:
    task = "go2-velocity-rough"

    def one(seed: str) -> dict[str, object]:
        run = RunCfg(task=task, seed=int(seed), ppo=default_ppo(task))
        folder = continued(run, cfg.runs / f"rough-{seed}", Budget(minutes=cfg.minutes, save_s=60.0))
        rows = folder.read_metrics()
        every = max(1, len(rows) // 20)
        curve = [[round(r["elapsed_s"] / 60, 1), round(r["terrain/level"], 2)] for r in rows[::every]]
        return {"levels": curve, "success": _success(task, frozen(folder.newest().arrays))}

    found = TRAIN.each("rough", [str(cfg.seeds[0])], one, fresh=cfg.fresh)[str(cfg.seeds[0])]
    levels = sorted({int(k) for row in found["success"].values() for k in row})
    rows = [(kind, *(row[str(k)] for k in levels)) for kind, row in found["success"].items()]
    first, last = found["levels"][0][1], found["levels"][-1][1]
    text = f"""## Rough terrain

Mean level of the curriculum over {cfg.minutes:g} minutes: {", ".join(f"{m:g} min {x:g}" for m, x in found["levels"])}.

Share of episodes of 20 s without a fall, by kind and level:

{table(("ground", *(f"level {k}" for k in levels)), rows)}
"""
    return {"rough_level_first": first, "rough_level_last": last}, text


def _success(name: str, policy: Policy) -> dict[str, dict[str, float]]:
    """Share of rows that do not fall in an episode, by kind of ground and level."""
    task, out = load_task(name), {}
    probe = make_env(task, EnvCfg(nenv=1, threads=1))
    assert probe.climb is not None
    terrain = probe.climb.terrain.cfg
    for level in range(terrain.levels):
        env = make_env(
            task,
            EnvCfg(
                nenv=12 * len(terrain.kinds),
                seed=77,
                level=level,
                randomize=False,
                pushes=False,
                stagger=False,
            ),
        )
        fallen, obs = np.zeros(env.nenv, bool), env.reset()
        for _ in range(round(task.rates.episode_s / env.control_dt)):
            step = env.step(np.ascontiguousarray(policy(obs), np.float32))
            fallen |= step.terminated
            obs = step.obs
        for k, kind in enumerate(terrain.kinds):
            share = 1.0 - float(fallen[env.climb.kind == k].mean())
            out.setdefault(kind, {})[str(level)] = round(share, 2)
    return out


# --- adaptation ---
_HARD = {
    "payload 4 kg": {"payload": (4.0, 4.0)},
    "weak motors": {"motor_strength": (0.7, 0.7)},
    "slippery ground": {"contact_friction": (0.25, 0.25)},
    "all three": {"payload": (4.0, 4.0), "motor_strength": (0.7, 0.7), "contact_friction": (0.25, 0.25)},
}


def adaptation(cfg: BenchCfg) -> tuple[dict[str, object], str]:
    seed = cfg.seeds[0]
    base = RunCfg(task=TASK, seed=seed, ppo=default_ppo(TASK))
    teacher_ppo = replace(base.ppo, net=replace(base.ppo.net, latent=8))
    budget = Budget(minutes=cfg.minutes, save_s=60.0)
    robust = continued(base, cfg.runs / f"robust-{seed}", budget)
    expert = continued(replace(base, ppo=teacher_ppo), cfg.runs / f"expert-{seed}", budget)
    student_cfg = replace(base, ppo=teacher_ppo, teacher=str(expert.path), distill=DistillCfg())
    rma = continued(student_cfg, cfg.runs / f"rma-{seed}", Budget(minutes=cfg.minutes / 3, save_s=60.0))
    policies: dict[str, Callable[[int], Policy]] = {
        "robust": lambda n: frozen(robust.newest().arrays, n),
        "RMA without adaptation": lambda n: _Unadapted(expert.newest().arrays),
        "RMA": lambda n: frozen(rma.newest().arrays, n),
        "expert": lambda n: frozen(expert.newest().arrays, n),
    }
    found = {
        name: {case: _hard(make, change) for case, change in _HARD.items()} for name, make in policies.items()
    }
    rows = [
        (name, *(f"{result.falls} / {result.error:.2f}" for result in cases.values()))
        for name, cases in found.items()
    ]
    text = f"""## Adaptation

Falls in 100 episodes of 20 s / mean error in m/s, in simulations harder than those of training (payloads up to 2 kg,
friction from 0.3); {cfg.minutes:g} minutes of training for robust and expert, a third of that for the student.

{table(("policy", *_HARD), rows)}
"""
    total = {name: sum(result.falls for result in cases.values()) for name, cases in found.items()}
    return {"adaptation_falls": total}, text


class _Unadapted(FrozenPolicy):
    """The expert with the latent of an average robot: factors at their means."""

    def latent(self, obs):
        mean = np.broadcast_to(self._privileged.mean.astype(np.float32), obs.privileged.shape)
        return super().latent(obs._replace(privileged=mean))


def _hard(
    make: Callable[[int], Policy], change: dict[str, tuple[float, float]], episodes: int = 100
) -> Assessment:
    task = load_task(TASK)
    ranges = dict(task.randomize)
    for name, (low, high) in change.items():
        draw = ranges.get(name, Draw(operation="scale", low=low, high=high))
        ranges[name] = replace(draw, low=low, high=high)
    env = make_env(
        replace(task, randomize=ranges), EnvCfg(nenv=episodes, seed=55, pushes=False, stagger=False)
    )
    return assess(env, make(episodes), task.score, task.rates.episode_s)


# --- ADR ---
def adr(cfg: BenchCfg) -> tuple[dict[str, object], str]:
    seed = cfg.seeds[0]
    base = RunCfg(task=TASK, seed=seed, ppo=default_ppo(TASK))
    budget = Budget(minutes=cfg.minutes, save_s=60.0)
    fixed = continued(base, cfg.runs / f"robust-{seed}", budget)
    grown = continued(replace(base, adr=True), cfg.runs / f"adr-{seed}", budget)
    rows, falls = [], {}
    for name, folder in (("fixed ranges", fixed), ("ADR", grown)):
        arrays = folder.newest().arrays
        cases = {"nominal": assess_run(folder)} | {
            case: _hard(lambda n, arrays=arrays: frozen(arrays, n), change) for case, change in _HARD.items()
        }
        rows.append((name, *(f"{result.falls} / {result.error:.2f}" for result in cases.values())))
        falls[name] = sum(result.falls for result in cases.values())
    metrics = grown.read_metrics()
    width = [
        [round(r["elapsed_s"] / 60, 1), round(r["adr/log_width"], 2)]
        for r in metrics[:: max(1, len(metrics) // 12)]
    ]
    text = f"""## ADR against fixed ranges

Falls in 100 episodes / mean error in m/s, after {cfg.minutes:g} minutes each.

{table(("ranges", "nominal", *_HARD), rows)}

Mean log width of the ranges over training: {", ".join(f"{m:g} min {w:g}" for m, w in width)}.
"""
    return {"adr_falls": falls}, text
