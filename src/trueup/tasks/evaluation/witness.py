"""Witness: a task's world for a policy that was trained elsewhere.

Physics, starts, goal, terminations and metrics are the task's; gains, control rate, default pose, observations and
actions are the policy's own, as its layout says.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from trueup.core.errors import TrueupError
from trueup.policy.action import JointOrder
from trueup.policy.foreign.layout import Layout
from trueup.robot.load import load_robot
from trueup.tasks.env import EnvCfg, TaskEnv
from trueup.tasks.task import Task

_FOLLOWED = ("forward", "sideways", "turn")  # what policies of these formats are asked for
_GIVEN = {"joint_pos", "joint_vel", "gyro", "gravity", "command", "action"}


def witness_task(task: Task, layout: Layout) -> Task:
    """The task with the layout's gains, rate, observations and actions; joints are matched by name."""
    names = load_robot(task.robot).spec.joint_names
    order = JointOrder(layout.joint_names, names)
    if task.goal.columns != _FOLLOWED or layout.observation.ncommand != len(_FOLLOWED):
        raise TrueupError(f"task {task.name!r} does not ask for velocities, which policy {layout.name!r} follows")
    missing = [term.signal for term in layout.observation.terms if term.signal not in _GIVEN]
    if missing:
        raise TrueupError(f"policy {layout.name!r} observes {missing[0]!r}, which task {task.name!r} does not have")
    substeps = math.ceil(task.rates.physics_hz / layout.control_hz - 1e-9)
    return replace(
        task,
        rates=replace(task.rates, control_hz=layout.control_hz, physics_hz=max(substeps, 1) * layout.control_hz),
        servo=replace(task.servo, kp=_in_order(order, layout.kp), kd=_in_order(order, layout.kd)),
        symmetric=False,
        layout=layout,
    )


def witness_env(task: Task, layout: Layout, cfg: EnvCfg | None = None) -> TaskEnv:
    """Make the environment of a task for a policy that was trained elsewhere."""
    return TaskEnv(witness_task(task, layout), cfg)


def _in_order(order: JointOrder, values: tuple[float, ...]) -> tuple[float, ...]:
    return tuple(order.to_robot(np.array(values)).tolist())
