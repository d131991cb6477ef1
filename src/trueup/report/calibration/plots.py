"""Figures of a calibration's page: spectrum of the error, correlations, intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from trueup.calibrate.calibrate import Fit
from trueup.core.arrays import FloatArray
from trueup.report.traces import COLOURS, chart
from trueup.world.fitted.calibration import Estimate

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
        mine = [estimate for estimate in estimates if estimate.verdict == word]
        x = [[one.parameter.to_x(value) for value in (one.value, *one.interval)] for one in mine]
        above, below = [round(high - at, 4) for at, _, high in x], [round(at - low, 4) for at, low, _ in x]
        if mine:
            figure.add_scatter(
                x=[round(at, 4) for at, _, _ in x],
                y=[estimate.parameter.label for estimate in mine],
                error_x={"symmetric": False, "array": above, "arrayminus": below, "thickness": 1.6, "width": 3},
                mode="markers",
                marker={"color": colour, "size": 6},
                name=word,
                customdata=[f"{estimate.value:.4g} {estimate.parameter.unit}" for estimate in mine],
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
