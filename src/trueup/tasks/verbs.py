"""Configs of `trueup task list|init`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import tyro

from trueup.core.files import OutFile


@dataclass(frozen=True, kw_only=True)
class TasksVerb:
    """List the built-in tasks.

    In: nothing. Out: name, robot and contents of each, and whether `trueup task init` can scale it.
    """

    json: bool = False  # Print one JSON object instead of a table.


@dataclass(frozen=True, kw_only=True)
class InitTaskVerb:
    """Write a task for another robot by scaling one that is known to learn.

    In: a robot and the name of a task. Out: a Python file whose numbers follow from masses, legs and motors of both
    robots, each with its reason beside it; train it as FILE.py:FUNCTION.
    """

    robot: tyro.conf.Positional[str]  # Built-in name, or a folder, spec, MJCF or URDF of your own.
    like: str  # Task to scale: a built-in one or FILE.py:FUNCTION, e.g. go2-velocity.
    out: OutFile  # Python file to write.
    speeds: Literal["same", "froude"] = "same"
    """Commands: the same in m/s, or ~ sqrt(g l) so that the robot walks alike."""
    force: bool = False  # Write over a file that exists.
