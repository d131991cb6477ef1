"""Output of `trueup calibrate actuator`: a line per rung, the table, the recommendation, and the page with plots."""

from __future__ import annotations

import json

from rich.console import Console

from trueup.calibrate.actuator.costs import Timetable
from trueup.calibrate.actuator.folder import LadderFile, RungResult
from trueup.calibrate.actuator.ladder import Ladder, run_ladder
from trueup.calibrate.actuator.recommend import overfits
from trueup.calibrate.actuator.rungs import RUNGS, rung_named
from trueup.calibrate.verbs import ActuatorVerb, run
from trueup.report.calibration.actuator_plots import horizon_chart, ladder_chart, motion_sections
from trueup.report.page import Badge, Cell, Page, Status, require_plots
from trueup.report.terminal import clock, progress_bar, text_table

_WIDE = 110  # characters that titles and all columns need
_STATUS: dict[str, Status] = {"done": "good", "not excited": "warn", "not supported": "plain"}


def run_actuator(verb: ActuatorVerb) -> int:
    """Fit the rungs, print, write."""
    console = Console()
    if verb.page:
        require_plots()
    try:
        with progress_bar("comparing", console) as progress:
            show = {"on_rung": lambda result: print_rung(result, console), "on_plan": lambda t: print_plan(t, console)}
            ladder = run(verb, run_ladder, progress=progress, **show)
    except KeyboardInterrupt:
        console.print(f"rungs that are done are in {verb.out}: with --resume it goes on", soft_wrap=True)
        raise
    print_ladder(ladder, console)
    console.print(f"ladder {verb.out / 'ladder.json'}", soft_wrap=True)
    if verb.page:
        console.print(f"page   {ladder_page(ladder).write(verb.out / 'index.html')}", soft_wrap=True)
    return 0


def print_plan(table: Timetable, console: Console) -> None:
    """Print the rungs to compare and the estimated time on this machine."""
    names, about = " ".join(rung.name for rung in table.rungs), clock(table.estimate_s)
    console.print(f"comparing {names}", highlight=False, soft_wrap=True)
    if table.limit_s is None:
        console.print(f"about {about} on this machine; Ctrl-C loses no rung that is done", highlight=False)
        return
    thorough = clock(table.costs.all_of(RUNGS))
    text = f"about {about} on this machine, at most {clock(table.limit_s)}: what does not fit is left out"
    console.print(f"{text}; --thorough compares all rungs, about {thorough}", highlight=False, soft_wrap=True)


def print_rung(result: RungResult, console: Console) -> None:
    """Print one line for a finished rung."""
    title = rung_named(result.rung).title
    if result.scores is None:
        console.print(f"{title:26} {result.status}: {result.reason}", style="dim", markup=False, soft_wrap=True)
        return
    whole = result.scores.whole
    more = f" ({result.status}: {result.reason})" if result.reason else ""
    text = f"{title:26} {1e3 * whole.mean:8.2f} +- {1e3 * whole.se:.2f} mrad unseen, {result.fit_s:.0f} s{more}"
    console.print(text, markup=False, soft_wrap=True)


def print_ladder(ladder: Ladder, console: Console) -> None:
    """The table and the recommendation; where there is no room for titles, rungs go by their names."""
    file, is_wide = ladder.file, console.width >= _WIDE
    table = text_table(("rung", "status", *(f">{name}" for name in _columns(file))))
    for result in file.rungs:
        cells = ["" if cell is None else _text(cell) for cell in _numbers(file, result)]
        style = "bold green" if result.rung == file.recommendation.rung else None
        name = rung_named(result.rung).title if is_wide else result.rung
        table.add_row(name, result.status, *cells, style=style)
    console.print(table)
    console.print(file.split, markup=False)
    for result in file.rungs:
        if result.reason:
            console.print(f"{result.rung}: {result.status}: {result.reason}", style="dim", markup=False)
    for note in file.notes:
        console.print(f"note: {note}", style="dim", markup=False)
    console.print(f"use {file.recommendation.rung}: {file.recommendation.reason}", markup=False, style="bold")
    if file.left_out:
        console.print(file.left_out, markup=False, style="yellow")


def ladder_page(ladder: Ladder) -> Page:
    """Recommendation, ladder, horizons, traces and loops of unseen motion, long rollouts, provenance."""
    file = ladder.file
    page = Page(f"Actuator models of {file.robot}", "From ideal PD to learned actuators, scored alike.")
    _summary(page, file)
    page.section("The ladder")
    page.plot(
        ladder_chart(file.rungs, file.recommendation.rung),
        "Whole motions, open loop. Bars: motion that no rung was fitted to, with one standard error; lines: the motion "
        "that it was fitted to; diamonds: unseen motion under a gain that was not in the fit. A line far left of its "
        "bar: the rung has learned its data by heart.",
    )
    columns = ("rung", "status", *_columns(file), "numbers fitted", "fit, s")
    page.table(columns, [_row(file, result) for result in file.rungs], "Errors in mrad; torque in N m.")
    if reasons := [(rung_named(r.rung).title, r.status, r.reason) for r in file.rungs if r.reason]:
        page.table(("rung", "status", "why"), reasons)
    page.section("Error against horizon")
    page.plot(horizon_chart(file.rungs), "Restarted from measured states; one step, 0.1 s, 1 s, and whole motions.")
    motion_sections(page, ladder)
    _long(page, file)
    page.section("Where it comes from")
    page.code(json.dumps(file.provenance, indent=1), folded="Logs, settings and version")
    return page


