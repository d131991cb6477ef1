"""References: how a run's config records a task and a robot that were given as Python objects."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path

from trueup.core.errors import TrueupError
from trueup.robot.load import Robot, load_robot
from trueup.tasks.load import name_object
from trueup.tasks.task import Task


def task_reference(task: str | Task | Callable[[], Task]) -> str:
    """A name for `load_task`: of a built-in task, FILE.py:FUNCTION of a function, or object:NAME of any other Task.

    An object:NAME is known to this process only: such a run is assessed, filmed and resumed here, and in another
    process after `tu.train(task, out=RUN, resume=True)` with the same Task.
    """
    if isinstance(task, str):
        return task
    if isinstance(task, Task):
        return name_object(task)
    file = inspect.getsourcefile(task)
    named = file is not None and Path(file).is_file() and task.__qualname__.isidentifier()
    if file is None or not named or task.__module__.startswith("trueup."):
        return name_object(task())  # built in, or of a notebook or within another function: no file can be named
    return f"{Path(file).absolute()}:{task.__qualname__}"


def robot_reference(robot: Robot | str | Path | None) -> str | None:
    """A name for `load_robot`; refuses a Robot object that is not what its files say."""
    if not isinstance(robot, Robot):
        return None if robot is None else str(robot)
    options = ",".join(f"{name}={value}" for name, value in robot.options.items())
    path = robot.model_path.absolute()
    places = [robot.spec.name] if robot.built_in else [str(path.parent), str(path)]
    for place in places:
        reference = f"{place}:{options}" if options else place
        try:
            if load_robot(reference, root=robot.root).spec == robot.spec:
                return reference
        except TrueupError:
            continue
    raise TrueupError(
        f"robot {robot.spec.name!r} was changed in Python, and a run must be able to load it again: write the change "
        "into a robot folder (spec.toml beside the model) and give the folder",
        file=robot.model_path,
    )
