"""What `trueup calibrate` shows: scores, the table of parameters with verdicts, and the page with traces."""

from __future__ import annotations

import json

import msgspec
import numpy as np
from rich.console import Console
from rich.table import Table

from trueup.calibrate.calibrate import Fit, calibrate
from trueup.calibrate.fit.search import STATE_FILE
from trueup.calibrate.verbs import CalibrateVerb, LoadVerb, run
from trueup.calibrate.weighing import load
from trueup.report.calibration.plots import correlation_map, intervals, spectra
from trueup.report.page import Badge, Cell, Page, Status
from trueup.report.terminal import progress_bar, text_table
from trueup.report.traces import joint_traces
from trueup.world.fitted.calibration import Calibration, Estimate, Predictive, write_calibration

_COLOUR = {"identified": "green", "bounded": "cyan", "weak": "yellow", "not visible": "red"}
_STATUS: dict[str, Status] = {"identified": "good", "bounded": "good", "weak": "warn", "not visible": "bad"}
_NEAR = 1e-3  # of the box: an end this near is its bound
STRUCTURED = (
    "What is left over is not noise: the model lacks something (backlash, hysteresis, load-dependent friction, a wrong "
    "mass). Intervals hold for this model only. Try a richer set of parameters, or a learned actuator."
)


def run_calibrate(verb: CalibrateVerb) -> int:
    """Fit, print, write; 130 if the fit was stopped."""
    console = Console()
    try:
        with progress_bar("calibrating", console) as progress:
            fit = run(verb, calibrate, start=verb.start, progress=progress)
    except KeyboardInterrupt:
        if (verb.out / STATE_FILE).exists():
            console.print(f"the fit so far is in {verb.out}: with --resume it goes on", soft_wrap=True)
        raise
    print_fit(fit, console)
    console.print(f"params {fit.write(verb.out)}", soft_wrap=True)
    if verb.page:
        console.print(f"page   {fit_page(fit).write(verb.out / 'index.html')}", soft_wrap=True)
    return 130 if fit.calibration.effort.interrupted else 0


def run_load(verb: LoadVerb) -> int:
    """Weigh, print, write."""
    found = load(verb.robot, verb.logs, verb.fit, mapping=verb.mapping)
    console = Console()
    console.print(found.notes[-1], markup=False, highlight=False, soft_wrap=True)
    console.print(f"params {write_calibration(found, verb.out)}", soft_wrap=True)
    return 0


# --- in words ---
def word_shown(estimate: Estimate) -> str:
    """The verdict with what bounds the parameter: "at most 0.35"."""
    if estimate.verdict != "bounded":
        return estimate.verdict
    entry, (low, high) = estimate.parameter, estimate.interval
    x, (first, last), (bottom, top) = entry.to_x(estimate.value), map(entry.to_x, (low, high)), entry.x_bounds
    near = _NEAR * (top - bottom)
    at_most = first - bottom < near or (top - last >= near and x - first > last - x)
    return f"at most {high:.3g}" if at_most else f"at least {low:.3g}"


def excluded_shown(estimate: Estimate) -> str:
    """By how much the cost would rise at the nominal value, if the data exclude it: "+8 %", "x 14"."""
    rise = estimate.nominal_cost
    if not estimate.nominal_excluded or rise is None:
        return ""
    return f"+{100 * rise:.2g} %" if rise < 1.0 else f"x {1.0 + rise:.2g}"


def predictive_text(check: Predictive) -> str:
    """The posterior predictive check in a sentence."""
    within = "within" if check.covered else "NOT within"
    return (
        f"draws from the posterior replay held-out data with {check.median_ratio:.2f} times the estimate's error "
        f"(median; 95 % within {check.q95_ratio:.2f}); that error, {1e3 * check.estimate_error:.2f} mrad, is {within} "
        f"what was to be expected ({1e3 * check.spread[0]:.2f} to {1e3 * check.spread[1]:.2f})"
    )


