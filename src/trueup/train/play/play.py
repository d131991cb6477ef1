"""From a run's folder, or an exported policy's, to an environment and a policy that are ready to be watched."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from trueup.core.errors import TrueupError
from trueup.policy.mlp import JSON_FILE, load_policy
from trueup.rl.env import Floats, Obs
from trueup.tasks.env import TaskEnv
from trueup.train.config import RunCfg
from trueup.train.folder import RunFolder
from trueup.train.play.frozen import Policy, frozen
from trueup.train.train import run_env


class Actor(Protocol):
    """Acts on what the actor sees, (n, nactor)."""

    def __call__(self, obs: Floats) -> Floats: ...
    def restart(self, rows: NDArray[np.intp]) -> None: ...


class Exported:
    """An exported policy as one that acts in environments."""

    def __init__(self, policy: Actor) -> None:
        self.policy = policy

    def __call__(self, obs: Obs) -> Floats:
        return self.policy(obs.actor)

    def restart(self, rows: NDArray[np.intp]) -> None:
        self.policy.restart(rows)


def open_run(path: str | Path, *, randomize: bool = False, seed: int = 0) -> tuple[TaskEnv, Policy]:
    """One simulation of the task, and the policy of a run's newest checkpoint or of an exported folder.

    A policy that sees the hidden factors needs them to be there: it is shown in randomised simulations.
    """
    if (Path(path) / JSON_FILE).exists():
        return _open_exported(Path(path), randomize, seed)
    folder = RunFolder(path)
    cfg, arrays = folder.config(), folder.newest().arrays
    hidden = cfg.ppo.net.latent > 0 and cfg.distill is None
    return _one(replace(cfg, seed=seed), randomize or hidden), frozen(arrays, 1)


def _open_exported(path: Path, randomize: bool, seed: int) -> tuple[TaskEnv, Policy]:
    policy = load_policy(path)
    env = _one(RunCfg(task=policy.spec.task, robot=_robot_of(path), seed=seed), randomize)
    if policy.spec.observation != env.observation_spec or policy.spec.action != env.action_spec:
        raise TrueupError(
            f"this policy sees or moves other things than task {policy.spec.task!r} does now", file=path
        )
    return env, Exported(policy)


def _robot_of(exported: Path) -> str | None:
    """The robot that the run was told to train on, where the policy still lies in its run."""
    run = exported.absolute().parent
    return RunFolder(run).config().robot if (run / "config.json").exists() else None


def _one(cfg: RunCfg, randomize: bool) -> TaskEnv:
    return run_env(cfg, 1, threads=1, stagger=False, randomize=randomize, pushes=False)
