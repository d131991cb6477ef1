"""go2-velocity with loads, weak motors, slippery ground, late commands and sticky gears: the task of adaptation."""

from __future__ import annotations

from dataclasses import replace

from trueup.tasks.load import load_task
from trueup.tasks.task import Task
from trueup.world.randomization.randomize import Draw


def go2_hard() -> Task:
    """Ranges in which what is hidden matters: a policy that knew it would act otherwise."""
    task = load_task("go2-velocity")
    ranges = dict(task.randomize) | {
        "payload": Draw(operation="set", low=0.0, high=5.0, factor=True),
        "motor_strength": Draw(operation="scale", low=0.55, high=1.1, each=False, factor=True),
        "contact_friction": Draw(operation="set", low=0.15, high=1.5, distribution="log_uniform", factor=True),
        "delay": Draw(operation="set", low=0.0, high=0.04, each=False, factor=True),
        "friction": Draw(operation="add", low=0.0, high=1.2, each=False, factor=True),
    }
    return replace(task, name=f"{__file__}:go2_hard", randomize=ranges)


def go2_hard_one_frame() -> Task:
    """The same without a past: three frames of joint motion already tell much of what is hidden."""
    task = go2_hard()
    seen = replace(task.observations, history=1)
    return replace(task, name=f"{__file__}:go2_hard_one_frame", observations=seen)