def next_recording(result: Calibration) -> list[tuple[str, str]]:
    """(parameters, advice): each piece of advice once, with the parameters it is for."""
    pieces: dict[str, list[str]] = {}
    for estimate in result.estimates:
        if estimate.advice:
            pieces.setdefault(estimate.advice, []).append(estimate.parameter.label)
    return [
        (f"{', '.join(labels[:3])}{f' and {len(labels) - 3} more' if len(labels) > 3 else ''}", advice)
        for advice, labels in pieces.items()
    ]


def _score_rows(result: Calibration) -> list[tuple[str, float, float]]:
    """(joint, nominal, calibrated) open-loop errors in mrad, on held-out data if there is any; the mean last."""
    before = result.holdout_nominal or result.fit_nominal
    after = result.holdout_calibrated or result.fit_calibrated
    rows = [
        *zip(result.joint_names, before.open_loop, after.open_loop, strict=True),
        ("mean, open loop", before.open_loop_mean, after.open_loop_mean),
        ("mean, 0.5 s windows", before.window_mean, after.window_mean),
    ]
    return [(name, 1e3 * nominal, 1e3 * calibrated) for name, nominal, calibrated in rows]


# --- the terminal ---
def print_fit(fit: Fit, console: Console) -> None:
    """Scores, parameters and what to record next."""
    result, effort = fit.calibration, fit.calibration.effort
    for alarm in result.alarms:
        console.print(f"ALARM: {alarm}", style="bold red", markup=False)
    console.print(_parameter_table(result))
    if result.ratios:
        columns = ("known together only", "unit", ">estimate", ">95 % from", ">to", "verdict")
        table = text_table(columns)
        for one in result.ratios:
            numbers = (f"{value:.4g}" for value in (one.value, *one.interval))
            table.add_row(one.label, one.unit, *numbers, f"[{_COLOUR[one.verdict]}]{one.verdict}[/]")
        console.print(table)
    where = "held out" if result.holdout_nominal is not None else "fitted data (nothing held out)"
    rows = [(name, f"{before:.2f}", f"{after:.2f}") for name, before, after in _score_rows(result)]
    console.print(text_table((f"position error, mrad, {where}", ">nominal", ">calibrated"), rows))
    ended = "stopped early" if effort.interrupted else "converged" if effort.converged else "not converged"
    console.print(
        f"{ended}: {effort.seconds:.1f} s, {effort.rollouts} windows simulated ({effort.simulated_s:,.0f} s of robot "
        f"time), {effort.iterations} iterations"
    )
    if result.predictive is not None:
        console.print(predictive_text(result.predictive))
    if result.misfit.structured:
        console.print(STRUCTURED, style="yellow")
    for labels, advice in next_recording(result):
        console.print(f"next: {labels}: {advice}", markup=False)
    for note in result.notes:
        console.print(f"note: {note}", style="dim", markup=False)


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


# --- the page ---
def fit_page(fit: Fit) -> Page:
    """Verdicts, what to record next, scores, traces, residual spectrum, parameters, correlations, provenance."""
    result = fit.calibration
    page = Page(f"Calibration of {result.robot}", "From logs to a simulator that fits.")
    _summary(page, result)
    if advice := next_recording(result):
        page.section("What to record next")
        page.table(("parameters", "record"), advice)
        page.text("A motion made for just these, within the robot's limits:")
        page.code(f"trueup record {result.robot} --excitation active --for DIR --out next.mcap")
    page.section(f"Position error on {_where(result)} data")
    low, high = (result.holdout_calibrated or result.fit_calibrated).spread
    page.text(
        f"Mean open-loop error after calibration: {1e3 * low:.2f} to {1e3 * high:.2f} mrad (5 to 95 % over blocks of a "
        "second)."
    )
    page.table(("mrad", "nominal", "calibrated"), _score_rows(result))
    _traces(page, fit)
    _parameters(page, result)
    page.section("Correlations")
    page.plot(
        correlation_map(fit),
        "Posterior correlation of every pair of parameters. Deep colours off the diagonal: the data cannot tell the "
        "two apart.",
    )
    page.section("Where it comes from")
    came = {**result.provenance, "effort": msgspec.to_builtins(result.effort)}
    page.code(json.dumps(came, indent=1), folded="Logs, settings, versions and effort")
    return page


