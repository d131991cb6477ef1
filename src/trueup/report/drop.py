"""What `trueup sim` shows: how the drop ended, a film, a page of traces."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from rich.console import Console

from trueup.report.page import Page
from trueup.report.traces import joint_traces
from trueup.robot.load import Robot
from trueup.robot.model import ModelCfg
from trueup.view.film import film, visual_model
from trueup.world.drop import Drop, DropCfg


def print_drop(robot: Robot, result: Drop, console: Console) -> None:
    """Say in a few lines how it ended."""
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


def drop_page(robot: Robot, result: Drop, film_path: Path | None = None) -> Page:
    """A page with the film and one zoomable row of traces per joint."""
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
    if film_path is not None and film_path.suffix == ".mp4":
        page.section("Film")
        page.film(film_path, "Simulation 0 in real time.")
    page.section("Joint positions")
    page.text("Simulation 0: what the encoders report and what was commanded. Drag to zoom, double-click to reset.")
    positions = {"measured": log["joint_pos"], "target": log["target_pos"]}
    page.plot(joint_traces(log.time, positions, spec.joint_names, "rad"))
    page.section("Joint torques")
    page.plot(joint_traces(log.time, {"servo torque": log["joint_torque"]}, spec.joint_names, "N m"))
    if np.isfinite(result.final_height).all() and len(result.final_height) > 1:
        low, mid, high = np.percentile(result.final_height, [5, 50, 95])
        page.section("All simulations")
        page.table(
            ("base height at the end", "5 %", "median", "95 %"), [("m", f"{low:.3f}", f"{mid:.3f}", f"{high:.3f}")]
        )
    return page


def write_drop_page(robot: Robot, result: Drop, path: Path, film: Path | None = None) -> Path:
    """Write the page."""
    return drop_page(robot, result, film).write(path)
