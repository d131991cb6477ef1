"""Output of `trueup record`: the rehearsed plan, predictions of an active motion, the recording's result."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from rich.console import Console

from trueup.calibrate.active import plan as active_plan
from trueup.calibrate.active.outlook import Outlook
from trueup.calibrate.active.plan import ActivePlan
from trueup.core.errors import TrueupError
from trueup.record.record import RecordResult
from trueup.record.session import plan_session, refuse_to_overwrite, run_session
from trueup.record.verbs import RecordVerb
from trueup.report.joints.overview import joint_sections, quantity
from trueup.report.log import print_report, write_log_page
from trueup.report.page import Page
from trueup.report.terminal import clock, progress_bar, text_table
from trueup.robot.excitation.excitation import ExcitationCfg
from trueup.robot.load import Robot, load_robot
from trueup.robot.reference import check_log
from trueup.world.fitted.calibration import Calibration, read_calibration
from trueup.world.rehearse import Rehearsal, plan_figure_data

_UNITS = {"position": "rad", "velocity": "rad/s", "torque": "N m"}


def run_record(verb: RecordVerb) -> int:
    """Plan, rehearse, record and check, and print each; 1 unless the recording is whole and usable."""
    if verb.out is None and not verb.dry_run:
        raise TrueupError("--out LOG.mcap says where the recording goes (or --dry-run to look at the plan only)")
    console, robot = Console(), load_robot(verb.robot)
    fit = None if verb.for_ is None else read_calibration(verb.for_)
    if fit is not None and not verb.dry_run:
        driver, remark = active_plan.driver_for(fit, verb.driver)
        verb = replace(verb, driver=driver)
        if remark:
            console.print(remark, soft_wrap=True, highlight=False)
    motion = verb.motion(robot.spec)
    if not verb.dry_run:
        refuse_to_overwrite(verb)
    active = None
    if verb.excitation == "active":
        active = _active(verb, robot, fit, motion, console)
        rehearsal = active.rehearsal
        print_active(active, console)
    else:
        with console.status("rehearsing the plan in the model"):
            rehearsal = plan_session(robot, motion)
    print_rehearsal(robot, rehearsal, console)
    if verb.dry_run or verb.out is None:
        if verb.page is not None:
            console.print(f"page   {write_plan_page(robot, rehearsal, verb.page, active)}")
        return 0
    with progress_bar("recording", console) as progress:
        session = run_session(robot, verb, rehearsal, progress=progress)
    print_result(session.result, verb.out, console)
    report = check_log(session.log, robot)
    print_report(session.log, report)
    if verb.page is not None:
        console.print(f"page   {write_log_page(session.log, report, verb.page, verb.out.name, robot)}")
    if session.result.ended == "interrupted":
        return 130
    return int(session.result.ended != "done" or not report.usable)


def _active(
    verb: RecordVerb, robot: Robot, fit: Calibration | None, motion: ExcitationCfg, console: Console
) -> ActivePlan:
    """Search the motion that identifies an earlier calibration's weak parameters."""
    if fit is None:
        raise TrueupError("an active excitation needs --for DIR, the calibration whose weak parameters it shall show")
    if verb.joints or verb.one_by_one:
        raise TrueupError("an active excitation chooses its joints itself: leave out --joints and --one-by-one")
    active = active_plan.ActiveCfg(
        seconds=motion.seconds, rate_hz=motion.rate_hz, seed=motion.seed, limits=motion.limits
    )

    def on_estimate(seconds: float) -> None:
        text = f"the search for a motion takes about {clock(seconds)} (Ctrl-C: nothing has moved yet)"
        console.print(f"{text}; usual motions are forecast first", soft_wrap=True)

    with progress_bar("seeking a motion", console) as progress:
        return active_plan.plan_active(
            robot,
            fit,
            active,
            progress=progress,
            on_estimate=on_estimate,
            on_outlook=lambda found: print_outlook(found, console),
        )


def print_outlook(found: Outlook, console: Console) -> None:
    """Print the forecast of usual excitations before a search."""
    usual = ", ".join(f"{kind} {value:.2f}" for kind, value in sorted(found.usual.items(), key=lambda kv: kv[1]))
    console.print(
        f"weak parameters are known to {found.before:.2f} of their prior widths (root mean square); predicted after "
        f"{found.seconds:.0f} s of {usual}",
        highlight=False,
        soft_wrap=True,
    )
    if found.enough:
        console.print(
            f"{' or '.join(found.enough)} should identify every one of them: --excitation {found.best} needs no search",
            style="yellow",
            soft_wrap=True,
        )


def print_rehearsal(robot: Robot, rehearsal: Rehearsal, console: Console) -> None:
    """Print the rehearsal of the plan."""
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
    """Print the result in one or two lines."""
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
        page.section("What this motion should tell")
        page.text(_ending(active))
        columns = ("weak parameter", "unit", "estimate", "standard error now", "predicted after", "then")
        page.table(columns, _expected(active))
        page.text(_others(active))
        page.text(_verdict(active))
    data = plan_figure_data(rehearsal.plan, rehearsal).items()
    shown = [quantity(name.capitalize(), _UNITS[name], traces, robot.spec) for name, traces in data]
    joint_sections(page, rehearsal.plan.time, robot.spec.joint_names, shown)
    return page.write(path)


def print_active(plan: ActivePlan, console: Console) -> None:
    """Predicted standard errors of the weak parameters, the gain over usual excitations, and how it ends."""
    console.print(text_table(("weak parameter", "unit", ">estimate", ">+- now", ">+- after", "then"), _expected(plan)))
    console.print(_ending(plan))
    console.print(_others(plan))
    console.print(_verdict(plan), style="bold yellow" if plan.advised else "bold", soft_wrap=True)


def _expected(plan: ActivePlan) -> list[tuple[str, ...]]:
    found = [(entry.estimate.parameter, entry.estimate, entry) for entry in plan.expected]
    return [
        (of.label, of.unit, f"{now.value:.4g}", f"{now.standard_error:.2g}", f"{then.standard_error:.2g}", then.word)
        for of, now, then in found
    ]


def _ending(plan: ActivePlan) -> str:
    seconds = plan.rehearsal.plan.seconds
    if plan.reached:
        return f"{seconds:.0f} s of this motion should identify every weak parameter: the plan ends there."
    if plan.seconds_needed is not None:
        return (
            f"{seconds:.0f} s do not identify all of them; about {plan.seconds_needed:.0f} s of such motion would "
            "(--seconds), or more room (--amplitude)."
        )
    return (
        f"{seconds:.0f} s do not identify all of them, and more of such motion will not either: what is left needs "
        "another pose, a known load, or fewer parameters."
    )


def _others(plan: ActivePlan) -> str:
    others = ", ".join(f"{name} {value:.2f}" for name, value in sorted(plan.others.items(), key=lambda kv: kv[1]))
    return (
        f"standard errors over prior widths, root mean square of the weak parameters: now {plan.before:.2f}, after "
        f"{plan.after:.2f}; the same time within the same limits with {others}"
    )


def _verdict(plan: ActivePlan) -> str:
    """Whether the search was worth it."""
    if not plan.advised:
        return f"this motion leaves standard errors {plan.gain:.1f} times smaller than the best usual one"
    how = f"{plan.gain:.2f} times smaller" if plan.gain >= 1.0 else f"{1 / plan.gain:.2f} times larger"
    return (
        f"little is gained: this motion leaves standard errors {how} than {plan.advised} would; "
        f"use --excitation {plan.advised}, it needs no search"
    )
