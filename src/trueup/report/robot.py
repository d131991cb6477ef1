"""What `trueup robot` shows: the zoo, a robot's joints and bodies, and what is wrong with it."""

from __future__ import annotations

import json
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from trueup.robot.inspect import Inspection
from trueup.robot.load import Robot

_COLOUR = {"error": "red", "warning": "yellow", "note": "dim"}
_VERDICT = {"ready": "green", "usable with warnings": "yellow", "not usable": "red"}


def print_zoo(robots: Sequence[Robot], *, as_json: bool = False) -> None:
    """One row per built-in robot."""
    if as_json:
        print(json.dumps([_zoo_row(robot) for robot in robots]))
        return
    table = Table(box=None, header_style="bold")
    for column in ("name", "joints", "base", "control / physics", "options", "what it is"):
        table.add_column(column)
    for robot in robots:
        row = _zoo_row(robot)
        options = ", ".join(f"{name}={option.default:g}" for name, option in robot.spec.options.items())
        rates = f"{row['control_hz']:g} / {row['physics_hz']:g} Hz"
        table.add_row(
            robot.spec.name, str(row["joints"]), str(row["base"]), rates, options, robot.spec.description
        )
    console = Console()
    console.print(table)
    console.print(
        "\nUse one by its name, your own by its path: `trueup robot inspect go2`, `trueup robot inspect my.urdf`."
    )
    console.print("Options follow a colon: `pendulum:load_mass=1.0,load_length=0.2`.")


def _zoo_row(robot: Robot) -> dict[str, object]:
    spec = robot.spec
    return {
        "name": spec.name,
        "joints": spec.njoint,
        "base": "floating" if spec.base.floating else "fixed",
        "control_hz": spec.control_hz,
        "physics_hz": spec.physics_hz,
        "options": sorted(spec.options),
        "description": spec.description,
    }
