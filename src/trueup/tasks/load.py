"""From a task's name to the task, and from a task to its environment."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import count
from typing import Any, NamedTuple

from trueup.core.errors import TrueupError, did_you_mean
from trueup.core.own_code import is_own_code, own_function
from trueup.robot.load import load_robot
from trueup.robot.spec import RobotSpec
from trueup.tasks import zoo
from trueup.tasks.env import EnvCfg, TaskEnv
from trueup.tasks.task import Task
from trueup.tasks.terms import rewards

__all__ = [
    "DescribedTask",
    "EnvCfg",
    "described_tasks",
    "load_task",
    "make_env",
    "name_object",
    "task_maker",
    "task_names",
]


_OBJECT = "object:"
_objects: dict[str, Task] = {}  # Task objects of this process that have no name of their own


def name_object(task: Task, name: str | None = None) -> str:
    """A name by which `load_task` finds this Task object in this process; the built-in one if it is a built-in task."""
    if name is None and task.name in task_names() and load_task(task.name) == task:
        return task.name
    names = (f"{_OBJECT}{task.name}" + (f"#{k}" if k > 1 else "") for k in count(1))
    name = name or next(key for key in names if _objects.get(key, task) == task)
    _objects[name] = task
    return name


def task_names() -> tuple[str, ...]:
    """Names of the built-in tasks."""
    return tuple(_makers())


def load_task(name: str, robot: str | None = None) -> Task:
    """Load a built-in task by its name, or the user's own: FILE.py:FUNCTION, a function that returns a Task.

    robot   a name or folder: that robot in place of the task's own, with the same joints and other numbers
    """
    task = _named(name)
    if robot is None:
        return task
    other = load_robot(robot).spec
    if lack := _lack(load_robot(task.robot).spec, other):
        if task.goal.scales and _is_general(task) and other.base.floating and other.feet:
            advice = f"`trueup task init {robot} --like {name}` writes one for it"
        else:
            advice = "write a task of its own (docs/tasks.md) that names its joints"
        raise TrueupError(f"task {task.name!r} is written for {task.robot!r}, and robot {robot!r} {lack}: {advice}")
    return replace(task, robot=robot)


def _lack(own: RobotSpec, other: RobotSpec) -> str:
    """What a robot lacks of another's, in words; empty where they have the same joints in the same order."""
    if own.joint_names == other.joint_names:
        return ""
    needed = {
        "floating base": own.base.floating > other.base.floating,
        "feet": len(own.feet) > len(other.feet),
        "end effector": (own.end_effector is not None) > (other.end_effector is not None),
    }
    odd = [joint for joint in own.joint_names if joint not in other.joint_names]
    if odd:
        needed |= {f"joint {odd[0]!r}" + (f" and {len(odd) - 1} more" if len(odd) > 1 else ""): True}
    elif len(own.joint_names) == len(other.joint_names):
        return "has its joints in another order"
    else:
        return f"has joints beside them, such as {next(j for j in other.joint_names if j not in own.joint_names)!r}"
    return "lacks " + ", ".join(what for what, is_missing in needed.items() if is_missing)


def _advice(name: str, makers: Iterable[str]) -> str:
    """Suggest a name in place of one that is no task: a function of a file, a task of a robot."""
    if name.endswith(".py"):
        return f": name the function in it that returns the task, {name}:FUNCTION"
    if own := [task for task in makers if task.startswith(f"{name}-")]:
        return f"; tasks of robot {name!r}: {', '.join(own)}"
    return f"{did_you_mean(name, makers)}; your own is named FILE.py:FUNCTION"


def task_maker(name: str) -> Callable[..., Any]:
    """The function of a built-in task, or of the user's own."""
    makers = _makers()
    if name in makers:
        return makers[name]
    return own_function(name) if is_own_code(name) else lambda: load_task(name)


def _named(name: str) -> Task:
    if name.startswith(_OBJECT):
        if name not in _objects:
            raise TrueupError(
                f"{name!r} is a Task object of another process: give it again with tu.train(task, out=RUN, "
                "resume=True), or train on a function that returns it (FILE.py:FUNCTION), which a run can record"
            )
        return _objects[name]
    if is_own_code(name) and name.partition(":")[0] not in task_names():
        own = own_function(name)()
        if not isinstance(own, Task):
            raise TrueupError(f"{name} must return a trueup.tasks.task.Task, found {type(own).__name__}")
        return own
    makers = _makers()
    base, _, motions = name.partition(":")
    if motions and base in makers and "motions" in inspect.signature(makers[base]).parameters:
        return makers[base](motions=tuple(motions.split(",")))  # type: ignore[call-arg]
    if name not in makers:
        raise TrueupError(f"no task {name!r}{_advice(name, makers)}")
    return makers[name]()


class DescribedTask(NamedTuple):
    """A built-in task in one line; `scalable`: `trueup task init` can write one like it for another robot."""

    name: str
    robot: str
    what: str
    scalable: bool


def described_tasks() -> list[DescribedTask]:
    """Every built-in task with the first line of its function's docstring."""
    out = []
    for name, make in _makers().items():
        task, what = make(), inspect.getdoc(make) or ""
        out.append(
            DescribedTask(name, task.robot, what.partition("\n")[0], bool(task.goal.scales) and _is_general(task))
        )
    return out


def _is_general(task: Task) -> bool:
    """Whether its rewards know no robot: terms of the task's own module may name joints of theirs."""
    return all(inspect.getmodule(_maker(term.function)) is rewards for term in task.rewards.values())


def _maker(term: Callable[..., Any]) -> Callable[..., Any]:
    return term if inspect.isfunction(term) else type(term)


make_env = TaskEnv  # of a task and an EnvCfg


def _makers() -> dict[str, Callable[[], Task]]:
    """Functions of the built-in tasks by name, sorted: every module of the zoo names its variants in TASKS."""
    found: dict[str, Callable[[], Task]] = {}
    for info in pkgutil.iter_modules(zoo.__path__, zoo.__name__ + "."):
        module = importlib.import_module(info.name)
        found |= {task: getattr(module, function) for task, function in module.TASKS.items()}
    return dict(sorted(found.items()))
