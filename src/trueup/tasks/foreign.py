"""Tasks for policies that bring their own observations, actions, gains and rate: layouts of others, and bundles.

Physics, starts, goal, terminations and metrics are the task's; the rest is the policy's own.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from trueup.core.errors import TrueupError
from trueup.policy.action import JointOrder
from trueup.policy.bundle.passport import Passport
from trueup.policy.foreign.layout import Layout
from trueup.robot.load import load_robot
from trueup.tasks.goals.tracking import TrackingGoal
from trueup.tasks.load import load_task, task_names
from trueup.tasks.sensing.reference import REFERENCE, ROTATION, reference_signals
from trueup.tasks.task import Task

FOLLOWED = ("forward", "sideways", "turn")  # what policies of other formats are asked for
_GIVEN = frozenset({"joint_pos", "joint_vel", "gyro", "gravity", "action"})


def with_layout(task: Task, layout: Layout) -> Task:
    """The task with the layout's gains, rate, observations and actions; joints are matched by name.

    A policy follows velocities, or a motion: then the task is a tracking task, and its motion is the policy's.
    """
    names = load_robot(task.robot).spec.joint_names
    order = JointOrder(layout.joint_names, names)
    if follows_motion(layout):
        if not isinstance(task.goal, TrackingGoal):
            need = f"its task is a tracking task, {task.robot}-track:MOTION.npz"
            raise TrueupError(f"policy {layout.name!r} observes {REFERENCE!r}: it follows a motion, and {need}")
        task = replace(task, signals={**task.signals, **reference_signals(order)})
        given = _GIVEN | {REFERENCE, ROTATION}
    elif task.goal.columns != FOLLOWED or layout.observation.ncommand != len(FOLLOWED):
        raise TrueupError(f"task {task.name!r} does not ask for velocities, which policy {layout.name!r} follows")
    else:
        given = _GIVEN | {"command"}
    missing = [term.signal for term in layout.observation.terms if term.signal not in given]
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


def follows_motion(layout: Layout) -> bool:
    """Whether a policy sees a reference motion in place of commands."""
    return any(term.signal == REFERENCE for term in layout.observation.terms)


def layout_of(passport: Passport) -> Layout:
    """What a passport says of its policy, as a layout."""
    spec = passport.policy
    return Layout(
        format=passport.origin.format,
        name=spec.task,
        control_hz=spec.control_hz,
        kp=spec.kp,
        kd=spec.kd,
        torque=passport.torque_limit,
        observation=spec.observation,
        action=spec.action,
    )


def bundle_task(passport: Passport, task: str | None = None, robot: str | None = None) -> Task:
    """The task that a bundle's policy acts in: its own, or `task`; `robot`: in place of the task's."""
    name = task or passport.policy.task
    if task is None and name.partition(":")[0] not in task_names():
        raise TrueupError(f"this policy's task {name!r} is not built in: name it with --task FILE.py:FUNCTION")
    found = load_task(name, robot)
    return with_layout(found, layout_of(passport)) if is_foreign(passport) else _with_feedforward(found, passport)


def _with_feedforward(task: Task, passport: Passport) -> Task:
    """The task with the offsets by the clock that were learned for a policy after its training."""
    spec = passport.policy
    cycle, step = spec.action.cycle, spec.observation.clock_step
    if cycle is None or task.actions.cycle is not None:
        return task
    observations = replace(task.observations, clock_s=1.0 / (step * spec.control_hz))
    return replace(task, actions=replace(task.actions, cycle=lambda robot, moved: cycle), observations=observations)


def is_foreign(passport: Passport) -> bool:
    """Whether a policy has a layout of others: it was imported, or trained from one that was."""
    shown = {term.signal for term in passport.policy.observation.terms}
    return passport.origin.format != "trueup" or bool(shown & {REFERENCE, ROTATION})


def fitting_tasks(layout: Layout, robot: str) -> list[str]:
    """Built-in tasks of a robot in which a policy with this layout can act."""
    fits = []
    for name in task_names():
        task = load_task(name)
        if task.robot != robot or task.terrain is not None:
            continue
        try:
            with_layout(task, layout)
        except TrueupError:
            continue
        fits.append(name)
    return fits