def _summary(page: Page, file: LadderFile) -> None:
    chosen = file.recommendation
    page.badges(Badge("good", f"use {rung_named(chosen.rung).title}"))
    page.text(f"{chosen.reason[0].upper()}{chosen.reason[1:]}.")
    if file.left_out:
        page.text(f"{file.left_out[0].upper()}{file.left_out[1:]}.")
    by_name = {r.rung: r.scores for r in file.rungs if r.scores is not None}
    page.facts({rung_named(name).title: f"{1e3 * scores.whole.mean:.2f} mrad" for name, scores in by_name.items()})
    page.text(f"{file.split[0].upper()}{file.split[1:]}. Fitted rungs share the set {file.common!r}.")
    for note in file.notes:
        page.text(note)


def _columns(file: LadderFile) -> list[str]:
    """Names of the numbers that at least one rung has."""
    found = {name for result in file.rungs for name in _values(result)}
    groups = sorted(name for name in found if name.startswith("whole, new"))
    order = ("one step", "0.1 s", "1 s", "whole", "+-", "fitted", *groups, "torque", "closed loop", "drift")
    return [name for name in order if name in found]


def _numbers(file: LadderFile, result: RungResult) -> list[float | None]:
    values = _values(result)
    return [values.get(name) for name in _columns(file)]


def _values(result: RungResult) -> dict[str, float]:
    """Numbers of a rung by column; errors in mrad."""
    scores = result.scores
    if scores is None:
        return {}
    values = {f"{error.seconds:g} s": 1e3 * error.mean for error in scores.held[1:-1]}
    values |= {f"whole, new {name}": 1e3 * error.mean for name, error in scores.groups.items()}
    values |= {"one step": 1e3 * scores.held[0].mean, "whole": 1e3 * scores.whole.mean}
    values |= {"+-": 1e3 * scores.whole.se, "fitted": 1e3 * scores.train.mean}
    values |= {} if scores.torque is None else {"torque": scores.torque}
    values |= {} if result.closed_loop is None else {"closed loop": 1e3 * result.closed_loop.difference}
    return values | ({"drift": 1e3 * result.long[-1].drift} if result.long else {})


def _text(cell: float) -> str:
    return f"{cell:.3g}" if 1e-3 <= abs(cell) < 1 else f"{cell:.2f}"


def _row(file: LadderFile, result: RungResult) -> tuple[Cell, ...]:
    usable = {r.rung: r.scores for r in file.rungs if r.scores is not None}
    badge = Badge(_STATUS[result.status], result.status)
    if result.rung == file.recommendation.rung:
        badge = Badge("good", "recommended")
    elif not result.bounded:
        badge = Badge("bad", "runs away")
    elif result.rung in overfits(usable):
        badge = Badge("warn", "overfits")
    numbers = _numbers(file, result)
    return (rung_named(result.rung).title, badge, *numbers, result.count, round(result.fit_s, 1))


def _long(page: Page, file: LadderFile) -> None:
    if any(r.long for r in file.rungs):
        page.section("Long rollouts")
        page.text(
            "Held-out commands played to and fro. Drift: how much the last passage differs from the first. Reach: the "
            "largest distance of a joint from its command."
        )
        verdict = {True: Badge("good", "bounded"), False: Badge("bad", "runs away")}
        rows = [
            (rung_named(r.rung).title, run.seconds, 1e3 * run.drift, run.reach, verdict[run.bounded])
            for r in file.rungs
            for run in r.long
        ]
        page.table(("rung", "seconds", "drift, mrad", "reach, rad", "verdict"), rows)
    tracked = [(rung_named(r.rung).title, r.closed_loop) for r in file.rungs if r.closed_loop is not None]
    if tracked:
        page.section("Under a controller")
        page.text(
            "A tracking controller that reads positions and corrects commands, on each model and on the twin. A model "
            "is good when it predicts what the twin does, not when it tracks well."
        )
        page.table(
            ("rung", "model minus twin, mrad", "tracking error, model, mrad", "tracking error, twin, mrad"),
            [(title, 1e3 * t.difference, 1e3 * t.model, 1e3 * t.twin) for title, t in tracked],
        )
