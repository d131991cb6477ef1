"""Output of `trueup deploy` and its page: verdict, criteria, figures and traces of the run.

Modules of the run are imported before the robot is connected, those of the output only afterwards, so that the robot
does not wait.
"""

from __future__ import annotations

import math
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from trueup.deploy.verbs import DeployVerb, ReplayVerb

if TYPE_CHECKING:
    from rich.console import Console

    from trueup.deploy.deploy import Deployed
    from trueup.deploy.session.outcome import RunOutcome
    from trueup.report.page import Page


def run_deploy(verb: DeployVerb) -> int:
    """Climb one rung, print how it went and write its page; 0 passed, 1 not passed, 3 stopped."""
    from trueup.deploy.deploy import deploy

    deployed = deploy(verb, lambda line: print(line, flush=True))
    from rich.console import Console

    console = Console()
    print_deployed(deployed, console)
    if deployed.folder is not None:
        page = deploy_page(deployed).write(deployed.folder / "index.html")
        console.print(f"page   {page}", soft_wrap=True, highlight=False)
    return deployed.exit_code


def run_replay(verb: ReplayVerb) -> int:
    """Compute a recorded run again and say whether it came out the same; 1 if not."""
    from trueup.deploy.ladder.replay import replay_recording

    found = replay_recording(verb.recording, verb.bundle)
    damaged = f"; {found.damaged} damaged rows left out" if found.damaged else ""
    if found.same:
        print(f"same   {found.rows} control steps of {found.path}, every command bit for bit{damaged}")
        return 0
    why = (
        f"{found.different} of {found.rows} differ, first {found.first}, by up to {found.worst:.3g}"
        if found.rows
        else ""
    )
    print(f"DIFFERENT   {found.path}: {why or 'no control step of a policy in it'}{damaged}")
    return 1


def verdict_line(deployed: Deployed) -> str:
    """How the run ended, in one sentence."""
    record, run = deployed.record, deployed.outcome
    if run is not None and run.ended in ("tripped", "estop"):
        return f"stopped after {run.seconds:.1f} s ({run.guard}): {run.reason}"
    if record.passed:
        return f"rung {record.rung} passed: {record.name} on {record.identity or record.robot}"
    failed = ", ".join(answer.name for answer in record.judged if not answer.passed)
    return f"rung {record.rung} not passed: {failed}"


def next_line(deployed: Deployed, bundle: Path) -> str:
    """Next step after a passed rung."""
    from trueup.deploy.ladder.records import RUNGS

    record, driver = deployed.record, deployed.next_driver or "DRIVER"
    k = RUNGS.index(record.rung)
    if not record.passed or k + 1 == len(RUNGS):
        return ""
    quoted = f"'{driver}'" if set(driver) & set("?&") else driver  # shells take these for something else
    options = " --uncertified" if record.uncertified else ""
    return f"trueup deploy {bundle} --rung {RUNGS[k + 1]} --driver {quoted}{options}"


def print_deployed(deployed: Deployed, console: Console) -> None:
    """Print the criteria, the figures and the verdict."""
    from trueup.report.terminal import text_table

    record = deployed.record
    rows = [
        (
            answer.name,
            "[green]passed[/green]" if answer.passed else "[red]failed[/red]",
            _escaped(answer.found),
            _escaped(answer.asked),
        )
        for answer in record.judged
    ]
    console.print(text_table(("question", "", "found", "asked"), rows))
    for name, value in facts(deployed).items():
        console.print(f"{name:<12}{value}", highlight=False, soft_wrap=True, markup=False)
    if record.uncertified:
        console.print(f"[yellow]uncertified[/yellow] {_escaped(record.uncertified)}", soft_wrap=True, highlight=False)
    colour = "green" if deployed.exit_code == 0 else "red"
    console.print(f"[bold {colour}]{_escaped(verdict_line(deployed))}[/]", soft_wrap=True, highlight=False)
    console.print(f"record   {deployed.path}", soft_wrap=True, highlight=False)
    following = next_line(deployed, _bundle(deployed))
    if following:
        console.print(f"next     {following}", soft_wrap=True, highlight=False)


