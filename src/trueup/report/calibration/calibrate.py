"""Output of `trueup calibrate`: the verdict first and last, like joints grouped between; --verbose: every row."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from trueup.calibrate.calibrate import Fit, calibrate
from trueup.calibrate.fit.search import STATE_FILE
from trueup.calibrate.verbs import CalibrateVerb, LoadVerb, run
from trueup.calibrate.weighing import load
from trueup.report.calibration.fit_page import fit_page, score_rows
from trueup.report.calibration.summary import (
    STRUCTURED,
    FitVerdict,
    excluded_shown,
    fit_verdict,
    grouped,
    kind_errors,
    motions_to_record,
    next_recording,
    predictive_text,
    short_notes,
    word_shown,
)
from trueup.report.page import Status, require_plots
from trueup.report.terminal import progress_bar, text_table
from trueup.world.fitted.calibration import Calibration, write_calibration

_COLOUR = {"identified": "green", "bounded": "cyan", "weak": "yellow", "not visible": "red"}
_STYLE: dict[Status, str] = {"good": "bold green", "warn": "bold yellow", "bad": "bold red", "plain": "bold"}
_RATIOS = 3  # known together, at most, where not every row is shown
_MOTIONS = 3  # to record next, at most, where not every row is shown


def run_calibrate(verb: CalibrateVerb) -> int:
    """Fit, print, write; 130 if the fit was stopped."""
    console = Console()
    if verb.page:
        require_plots()
    try:
        with progress_bar("calibrating", console) as progress:
            fit = run(verb, calibrate, start=verb.start, refit=verb.refit, progress=progress)
    except KeyboardInterrupt:
        if (verb.out / STATE_FILE).exists():
            console.print(f"the fit so far is in {verb.out}: with --resume it goes on", soft_wrap=True)
        raise
    params = fit.write(verb.out)
    verdict = fit_verdict(fit.calibration, " ".join(map(str, verb.logs)), str(verb.out), verb.robot)
    print_fit(fit, console, verdict, verbose=verb.verbose)
    console.print(f"params {params}", soft_wrap=True)
    if verb.page:
        console.print(f"page   {fit_page(fit, verdict).write(verb.out / 'index.html')}", soft_wrap=True)
    console.print(verdict.headline, style=_STYLE[verdict.status], markup=False, highlight=False)
    console.print(f"next   {verdict.command}", markup=False, highlight=False, soft_wrap=True)
    return 130 if fit.calibration.effort.interrupted else 0


def run_load(verb: LoadVerb) -> int:
    """Weigh, print, write."""
    found = load(verb.robot, verb.logs, verb.fit, mapping=verb.mapping)
    console = Console()
    console.print(found.notes[-1], markup=False, highlight=False, soft_wrap=True)
    console.print(f"params {write_calibration(found, verb.out)}", soft_wrap=True)
    return 0


def print_fit(fit: Fit, console: Console, verdict: FitVerdict | None = None, *, verbose: bool = False) -> None:
    """The verdict, parameters, scores, and what to record next; `verbose`: every parameter, note and advice."""
    result, verdict = fit.calibration, verdict or fit_verdict(fit.calibration)
    console.print(verdict.paragraph, style=_STYLE[verdict.status], markup=False, highlight=False)
    console.print(_parameter_table(result) if verbose else _group_table(result))
    if result.ratios:
        console.print(_ratio_table(result, verbose=verbose))
    console.print(_score_table(result, verbose=verbose))
    (_print_all if verbose else _print_short)(result, console)


def _print_short(result: Calibration, console: Console) -> None:
    """Motions that show most of what is weak, and the notes' first clauses."""
    motions = motions_to_record(result)
    for names, motion in motions[:_MOTIONS]:
        console.print(f"to know more of {names}: {motion}", markup=False, highlight=False)
    console.print(_effort_text(result), highlight=False)
    if result.notes:
        text = f"notes: {'; '.join(short_notes(result.notes))} (whole: --verbose, or the page)"
        console.print(text, style="dim", markup=False, highlight=False)


