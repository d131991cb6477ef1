"""Policies trained elsewhere: from an ONNX file and its layout to an environment and a policy that acts in it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from trueup.core.errors import TrueupError
from trueup.policy.foreign.layout import Layout, read_layout
from trueup.policy.foreign.onnx_net import OnnxNet
from trueup.policy.normalizer import Float32
from trueup.policy.runner import Observed, Policy
from trueup.tasks.env import EnvCfg, TaskEnv
from trueup.tasks.evaluation.witness import witness_env
from trueup.tasks.load import load_task
from trueup.tasks.task import Task
from trueup.train.play.assess import ASSESS_SEED, EPISODES, Assessment, assess


class OnnxPolicy:
    """A network that acts on what the actor sees."""

    def __init__(self, net: OnnxNet) -> None:
        self.net = net

    def __call__(self, obs: Observed) -> Float32:
        return self.net(obs.actor)

    def restart(self, rows: NDArray[np.intp]) -> None:
        self.net.restart(rows)


def open_witness(
    onnx: str | Path, layout: Layout | str | Path, task: Task | str, cfg: EnvCfg | None = None
) -> tuple[TaskEnv, Policy]:
    """The environment of a task for a policy that was trained elsewhere, and the policy."""
    said = layout if isinstance(layout, Layout) else read_layout(layout)
    env = witness_env(load_task(task) if isinstance(task, str) else task, said, cfg)
    net = OnnxNet(onnx, env.nenv)
    for what, asked, found in (("observations", env.nactor, net.nobs), ("actions", env.naction, net.naction)):
        if asked != found:
            raise TrueupError(
                f"has {found} {what}, but layout {said.name!r} has {asked}: they do not belong together", file=onnx
            )
    return env, OnnxPolicy(net)


def assess_witness(
    onnx: str | Path,
    layout: Layout | str | Path,
    task: Task | str,
    *,
    episodes: int = EPISODES,
    seconds: float | None = None,
    seed: int = ASSESS_SEED,
    threads: int = 0,
) -> Assessment:
    """Assess a policy that was trained elsewhere as our own are: nominal, no pushes, the task's whole range.

    seconds  None: the task's episodes as they are
    """
    cfg = EnvCfg(nenv=episodes, threads=threads, seed=seed, randomize=False, pushes=False, stagger=False)
    env, policy = open_witness(onnx, layout, task, cfg)
    return assess(env, policy, env.task.score, seconds or env.task.rates.episode_s)
