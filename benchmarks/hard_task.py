"""go2-velocity with loads, weak motors and slippery ground in its ranges: the task of the adaptation ladder."""

from __future__ import annotations

from dataclasses import replace

from trueup.sim.randomize import Draw
from trueup.tasks.load import load_task
from trueup.tasks.task import Task


def go2_hard() -> Task:
    task = load_task("go2-velocity")
    ranges = dict(task.randomize) | {
        "payload": Draw(operation="set", low=0.0, high=5.0, factor=True),
        "motor_strength": Draw(operation="scale", low=0.55, high=1.1, each=False, factor=True),
        "contact_friction": Draw(
            operation="set", low=0.15, high=1.5, distribution="log_uniform", factor=True
        ),
    }
    return replace(task, name=f"{__file__}:go2_hard", randomize=ranges)
