"""`trueup robot list|inspect|init|export`: what a robot is, a spec for one's own, a calibrated one for others."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from trueup.core.outputs import OutFolder


@dataclass(frozen=True, kw_only=True)
class ListVerb:
    """List the built-in robots.

    In: nothing. Out: name, joints, rates and options of each.
    """

    json: bool = False
    """Print one JSON object instead of a table."""


@dataclass(frozen=True, kw_only=True)
class InspectVerb:
    """Print a robot's joints, limits and masses, and what is wrong with them.

    In: a robot (built in, or your MJCF, URDF, spec or folder). Out: tables and a verdict; exit code 1 if not usable.
    """

    robot: tyro.conf.Positional[str]
    """Built-in name, or a folder, spec, MJCF or URDF of your own."""
    root: Path | None = None
    """Folder that meshes of an MJCF or URDF may be read from (default: the folder of the file)."""
    json: bool = False
    """Print one JSON object instead of tables."""


@dataclass(frozen=True, kw_only=True)
class InitVerb:
    """Turn an MJCF or URDF into a robot folder with a spec to edit.

    In: a model file. Out: a folder with model, assets and spec.toml, used like a built-in robot from then on.
    """

    model: tyro.conf.Positional[Path]
    """MJCF (.xml) or URDF (.urdf)."""
    out: OutFolder
    """Folder to write."""
    root: Path | None = None
    """Folder that meshes may be read from (default: the folder of the file)."""
    force: bool = False
    """Write into a folder that already holds files."""


@dataclass(frozen=True, kw_only=True)
class ExportVerb:
    """Write a calibrated robot for a simulator.

    In: a calibration (DIR of `trueup calibrate`). Out: mjcf: a robot folder, used like a built-in robot from then on;
    urdf, isaaclab, mjlab: a table of joints in their words. What a form cannot hold is printed and in LOSSES.md.
    """

    calibration: tyro.conf.Positional[Path]
    """Folder or params.json of a calibration."""
    to: Literal["mjcf", "urdf", "isaaclab", "mjlab"] = "mjcf"
    """Form to write."""
    out: OutFolder
    """Folder to write."""
    robot: str | None = None
    """The robot that was calibrated (default: the built-in one of that name)."""
    physics: float | None = None
    """Physics steps per second of the simulator that will read it, for delays in steps (default: the spec's)."""


RobotVerb = (
    Annotated[ListVerb, tyro.conf.subcommand("list")]
    | Annotated[InspectVerb, tyro.conf.subcommand("inspect")]
    | Annotated[InitVerb, tyro.conf.subcommand("init")]
    | Annotated[ExportVerb, tyro.conf.subcommand("export")]
)


def run(verb: ListVerb | InspectVerb | InitVerb | ExportVerb) -> int:
    """Do what was asked and print it."""
    from trueup.report.robot import print_inspection, print_zoo
    from trueup.robot.load import load_robot, zoo_names

    if isinstance(verb, ListVerb):
        print_zoo([load_robot(name) for name in zoo_names()], as_json=verb.json)
        return 0
    if isinstance(verb, ExportVerb):
        return _export(verb)
    from trueup.robot.inspection.inspect import inspect_robot

    if isinstance(verb, InspectVerb):
        result = inspect_robot(load_robot(verb.robot, root=verb.root))
        print_inspection(result, as_json=verb.json)
        return 1 if result.verdict == "not usable" else 0
    from trueup.robot.drafts.init import init_robot

    folder = init_robot(verb.model, verb.out, root=verb.root, force=verb.force)
    result = inspect_robot(load_robot(folder))
    print_inspection(result, as_json=False)
    return 0


def _export(verb: ExportVerb) -> int:
    from rich.console import Console

    from trueup.calibrate.export import export_calibration
    from trueup.core.errors import TrueupError
    from trueup.robot.load import load_robot, zoo_names
    from trueup.world.fitted.calibration import read_calibration

    result = read_calibration(verb.calibration)
    if verb.robot is None and result.robot not in zoo_names():
        raise TrueupError(f"say which robot was calibrated: --robot PATH (it calls itself {result.robot!r})")
    robot = load_robot(verb.robot or result.robot)
    export = export_calibration(robot, result, verb.to, verb.out, verb.physics)
    console = Console()
    for loss in export.losses:
        console.print(f"lost: {loss}", markup=False, soft_wrap=True)
    console.print(f"{verb.to} in {export.folder}", soft_wrap=True)
    return 0
