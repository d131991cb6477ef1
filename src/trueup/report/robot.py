"""Output of `trueup robot`: the zoo, a robot's joints and bodies, and findings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from trueup.core.errors import TrueupError
from trueup.report.terminal import text_table
from trueup.robot.load import MODEL_SUFFIXES, SPEC_FILE, Robot, load_robot, zoo_names
from trueup.robot.verbs import InitVerb, InspectVerb, ListVerb

if TYPE_CHECKING:
    from trueup.calibrate.verbs import ExportVerb
    from trueup.robot.inspection.inspect import Inspection
    from trueup.world.fitted.calibration import Calibration

_PARAMS_FILE = "params.json"  # of `world.fitted.calibration`, which needs MuJoCo
_COLOUR = {"error": "red", "warning": "yellow", "note": "dim"}
_VERDICT = {"ready": "green", "usable with warnings": "yellow", "not usable": "red"}


def run_list(verb: ListVerb) -> int:
    """Print one row per built-in robot."""
    robots = [load_robot(name) for name in zoo_names()]
    if verb.json:
        print(json.dumps([_zoo_row(robot) for robot in robots]))
        return 0
    table, console = text_table(("name", ">joints", "base", ">rates", "what it is")), Console()
    for robot in robots:
        row = _zoo_row(robot)
        options = ", ".join(f"{name}={option.default:g}" for name, option in robot.spec.options.items())
        what = robot.spec.description + (f" [dim]({options})[/dim]" if options else "")
        rates = f"{row['control_hz']:g}/{row['physics_hz']:g} Hz"
        table.add_row(robot.spec.name, str(row["joints"]), str(row["base"]), rates, what)
    console.print(table)
    console.print(
        "\nUse one by its name, your own by its path: `trueup robot inspect go2`, `trueup robot inspect my.urdf`.\n"
        "Options follow a colon: `pendulum:load_mass=1.0,load_length=0.2`."
    )
    return 0


def run_inspect(verb: InspectVerb) -> int:
    """Inspect and print; 1 if the robot is not usable."""
    from trueup.robot.inspection.inspect import inspect_robot

    result = inspect_robot(load_robot(verb.robot, root=verb.root))
    print_inspection(result, as_json=verb.json)
    return int(result.verdict == "not usable")


def run_init(verb: InitVerb) -> int:
    """Write the folder, then print what is in it."""
    from trueup.robot.drafts.init import init_robot
    from trueup.robot.inspection.inspect import inspect_robot

    folder = init_robot(verb.model, verb.out, root=verb.root, force=verb.force)
    print_inspection(inspect_robot(load_robot(folder)))
    return 0


def run_export(verb: ExportVerb) -> int:
    """Write the calibrated robot, or the robot as it is, and print what was lost."""
    place, losses = _export_robot(verb) if _is_robot(verb) else _export_calibration(verb)
    console = Console()
    for loss in losses:
        console.print(f"lost: {loss}", markup=False, soft_wrap=True)
    console.print(f"{verb.to} in {place}", soft_wrap=True)
    return 0


def _is_robot(verb: ExportVerb) -> bool:
    """A built-in name, a folder with a spec, or a spec or model file; all else is taken for a calibration.

    A robot folder that was written from a calibration holds both: URDF is written of the whole robot.
    """
    path, suffixes = Path(verb.what), (".toml", *MODEL_SUFFIXES)
    folder = (path / SPEC_FILE).is_file() and (verb.to == "urdf" or not (path / _PARAMS_FILE).is_file())
    return folder or verb.what.partition(":")[0] in zoo_names() or path.suffix.lower() in suffixes


def _export_robot(verb: ExportVerb) -> tuple[Path, tuple[str, ...]]:
    from trueup.world.engines.urdf import export_urdf

    if verb.to != "urdf":
        raise TrueupError(
            f"a robot without a calibration is written with --to urdf; {verb.to} needs one (`trueup calibrate`)"
        )
    export = export_urdf(load_robot(verb.what), verb.out)
    return export.file, export.losses


def _export_calibration(verb: ExportVerb) -> tuple[Path, tuple[str, ...]]:
    from trueup.calibrate.export import export_calibration
    from trueup.world.fitted.calibration import read_calibration

    result = read_calibration(verb.what)
    robot = load_robot(calibrated_robot(result, verb.robot))
    export = export_calibration(robot, result, verb.to, verb.out, verb.physics)
    return export.folder, export.losses


def calibrated_robot(fit: Calibration, given: str | None) -> str:
    """The robot of a calibration: the one that was given, or the built-in one of that name."""
    if given is None and fit.robot not in zoo_names():
        raise TrueupError(f"say which robot was calibrated: --robot PATH (it calls itself {fit.robot!r})")
    return given or fit.robot


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


def print_inspection(result: Inspection, *, as_json: bool = False) -> None:
    """Joints, bodies, findings and the verdict."""
    if as_json:
        print(json.dumps(result.as_dict()))
        return
    console = Console()
    base = "floating base" if result.floating else "fixed base"
    counts = ", ".join(f"{count} {what}" for what, count in result.counts.items())
    console.print(f"[bold]{result.name}[/bold]  {base}, {result.total_mass:.3f} kg, {counts}")
    names = ("joint", ">position", ">velocity", ">torque", ">kp", ">kd", ">default", ">inertia", ">servo")
    joints = text_table(names, padding=(0, 1, 0, 0))
    joints.add_row("", "rad", "rad/s", "N m", "N m/rad", "N m s", "rad", "kg m²", "Hz", style="dim")
    for joint in result.joints:
        low, high = joint.position
        numbers = (joint.velocity, joint.torque, joint.kp, joint.kd, joint.default, joint.inertia)
        cells = [f"{value:.3g}" for value in numbers]
        joints.add_row(joint.name, f"{low:.2f}..{high:.2f}", *cells, f"{joint.servo_hz:.1f}")
    bodies = text_table(("body", "on", ">mass", ">centre of mass", ">principal inertia"))
    bodies.add_row("", "", "kg", "m", "kg m²", style="dim")
    for body in result.bodies:
        com = " ".join(f"{value:.4f}" for value in body.com)
        inertia = " ".join(f"{value:.3g}" for value in body.inertia)
        bodies.add_row(body.name, body.parent, f"{body.mass:.4g}", com, inertia)
    for table in (joints, bodies):
        console.print(table)
    for finding in result.findings:
        console.print(f"\n[{_COLOUR[finding.level]}]{finding.level}[/] {finding.code}  [bold]{finding.where}[/bold]")
        console.print(f"  {finding.message}\n  fix: {finding.fix}", markup=False)
    console.print(f"\nverdict: [{_VERDICT[result.verdict]}]{result.verdict}[/]")
