"""Tasks for policies that bring their own observations, actions, gains and rate: layouts of others, and bundles.

Physics, starts, goal, terminations and metrics are the task's; the rest is the policy's own.
"""

from __future__ import annotations

import math
from dataclasses import replace

import msgspec
import numpy as np

from trueup.core.errors import TrueupError
from trueup.policy.action import JointOrder
from trueup.policy.bundle.passport import Passport
from trueup.policy.foreign.layout import Layout
from trueup.robot.load import load_robot
from trueup.tasks.goals.tracking import TrackingGoal
from trueup.tasks.load import load_task, task_names
from trueup.tasks.sensing.signals import Signal
from trueup.tasks.sensing.tracking import BodyTurn, ReferenceJoints
from trueup.tasks.task import Task

FOLLOWED = ("forward", "sideways", "turn")  # what policies of other formats are asked for
_GIVEN = {"joint_pos", "joint_vel", "gyro", "gravity", "command", "action"}
_REFERENCE = ("reference", "reference_rotation")  # of policies that follow a motion (BeyondMimic, arXiv 2508.08241)
_ANCHOR = "torso_link"  # whose rotation against the reference they see


def with_layout(task: Task, layout: Layout) -> Task:
    """The task with the layout's gains, rate, observations and actions; joints are matched by name."""
    names = load_robot(task.robot).spec.joint_names
    order = JointOrder(layout.joint_names, names)
    given = _GIVEN
    if isinstance(task.goal, TrackingGoal) and follows_motion(layout):
        task, layout = _with_reference(task, layout, names)
        given = given | set(_REFERENCE)
    elif follows_motion(layout):
        raise TrueupError(f"policy {layout.name!r} follows a motion: its task is a tracking task, g1-track:MOTION.npz")
    elif task.goal.columns != FOLLOWED or layout.observation.ncommand != len(FOLLOWED):
        raise TrueupError(f"task {task.name!r} does not ask for velocities, which policy {layout.name!r} follows")
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
    return any(term.signal == _REFERENCE[0] for term in layout.observation.terms)


def _with_reference(task: Task, layout: Layout, names: tuple[str, ...]) -> tuple[Task, Layout]:
    """The task with the reference as the policy sees it; the command itself is the task's, which the policy ignores."""
    joints = ReferenceJoints(tuple(names.index(name) for name in layout.joint_names))
    signals = {"reference": Signal(joints, "rad, rad/s"), "reference_rotation": Signal(BodyTurn(_ANCHOR), "1")}
    seen = msgspec.structs.replace(layout.observation, ncommand=2 * len(names) + 4)
    seen = msgspec.structs.replace(seen, widths={name: seen.widths[name] for name in _REFERENCE})
    return replace(task, signals={**task.signals, **signals}), msgspec.structs.replace(layout, observation=seen)


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
    return found if passport.origin.format == "trueup" else with_layout(found, layout_of(passport))


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
