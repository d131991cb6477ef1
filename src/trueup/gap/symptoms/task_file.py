"""A task file for `trueup train`: the task with the changes of every symptom, a function each and one with all."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from trueup.core.files import make_folder, write_atomic
from trueup.core.own_code import is_own_code
from trueup.gap.symptoms.changes import TaskChange, as_python, merged
from trueup.gap.symptoms.finding import Symptom
from trueup.tasks.task import Task

FILE, ALL = "mended.py", "mended"

_HEAD = '''"""{task}, changed for what the robot showed: {names}.

Written by `trueup symptoms`; yours to read and to edit. Train with all changes, beginning with the policy that ran:

    trueup train {file}:{all} --start RUN

or with those of one symptom, by the name of its function.
"""

from dataclasses import replace

from trueup.tasks.load import load_task
from trueup.tasks.task import Reward, Task
from trueup.tasks.terms import rewards as r
from trueup.world.push import PushCfg
from trueup.world.randomization.randomize import Draw

__all__ = ["Draw", "PushCfg", "Reward", "r"]  # for changes of your own


def before() -> Task:
    """The task as the policy was trained."""
    return load_task({source!r})

'''


def write_task_file(symptoms: Sequence[Symptom], task: Task, source: str, folder: str | Path) -> str:
    """Write the file and return FILE.py:FUNCTION with all changes; `source` is what `load_task` takes for the task."""
    path = make_folder(folder) / FILE
    if is_own_code(source):
        place, _, function = source.rpartition(":")
        source = f"{Path(place).resolve()}:{function}"
    mending = [one for one in symptoms if one.changes]
    names = ", ".join(one.name for one in mending)
    text = _HEAD.format(task=task.name, names=names, file=path.name, all=ALL, source=source)
    for one in mending:
        text += _function(function_name(one), f"{one.change}.\n\n    Seen: {one.evidence}.\n    ", one.changes, task)
    everything = merged(change for one in mending for change in one.changes)
    write_atomic(path, text + _function(ALL, f"all changes together: {names}.", everything, task).rstrip() + "\n")
    return f"{path}:{ALL}"


def function_name(symptom: Symptom) -> str:
    """The function of a symptom in the file."""
    return re.sub(r"\W+", "_", symptom.name)


def _function(name: str, what: str, changes: Sequence[TaskChange], task: Task) -> str:
    lines = "\n".join(f"    {as_python(task, change)}" for change in changes)
    parts = {change.part for change in changes}
    maps = [("ranges", "randomize"), ("rewards", "rewards")]
    opened = "".join(f"    {name} = dict(task.{part})\n" for name, part in maps if part in parts)
    closed = ", ".join(f"{part}={name}" for name, part in maps if part in parts)
    returned = f"replace(task, {closed})" if closed else "task"
    return f'''
def {name}() -> Task:
    """{what[0].upper()}{what[1:]}"""
    task = before()
{opened}{lines}
    return {returned}

'''
