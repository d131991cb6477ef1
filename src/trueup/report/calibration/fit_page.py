"""The page of a calibration: the verdict at its top, like joints grouped, every row under a title that opens it."""

from __future__ import annotations

import json

import msgspec
import numpy as np

from trueup.calibrate.calibrate import Fit
from trueup.report.calibration.groups import grouped, kind_errors
from trueup.report.calibration.plots import correlation_map, intervals, spectra
from trueup.report.calibration.words import (
    STATUS,
    STRUCTURED,
    FitVerdict,
    excluded_shown,
    fit_verdict,
    motions_to_record,
    next_recording,
    predictive_text,
    word_shown,
)
from trueup.report.page import Badge, Cell, Page
from trueup.report.traces import joint_traces
from trueup.world.fitted.calibration import Calibration, Estimate


def fit_page(fit: Fit, verdict: FitVerdict | None = None) -> Page:
    """The verdict, what to record next, scores, traces, residual spectrum, parameters, correlations, provenance."""
    result = fit.calibration
    page = Page(f"Calibration of {result.robot}", "From logs to a simulator that fits.")
    verdict = verdict or fit_verdict(result)
    page.verdict(verdict.status, verdict.paragraph)
    page.code(verdict.command)
    _summary(page, result)
    if motions := motions_to_record(result):
        page.section("What to record next")
        page.table(("parameters", "record"), motions)
        page.table(("parameter", "advice"), next_recording(result), folded="Advice for every parameter")
        page.text("A motion made for just these, within the robot's limits:")
        page.code(f"trueup record {result.robot} --excitation active --for DIR --out next.mcap")
    page.section(f"Position error on {_where(result)} data")
    low, high = (result.holdout_calibrated or result.fit_calibrated).spread
    page.text(
        f"Mean open-loop error after calibration: {1e3 * low:.2f} to {1e3 * high:.2f} mrad (5 to 95 % over blocks of a "
        "second)."
    )
    columns = ("mrad", "nominal", "calibrated")
    page.table(columns, [*kind_errors(result), *score_rows(result)[-2:]], "Like joints together.")
    page.table(columns, score_rows(result)[:-2], folded="Every joint")
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
    words = [estimate.verdict for estimate in result.estimates]
    page.badges(*(Badge(STATUS[word], f"{words.count(word)} {word}") for word in STATUS if word in words))
    _, nominal, calibrated = score_rows(result)[-2]
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
    if result.misfit.structured:
        page.text(STRUCTURED)
    if result.notes:
        page.section("Notes")
        page.table(("note",), [(note,) for note in result.notes])


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
    together = ("like joints together", "median", "95 % from", "to", "nominal", "nominal excluded", "verdict")
    page.table(
        together,
        [(g.name, g.median, *g.interval, g.nominal, g.excluded, Badge(g.status, g.verdict)) for g in grouped(result)],
        "The median of the estimates and the widest ends of their intervals.",
    )
    page.plot(
        intervals(result.estimates),
        "Estimates with 95 % intervals, in prior widths from the prior: an interval as wide as the prior (-2 to 2) "
        "means that the data hold no information about it.",
    )
    ends = ("95 % from", "to", "unit", "verdict")
    columns = ("parameter", "estimate", "+-", *ends, "nominal", "nearest partner")
    page.table(columns, [_row(estimate) for estimate in result.estimates], folded="Every parameter")
    if result.ratios:
        page.text("Partners that the data do not tell apart: neither is known alone, what they make together is.")
        rows = [(r.label, r.value, *r.interval, r.unit, Badge(STATUS[r.verdict], r.verdict)) for r in result.ratios]
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
        Badge(STATUS[estimate.verdict], word_shown(estimate) + (", on its bound" if estimate.on_bound else "")),
        f"{nominal} excluded (cost {rise})" if rise else nominal,
        f"{estimate.partner} ({estimate.correlation:+.2f})" if abs(estimate.correlation) > 0.5 else "",
    )


def score_rows(result: Calibration) -> list[tuple[str, float, float]]:
    """(joint, nominal, calibrated) open-loop errors in mrad, on held-out data if there is any; the mean last."""
    before = result.holdout_nominal or result.fit_nominal
    after = result.holdout_calibrated or result.fit_calibrated
    rows = [
        *zip(result.joint_names, before.open_loop, after.open_loop, strict=True),
        ("mean, open loop", before.open_loop_mean, after.open_loop_mean),
        ("mean, 0.5 s windows", before.window_mean, after.window_mean),
    ]
    return [(name, 1e3 * nominal, 1e3 * calibrated) for name, nominal, calibrated in rows]
