"""What `trueup record` shows: the rehearsed plan, and how the recording ended."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from rich.console import Console

from trueup.calibrate.active.plan import ActivePlan
from trueup.record.record import RecordResult
from trueup.report.calibration.active import add_active
from trueup.report.page import Page
from trueup.report.traces import joint_traces
from trueup.robot.load import Robot
from trueup.world.rehearse import Rehearsal, plan_figure_data

_UNITS = {"position": "rad", "velocity": "rad/s", "torque": "N m"}


def print_rehearsal(robot: Robot, rehearsal: Rehearsal, console: Console) -> None:
    """What the model says the plan will do."""
    spec = robot.spec
    torque = rehearsal.peak_torque / spec.torque_limit
    speed = rehearsal.peak_velocity / spec.velocity_limit
    console.print(
        f"plan: {rehearsal.plan.seconds:.1f} s; in the model up to {torque.max():.0%} of the torque limit "
        f"({spec.joint_names[int(np.argmax(torque))]}) and {speed.max():.0%} of the velocity limit "
        f"({spec.joint_names[int(np.argmax(speed))]}); no shape touches another"
    )
    for note in rehearsal.notes:
        console.print(f"  {note}", markup=False)


def print_result(result: RecordResult, path: Path, console: Console) -> None:
    """How it ended, in one or two lines."""
    colour = "green" if result.ended == "done" else "red"
    reason = f": {result.reason}" if result.reason else ""
    console.print(f"[{colour}]{result.ended}[/]{reason}   {result.rows} rows in {path}", soft_wrap=True)
    if result.loop is not None and result.loop.overruns:
        console.print(f"the loop was late {result.loop.overruns} times", style="yellow")


def write_plan_page(robot: Robot, rehearsal: Rehearsal, path: Path, active: ActivePlan | None = None) -> Path:
    """The plan and its rehearsal as zoomable traces; an active one with what it should tell."""
    page = Page(f"Plan for {robot.spec.name}", "Rehearsed in the model; nothing has moved.")
    page.facts({"length": f"{rehearsal.plan.seconds:.1f} s", "rate": f"{1 / rehearsal.plan.dt:g} Hz"})
    for note in rehearsal.notes:
        page.text(note)
    if active is not None:
        add_active(page, active)
    for quantity, traces in plan_figure_data(rehearsal.plan, rehearsal).items():
        page.section(quantity.capitalize())
        page.plot(joint_traces(rehearsal.plan.time, traces, robot.spec.joint_names, _UNITS[quantity]))
    return page.write(path)
