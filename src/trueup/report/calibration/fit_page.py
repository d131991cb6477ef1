"""The page of a calibration: the verdict at its top, like joints grouped, every row under a title that opens it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import msgspec
import numpy as np

from trueup.calibrate.calibrate import Fit
from trueup.core.arrays import FloatArray
from trueup.report.calibration.summary import (
    STATUS,
    STRUCTURED,
    FitVerdict,
    excluded_shown,
    fit_verdict,
    grouped,
    kind_errors,
    motions_to_record,
    next_recording,
    predictive_text,
    word_shown,
)
from trueup.report.page import Badge, Cell, Page
from trueup.report.traces import COLOURS, chart, joint_traces
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


_VERDICT = {"identified": "#10a37f", "bounded": "#2b7de9", "weak": "#b5831a", "not visible": "#e4572e"}
_LONG_LIST = 80  # labels of more parameters than this would not be legible


def intervals(estimates: Sequence[Estimate]) -> Any:
    """Return every estimate with its 95 % interval, in prior widths from the prior."""
    labels = [estimate.parameter.label for estimate in estimates]
    names = {"autorange": "reversed", "categoryorder": "array", "categoryarray": labels}
    figure = chart(
        15 * len(labels) + 130,
        {"title": {"text": "prior widths from the prior"}, "zeroline": True, "range": [-4.2, 4.2]},
        {**names, "tickfont": {"size": 10}, "automargin": True},
        l=210,
        b=64,
    )
    for word, colour in _VERDICT.items():
        chosen = [estimate for estimate in estimates if estimate.verdict == word]
        x = [[estimate.parameter.to_x(value) for value in (estimate.value, *estimate.interval)] for estimate in chosen]
        above, below = [round(high - at, 4) for at, _, high in x], [round(at - low, 4) for at, low, _ in x]
        if chosen:
            figure.add_scatter(
                x=[round(at, 4) for at, _, _ in x],
                y=[estimate.parameter.label for estimate in chosen],
                error_x={"symmetric": False, "array": above, "arrayminus": below, "thickness": 1.6, "width": 3},
                mode="markers",
                marker={"color": colour, "size": 6},
                name=word,
                customdata=[f"{estimate.value:.4g} {estimate.parameter.unit}" for estimate in chosen],
                hovertemplate="%{y}: %{customdata}<extra></extra>",
            )
    return figure


def spectra(errors: Mapping[str, FloatArray], dt: float) -> Any:
    """Return the amplitude spectrum of errors (T, njoint), root mean square over the joints."""
    figure = chart(360, {"type": "log", "title": {"text": "Hz"}}, {"type": "log", "title": {"text": "mrad/√Hz"}}, b=50)
    signal = import_module("scipy.signal")
    for k, (name, error) in enumerate(errors.items()):
        frequency, power = signal.welch(error, 1.0 / dt, nperseg=min(512, len(error)), axis=0)
        amplitude = 1e3 * np.sqrt(power.mean(axis=1))[1:]
        figure.add_scatter(x=frequency[1:], y=amplitude, name=name, mode="lines", line={"color": COLOURS[k + 1]})
    return figure


def correlation_map(fit: Fit) -> Any:
    """Return the posterior correlation of every pair of parameters."""
    labels = [estimate.parameter.label for estimate in fit.calibration.estimates]
    font = {"size": 9 if len(labels) > 40 else 10}
    ticks = {"tickfont": font, "showticklabels": len(labels) <= _LONG_LIST, "automargin": True, "dtick": 1}
    height = min(1400, max(420, 12 * len(labels) + 200))
    figure = chart(height, {"tickangle": 90, **ticks}, {"autorange": "reversed", **ticks}, l=190, b=170, t=20)
    figure.add_heatmap(
        z=fit.posterior.correlation.round(2),
        x=labels,
        y=labels,
        zmin=-1,
        zmax=1,
        colorscale="RdBu",
        hovertemplate="%{y} and %{x}: %{z:.2f}<extra></extra>",
    )
    return figure
