"""Closed loop: a policy of others is trained a little more in different worlds, then acts on the target without them.

    python benchmarks/humanoid_closed.py --runs F --target late-0 --arm delta --steps 400000

Stands on what `humanoid_delta.py` recorded and learned in F. Every arm has the same steps, the same learner and the
same start; `vanilla` is the policy as it came.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
import tyro
from humanoid_delta import TARGETS, BenchCfg, policy_of, problem_of
from humanoid_delta_page import sections
from humanoid_targets import Act, roll
from parts import HUMANOID, Numbers

import trueup as tu
from trueup.calibrate.delta.beside.baselines import ActionNoise
from trueup.calibrate.delta.beside.identify import identified
from trueup.core.arrays import FloatArray
from trueup.policy.mlp import load_policy
from trueup.rl.settings import PpoCfg
from trueup.train.folder import RunFolder
from trueup.world.actuators.target_stages import TargetStage
from trueup.world.batch import BatchSim

Arm = Literal["vanilla", "delta", "identified", "noise", "ranges", "nominal"]
_EPISODES = 4


@dataclass(frozen=True)
class ClosedCfg:
    runs: Path
    target: str = "late-0"
    arm: Arm = "delta"
    steps: int = 400_000
    nenv: int = 128
    seed: int = 0
    fresh: bool = False


def measure(cfg: ClosedCfg) -> Numbers:
    """Train an arm, and let it act on the target."""
    bundle, task = policy_of(BenchCfg(part="page", runs=cfg.runs))
    act: Act = bundle.runner(1).act
    seconds = 0.0
    if cfg.arm != "vanilla":
        run = cfg.runs / "closed" / f"{cfg.target}-{cfg.arm}-{cfg.seed}"
        seconds = _train(cfg, task.name, run)
        act = load_policy(RunFolder(run).policy).act
    rolls = [roll(TARGETS[cfg.target], act, bundle.passport.policy, task, k) for k in range(_EPISODES)]
    lasted = [one.seconds if one.fell_s is not None else task.rates.episode_s for one in rolls]
    return {
        "mpjpe_mm": float(np.mean([one.mpjpe_mm for one in rolls])),
        "falls": sum(one.fell_s is not None for one in rolls),
        "lasted_s": float(np.mean(lasted)),
        "episodes": _EPISODES,
        "steps": 0 if cfg.arm == "vanilla" else cfg.steps,
        "seconds": seconds,
    }


def _train(cfg: ClosedCfg, name: str, run: Path) -> float:
    import time

    from trueup.tasks.load import load_task

    began, folder = time.process_time(), cfg.runs / "delta" / cfg.target
    task, more = load_task(name), {}
    if cfg.arm == "delta":
        more = {"delta": folder}
    elif cfg.arm == "identified":
        task = replace(task, target_stages=(Identified(cfg),))
    elif cfg.arm == "noise":
        task = replace(task, target_stages=(ActionNoise(_noise(cfg), cfg.seed),))
    learner = replace(task.learner, kl_target=0.008, learning_rate=2e-4) if isinstance(task.learner, PpoCfg) else None
    tu.train(
        task,
        out=run,
        start=cfg.runs / "dance.bundle",
        steps=cfg.steps,
        nenv=cfg.nenv,
        threads=1,
        seed=cfg.seed,
        learner=learner,
        randomize=cfg.arm == "ranges",
        film_minutes=0.0,
        **more,
    )
    return time.process_time() - began


class Identified(TargetStage):
    """Leaves targets alone; sets what identification finds in the delta action's logs on every simulation once."""

    def __init__(self, cfg: ClosedCfg) -> None:
        found, self.values = identified(problem_of(BenchCfg(part="methods", runs=cfg.runs), cfg.target))
        assert found.prepare is not None
        self._prepare, self._set = found.prepare, []

    def __call__(self, targets: FloatArray, sim: BatchSim) -> FloatArray:
        return targets

    def reset(self, sim: BatchSim, ids: object) -> None:
        if not any(sim is one for one in self._set):
            self._set.append(sim)
            self._prepare(sim)


def _noise(cfg: ClosedCfg) -> float:
    """As large as the learned correction."""
    by = HUMANOID.load()["runs"]["methods"][f"{cfg.target}/delta action"]["by_joint"]
    return float(np.sqrt(np.mean(np.square(list(by.values())))))


def main(cfg: ClosedCfg) -> None:
    HUMANOID.each("closed", [f"{cfg.target}/{cfg.arm}/{cfg.steps}"], lambda key: measure(cfg), fresh=False)
    made = sections(HUMANOID.load()["runs"])
    HUMANOID.merge("closed", *made["closed"], "python benchmarks/humanoid_closed.py --runs F --target NAME --arm ARM")


if __name__ == "__main__":
    main(tyro.cli(ClosedCfg))