def _print_all(result: Calibration, console: Console) -> None:
    console.print(_effort_text(result))
    if result.predictive is not None:
        console.print(predictive_text(result.predictive))
    if result.misfit.structured:
        console.print(STRUCTURED, style="yellow")
    for labels, advice in next_recording(result):
        console.print(f"next: {labels}: {advice}", markup=False)
    for note in result.notes:
        console.print(f"note: {note}", style="dim", markup=False)


def _effort_text(result: Calibration) -> str:
    effort = result.effort
    ended = "stopped early" if effort.interrupted else "converged" if effort.converged else "not converged"
    simulated = f"{effort.rollouts} windows ({effort.simulated_s:,.0f} s of robot time) simulated"
    return f"{ended}: {effort.seconds:.1f} s, {simulated}, {effort.iterations} iterations"


# --- tables ---
def _group_table(result: Calibration) -> Table:
    """A row for like joints: the median of the estimates, the widest ends of their 95 % intervals."""
    columns = ("like joints together", ">median", ">95 % from", ">to", ">nominal", ">excl.", "verdict")
    table = text_table(columns, pad_edge=False, padding=(0, 1, 0, 0))
    for group in grouped(result):
        table.add_row(
            group.name,
            *(f"{value:.3g}" for value in (group.median, *group.interval)),
            "" if group.nominal is None else f"{group.nominal:.3g}",
            group.excluded,
            f"[{_COLOUR[group.worst]}]{group.verdict}[/]",
        )
    return table


def _score_table(result: Calibration, *, verbose: bool) -> Table:
    where = "held out" if result.holdout_nominal is not None else "fitted data (nothing held out)"
    rows = score_rows(result)
    rows = rows if verbose else [*kind_errors(result), *rows[-2:]]
    cells = [
        (name, f"{before:.2f}", f"{after:.2f}", f"{before / after:.1f}" if after else "")
        for name, before, after in rows
    ]
    columns = (f"position error, mrad, {where}", ">nominal", ">calibrated", ">times better")
    return text_table(columns, cells, pad_edge=False, padding=(0, 1, 0, 0))


def _ratio_table(result: Calibration, *, verbose: bool) -> Table:
    """Combinations of confounded parameters; short: only identified ones."""
    table = text_table(("known together only", "unit", ">estimate", ">95 % from", ">to", "verdict"))
    shown = [ratio for ratio in result.ratios if verbose or ratio.verdict != "not visible"]
    for ratio in shown[: None if verbose else _RATIOS]:
        numbers = (f"{value:.4g}" for value in (ratio.value, *ratio.interval))
        table.add_row(ratio.label, ratio.unit, *numbers, f"[{_COLOUR[ratio.verdict]}]{ratio.verdict}[/]")
    if not verbose and len(shown) > _RATIOS:
        table.add_row(f"and {len(shown) - _RATIOS} more")
    return table


def _parameter_table(result: Calibration) -> Table:
    """Joints stand under the name of a parameter that several have."""
    columns = ("parameter", ">value", ">95 % from", ">to", "verdict", ">nominal", ">excluded")
    table = text_table(columns, pad_edge=False, padding=(0, 1, 0, 0))
    several = [e.parameter.name for e in result.estimates if e.parameter.of]
    heading = ""
    for estimate in result.estimates:
        bound = " on bound" if estimate.on_bound and estimate.verdict != "bounded" else ""
        name, unit, label = estimate.parameter.name, estimate.parameter.unit, estimate.parameter.label
        grouped = several.count(name) > 1
        if grouped and name != heading:
            table.add_row(f"{name}, {unit}")
        heading = name
        table.add_row(
            f"  {label.removeprefix(name).strip()}" if grouped else f"{label}, {unit}",
            *(f"{value:.3g}" for value in (estimate.value, *estimate.interval)),
            f"[{_COLOUR[estimate.verdict]}]{word_shown(estimate)}[/]{bound}",
            "" if estimate.nominal is None else f"{estimate.nominal:.3g}",
            excluded_shown(estimate),
        )
    return table
