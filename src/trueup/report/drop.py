"""Output of `trueup sim`: final state of the drop, a film, a page of traces."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from rich.console import Console

from trueup.core.errors import TrueupError
from trueup.data.tables.read import SUFFIXES
from trueup.report.joints.overview import joint_sections, quantity
from trueup.report.page import Page
from trueup.report.terminal import print_origins, progress_bar
from trueup.robot.load import Robot, load_robot
from trueup.robot.model import ModelCfg
from trueup.view.film import film, visual_model
from trueup.world.drop import Drop, drop
from trueup.world.verbs import DropCfg, SimVerb


def run_sim(verb: SimVerb) -> int:
    """Replay logs; or drop a robot, print, film, 1 if a simulation diverged."""
    console = Console()
    if verb.what and all(_is_log(name, verb.mapping) for name in verb.what):
        from trueup.report.calibration.score_logs import run_logs  # a drop needs none of the calibration

        return run_logs(verb, console)
    if len(verb.what) != 1:
        raise TrueupError(
            f"name one robot to drop, or logs to replay (--robot says whose), found {' '.join(verb.what) or 'nothing'}"
        )
    robot = load_robot(verb.what[0])
    with progress_bar("simulating", console) as progress:
        result = drop(robot, verb.cfg, progress=progress)
    print_drop(robot, result, console)
    if verb.cfg.params is not None:
        print_origins(result.origins, console)
    if verb.film is not None:
        with progress_bar("filming", console) as progress:
            film_drop(robot, result, verb.cfg, verb.film, progress)
        console.print(f"film   {verb.film}")
    if verb.page is not None:
        write_drop_page(robot, result, verb.page, film=verb.film)
        console.print(f"page   {verb.page}")
    return int(result.diverged > 0)


def _is_log(name: str, mapping: str | None) -> bool:
    """Whether a positional names a log: a file of a known kind, a bag, or with a mapping whatever exists."""
    path = Path(name)
    if mapping is not None:
        return path.exists()
    if path.is_dir():
        return (path / "metadata.yaml").exists() or any(path.glob("*.db3"))
    return path.name.lower().endswith((".mcap", ".db3", *SUFFIXES))


def print_drop(robot: Robot, result: Drop, console: Console) -> None:
    """Print the final state of the drop in a few lines."""
    spec, log = robot.spec, result.log
    nsim = len(result.final_height)
    error = np.abs(log["joint_pos"][-1] - spec.default_pose)
    worst = int(error.argmax())
    console.print(f"{spec.name}: {nsim} x {log.time[-1] + 1 / result.sample_hz:.1f} s simulated")
    if np.isfinite(result.final_height).all():
        low, high = result.final_height.min(), result.final_height.max()
        spread = f"{low:.3f} m" if nsim == 1 else f"{low:.3f} to {high:.3f} m"
        console.print(f"base at the end   {spread} (standing height {spec.base.stand_height:.3f} m)")
    console.print(f"furthest joint    {spec.joint_names[worst]} {error[worst]:.3f} rad from its default")
    console.print(f"speed             {result.steps_per_second:,.0f} control steps/s")
    if result.diverged:
        console.print(
            f"[red]{result.diverged} of {nsim} simulations diverged[/red]: run `trueup robot inspect {spec.name}`"
        )


def film_drop(
    robot: Robot, result: Drop, cfg: DropCfg, path: Path, progress: Callable[[float], None] | None = None
) -> Path:
    """Film simulation 0."""
    model = visual_model(robot, ModelCfg(base=cfg.base))
    return film(model, result.qpos, path, sample_hz=result.sample_hz, progress=progress)


def write_drop_page(robot: Robot, result: Drop, path: Path, film: Path | None = None) -> Path:
    """Write a page with the film and one zoomable row of traces per joint."""
    spec, log = robot.spec, result.log
    page = Page(f"{spec.name} in simulation", spec.description)
    page.facts(
        {
            "simulations": len(result.final_height),
            "simulated time": f"{log.time[-1] + 1 / result.sample_hz:.1f} s each",
            "control rate": f"{spec.control_hz:g} Hz over {spec.physics_hz:g} Hz physics",
            "speed": f"{result.steps_per_second:,.0f} control steps/s",
            "diverged": result.diverged,
        }
    )
    if film is not None and film.suffix == ".mp4":
        page.section("Film")
        page.film(film, "Simulation 0 in real time.")
    page.text("Traces are of simulation 0: what the encoders report and what was commanded. Drag to zoom.")
    moved = {"measured": log["joint_pos"], "target": log["target_pos"]}
    shown = [quantity("Joint positions", "rad", moved, spec)]
    shown.append(quantity("Joint torques", "N m", {"servo torque": log["joint_torque"]}, spec))
    joint_sections(page, log.time, spec.joint_names, shown)
    if np.isfinite(result.final_height).all() and len(result.final_height) > 1:
        low, mid, high = np.percentile(result.final_height, [5, 50, 95])
        page.section("All simulations")
        page.table(("base height at the end, m", "5 %", "median", "95 %"), [("", low, mid, high)])
    return page.write(path)
