"""Policies trained elsewhere: from an ONNX file and its layout to an environment and a policy that acts in it.

Physics, starts, goal, terminations and metrics are the task's; gains, control rate, default pose, observations and
actions are the policy's own, as its layout says.
"""

from __future__ import annotations

from pathlib import Path

from trueup.core.errors import TrueupError
from trueup.policy.foreign.layout import Layout, read_layout
from trueup.policy.foreign.onnx_net import OnnxNet
from trueup.policy.graph.net import GraphPolicy
from trueup.policy.runner import Policy
from trueup.tasks.env import EnvCfg, TaskEnv
from trueup.tasks.foreign import with_layout
from trueup.tasks.load import load_task
from trueup.tasks.task import Task
from trueup.train.play.assess import ASSESS_SEED, EPISODES, Assessment, assess


def open_witness(
    onnx: str | Path, layout: Layout | str | Path, task: Task | str, cfg: EnvCfg | None = None
) -> tuple[TaskEnv, Policy]:
    """The environment of a task for a policy that was trained elsewhere, and the policy."""
    found_layout = layout if isinstance(layout, Layout) else read_layout(layout)
    env = TaskEnv(with_layout(load_task(task) if isinstance(task, str) else task, found_layout), cfg)
    net = OnnxNet(onnx, env.nenv)
    for what, expected, found in (("observations", env.nactor, net.nobs), ("actions", env.naction, net.naction)):
        if expected != found:
            raise TrueupError(
                f"has {found} {what}, but layout {found_layout.name!r} has {expected}: they do not belong together",
                file=onnx,
            )
    return env, GraphPolicy(net)


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
