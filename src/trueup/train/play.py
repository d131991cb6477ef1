"""From a run's folder to its environment and its policy, ready to be watched."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from trueup.tasks.env import TaskEnv
from trueup.train.folder import RunFolder
from trueup.train.frozen import Policy, frozen
from trueup.train.train import run_env


def open_run(path: str | Path, *, randomize: bool = False, seed: int = 0) -> tuple[TaskEnv, Policy]:
    """One simulation of the run's task, and the policy of its newest checkpoint.

    A policy that sees the hidden factors needs them to be there: it is shown in randomised simulations.
    """
    folder = RunFolder(path)
    cfg, arrays = folder.config(), folder.newest().arrays
    hidden = cfg.ppo.net.latent > 0 and cfg.distill is None
    env = run_env(
        replace(cfg, seed=seed), 1, threads=1, stagger=False, randomize=randomize or hidden, pushes=False
    )
    return env, frozen(arrays, 1)