def _where(result: Calibration) -> str:
    return "held-out" if result.holdout_nominal is not None else "fitted"


def _summary(page: Page, result: Calibration) -> None:
    for alarm in result.alarms:
        page.badges(Badge("bad", alarm))
    words = [estimate.verdict for estimate in result.estimates]
    page.badges(*(Badge(_STATUS[word], f"{words.count(word)} {word}") for word in _STATUS if word in words))
    _, nominal, calibrated = _score_rows(result)[-2]
    page.facts(
        {
            f"{_where(result)}, nominal": f"{nominal:.2f} mrad",
            f"{_where(result)}, calibrated": f"{calibrated:.2f} mrad",
            "sensor noise": f"{1e3 * np.median(result.misfit.noise):.2f} mrad",
            "left over by the fit": f"{1e3 * np.median(result.misfit.left):.2f} mrad",
            "parameters": len(words),
            "time": f"{result.effort.seconds:.1f} s",
        }
    )
    if result.predictive is not None:
        page.text(f"Predictive check: {predictive_text(result.predictive)}.")
    for text in (*([STRUCTURED] if result.misfit.structured else []), *result.notes):
        page.text(text)


def _traces(page: Page, fit: Fit) -> None:
    """Measured, nominal and calibrated positions of the first shown log, and the spectrum of the errors."""
    nominal, calibrated = fit.nominal.replays[0], fit.calibrated.replays[0]
    measured = calibrated.measured_pos[0]
    simulated = {"nominal": nominal.joint_pos[0], "calibrated": calibrated.joint_pos[0]}
    page.section("Open-loop replay")
    page.text(
        "The recorded commands in the simulator from the first measured state on. Drag to zoom, double-click to reset; "
        "click a name in the legend to hide it."
    )
    traces = {"measured": measured, **simulated}
    page.plot(joint_traces(calibrated.time, traces, fit.calibration.joint_names, "rad"))
    page.section("Spectrum of the error")
    errors = {name: position - measured for name, position in simulated.items()}
    page.plot(spectra(errors, calibrated.dt), "Root mean square over joints, mrad per root hertz.")


def _parameters(page: Page, result: Calibration) -> None:
    page.section("Parameters")
    page.plot(
        intervals(result.estimates),
        "Estimates with 95 % intervals, in prior widths from the prior: an interval as wide as the prior (-2 to 2) "
        "means that the data hold no information about it.",
    )
    ends = ("95 % from", "to", "unit", "verdict")
    columns = ("parameter", "estimate", "+-", *ends, "nominal", "nearest partner")
    page.table(columns, [_row(estimate) for estimate in result.estimates])
    if result.ratios:
        page.text("Partners that the data do not tell apart: neither is known alone, what they make together is.")
        rows = [(r.label, r.value, *r.interval, r.unit, Badge(_STATUS[r.verdict], r.verdict)) for r in result.ratios]
        page.table(("known together", "value", *ends), rows)


def _row(estimate: Estimate) -> tuple[Cell, ...]:
    entry, rise = estimate.parameter, excluded_shown(estimate)
    nominal = "" if estimate.nominal is None else f"{estimate.nominal:.3g}"
    return (
        entry.label,
        estimate.value,
        estimate.standard_error,
        *estimate.interval,
        entry.unit,
        Badge(_STATUS[estimate.verdict], word_shown(estimate) + (", on its bound" if estimate.on_bound else "")),
        f"{nominal} excluded (cost {rise})" if rise else nominal,
        f"{estimate.partner} ({estimate.correlation:+.2f})" if abs(estimate.correlation) > 0.5 else "",
    )
