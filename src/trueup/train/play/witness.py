"""Policies trained elsewhere: from an ONNX file and its layout to an environment and a policy that acts in it.

Physics, starts, goal, terminations and metrics are the task's; gains, control rate, default pose, observations and
actions are the policy's own, as its layout says.
"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from trueup.core.errors import TrueupError
from trueup.policy.action import JointOrder
from trueup.policy.foreign.layout import Layout, read_layout
from trueup.policy.foreign.onnx_net import OnnxNet
from trueup.policy.normalizer import Float32
from trueup.policy.runner import Observed, Policy
from trueup.robot.load import load_robot
from trueup.tasks.env import EnvCfg, TaskEnv
from trueup.tasks.load import load_task
from trueup.tasks.task import Task
from trueup.train.play.assess import ASSESS_SEED, EPISODES, Assessment, assess

_FOLLOWED = ("forward", "sideways", "turn")  # what policies of these formats are asked for
_GIVEN = {"joint_pos", "joint_vel", "gyro", "gravity", "command", "action"}


class OnnxPolicy:
    """A network that acts on what the actor sees."""

    def __init__(self, net: OnnxNet) -> None:
        self.net = net

    def __call__(self, obs: Observed) -> Float32:
        return self.net(obs.actor)

    def restart(self, rows: NDArray[np.intp]) -> None:
        self.net.restart(rows)


def witness_task(task: Task, layout: Layout) -> Task:
    """The task with the layout's gains, rate, observations and actions; joints are matched by name."""
    names = load_robot(task.robot).spec.joint_names
    order = JointOrder(layout.joint_names, names)
    if task.goal.columns != _FOLLOWED or layout.observation.ncommand != len(_FOLLOWED):
        raise TrueupError(f"task {task.name!r} does not ask for velocities, which policy {layout.name!r} follows")
    missing = [term.signal for term in layout.observation.terms if term.signal not in _GIVEN]
    if missing:
        raise TrueupError(f"policy {layout.name!r} observes {missing[0]!r}, which task {task.name!r} does not have")
    kp, kd = (tuple(order.to_robot(np.array(gains)).tolist()) for gains in (layout.kp, layout.kd))
    substeps = math.ceil(task.rates.physics_hz / layout.control_hz - 1e-9)
    return replace(
        task,
        rates=replace(task.rates, control_hz=layout.control_hz, physics_hz=max(substeps, 1) * layout.control_hz),
        servo=replace(task.servo, kp=kp, kd=kd),
        symmetric=False,
        layout=layout,
    )


def open_witness(
    onnx: str | Path, layout: Layout | str | Path, task: Task | str, cfg: EnvCfg | None = None
) -> tuple[TaskEnv, Policy]:
    """The environment of a task for a policy that was trained elsewhere, and the policy."""
    said = layout if isinstance(layout, Layout) else read_layout(layout)
    env = TaskEnv(witness_task(load_task(task) if isinstance(task, str) else task, said), cfg)
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