def facts(deployed: Deployed) -> dict[str, str]:
    """Figures of a run by name, those that there are."""
    out: dict[str, str] = {}
    run = deployed.outcome
    if run is not None:
        out |= _run_facts(run)
    if deployed.shadowed is not None and deployed.shadowed.compared:
        found = deployed.shadowed
        alike = "" if math.isnan(found.correlation) else f", correlation {found.correlation:.2f}"
        out["agreement"] = (
            f"targets differ by {found.agreement:.3f} rad RMS from what is being sent ({found.compared} steps{alike})"
        )
    elif deployed.shadowed is not None:
        out["agreement"] = "nobody else commanded the robot: nothing to compare with"
    if deployed.log is not None:
        away = deployed.log.agreement
        out["log"] = f"{deployed.log.in_range:.1%} of {deployed.log.steps} steps in range" + (
            "" if math.isnan(away) else f"; targets {away:.3f} rad RMS from those in the log"
        )
    if deployed.guard is not None:
        clips = ", ".join(f"{count} {name}" for name, count in deployed.guard.status.clips.items()) or "none"
        out["guard"] = f"{deployed.guard.ticks} commands, changed: {clips}"
    if "first command" in deployed.startup:
        parts = ", ".join(f"{name} {value:.2f}" for name, value in deployed.startup.items() if name != "total")
        out["start"] = f"{deployed.startup['total']:.2f} s to the first command ({parts})"
    return out


def _run_facts(run: RunOutcome) -> dict[str, str]:
    out = {
        "policy": f"{run.steps} control steps, {run.seconds:.1f} s; {run.misses} late by a period",
        "lateness": "median {:.2f} ms, 99.9 % {:.2f} ms, largest {:.2f} ms".format(*run.late_ms),
        "step": "median {:.2f} ms, 99.9 % {:.2f} ms, largest {:.2f} ms".format(*run.step_ms),
    }
    if math.isfinite(run.distance_median):
        out["training"] = f"distance median {run.distance_median:.2f}, largest {run.distance_max:.2f} (1 is ordinary)"
    for term, share in run.outside.items():
        out[f"  {term}"] = f"outside its training range in {share:.1%}: {run.first_outside[term]}"
    return out


def deploy_page(deployed: Deployed) -> Page:
    """The run as a page; with plotly, traces of what was asked, commanded and measured."""
    from trueup.report.page import Badge, Page

    record = deployed.record
    page = Page(f"Deploy: {record.name}, rung {record.rung}", f"{record.robot} at {record.identity}, {record.started}")
    page.verdict("good" if deployed.exit_code == 0 else "bad", verdict_line(deployed) + ".")
    page.facts({"policy ran": f"{record.seconds:.1f} s", "bundle": record.bundle[:12], "record": record.sha256[:12]})
    if record.uncertified:
        page.verdict("warn", f"Uncertified: {record.uncertified}")
    for text in record.allowed:
        page.verdict("warn", f"Allowed: {text}")
    page.section("Questions")
    rows = [
        (answer.name, Badge("good", "passed") if answer.passed else Badge("bad", "failed"), answer.found, answer.asked)
        for answer in record.judged
    ]
    page.table(("question", "verdict", "found", "asked"), rows)
    page.section("Figures")
    page.table(("what", "found"), list(facts(deployed).items()))
    if deployed.shadowed is not None and deployed.shadowed.compared:
        page.table(("joint", "RMS difference, rad"), list(deployed.shadowed.by_joint.items()))
    if deployed.folder is not None and find_spec("plotly") is not None:
        _traces(page, deployed.folder)
    return page


def _traces(page: Page, folder: Path) -> None:
    """What policy.rows holds, over time."""
    import numpy as np

    from trueup.deploy.session.recording import FILE, read_rows
    from trueup.report.traces import chart, joint_traces, line_style

    if not (folder / FILE).is_file():
        return
    found = read_rows(folder / FILE)
    if len(found) < 2:
        return
    columns, time = found.columns, found.columns["wall_s"][:, 0]
    page.section("Asked, and distance to training")
    figure = chart(320, {"title": {"text": "time (s)"}}, {})
    for k, values in enumerate(columns["asked"].T):
        figure.add_scatter(x=time, y=values, name=f"asked {k}", mode="lines", line=line_style(k))
    figure.add_scatter(x=time, y=columns["distance"][:, 0], name="distance", mode="lines", line=line_style(5))
    page.plot(figure, "What was asked, column by column, and how far observations were from training (1: ordinary).")
    page.section("Joints")
    traces = {"measured": columns["joint_pos"], "sent": columns["sent_pos"]}
    page.plot(joint_traces(time, traces, found.header.joint_names, "rad"), "Positions and the targets that were sent.")
    page.section("Timing")
    figure = chart(280, {"title": {"text": "time (s)"}}, {"title": {"text": "ms"}})
    for k, (name, label) in enumerate((("late_s", "late"), ("step_s", "step"))):
        figure.add_scatter(
            x=time, y=1e3 * np.asarray(columns[name][:, 0]), name=label, mode="lines", line=line_style(k)
        )
    page.plot(figure, "From due time to the start of a step, and what it took with sending and recording.")


def _bundle(deployed: Deployed) -> Path:
    """The bundle beside which the record lies."""
    ladder = next(place for place in deployed.path.parents if place.name.endswith(".ladder"))
    return ladder.with_name(ladder.name.removesuffix(".ladder"))


def _escaped(text: str) -> str:
    from rich.markup import escape

    return escape(text)
