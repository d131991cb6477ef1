"""Tasks of the transfer table that are not in the zoo, named as `transfer_tasks.py:FUNCTION`."""

from __future__ import annotations

from dataclasses import replace

from trueup.tasks.load import load_task
from trueup.tasks.task import Task


def plain() -> Task:
    """go2-velocity with pushes and sensor noise, and nothing else drawn."""
    return replace(load_task("go2-velocity"), randomize={})
