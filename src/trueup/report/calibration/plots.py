"""Figures of a calibration's page: spectrum of the error, correlations, intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueup.calibrate.calibrate import Fit
from trueup.report.traces import COLOURS
from trueup.world.fitted.sim_params import Estimate

FloatArray = NDArray[np.float64]
_VERDICT = {"identified": "#10a37f", "bounded": "#2b7de9", "weak": "#b5831a", "not visible": "#e4572e"}
_LONG_LIST = 80  # labels of more parameters than this would not be legible


def intervals(estimates: Sequence[Estimate]) -> Any:
    """Return every estimate with its 95 % interval, in prior widths from the prior."""
    figure = import_module("plotly.graph_objects").Figure()
    labels = [estimate.parameter.label for estimate in estimates]
    x = [estimate.parameter.to_x(estimate.value) for estimate in estimates]
    ends = [[estimate.parameter.to_x(end) for end in estimate.interval] for estimate in estimates]
    for word, colour in _VERDICT.items():
        mine = [k for k, estimate in enumerate(estimates) if estimate.verdict == word]
        if mine:
            figure.add_scatter(
                x=[round(x[k], 4) for k in mine],
                y=[labels[k] for k in mine],
                error_x={
                    "symmetric": False,
                    "array": [round(ends[k][1] - x[k], 4) for k in mine],
                    "arrayminus": [round(x[k] - ends[k][0], 4) for k in mine],
                    "thickness": 1.6,
                    "width": 3,
                },
                mode="markers",
                marker={"color": colour, "size": 6},
                name=word,
                customdata=[f"{estimates[k].value:.4g} {estimates[k].parameter.unit}" for k in mine],
                hovertemplate="%{y}: %{customdata}<extra></extra>",
            )
    figure.update_layout(
        template="none",
        height=15 * len(labels) + 130,
        margin={"l": 210, "r": 16, "t": 40, "b": 64},
        xaxis={"title": {"text": "prior widths from the prior"}, "zeroline": True, "range": [-4.2, 4.2]},
        yaxis={
            "autorange": "reversed",
            "categoryorder": "array",
            "categoryarray": labels,
            "tickfont": {"size": 10},
            "automargin": True,
        },
        legend={"orientation": "h", "x": 0, "y": 1, "yanchor": "bottom"},
    )
    return figure


def spectra(errors: Mapping[str, FloatArray], dt: float) -> Any:
    """Return the amplitude spectrum of errors (T, njoint), root mean square over the joints."""
    figure = import_module("plotly.graph_objects").Figure()
    signal = import_module("scipy.signal")
    for k, (name, error) in enumerate(errors.items()):
        frequency, power = signal.welch(error, 1.0 / dt, nperseg=min(512, len(error)), axis=0)
        figure.add_scatter(
            x=frequency[1:],
            y=1e3 * np.sqrt(power.mean(axis=1))[1:],
            name=name,
            mode="lines",
            line={"color": COLOURS[k + 1]},
        )
    figure.update_layout(
        template="none",
        height=360,
        margin={"l": 70, "r": 16, "t": 40, "b": 50},
        legend={"orientation": "h", "x": 0, "y": 1, "yanchor": "bottom"},
        xaxis={"type": "log", "title": {"text": "Hz"}},
        yaxis={"type": "log", "title": {"text": "mrad/√Hz"}},
    )
    return figure


def correlation_map(fit: Fit) -> Any:
    """Return the posterior correlation of every pair of parameters."""
    labels = [estimate.parameter.label for estimate in fit.calibration.estimates]
    figure = import_module("plotly.graph_objects").Figure()
    figure.add_heatmap(
        z=fit.posterior.correlation.round(2),
        x=labels,
        y=labels,
        zmin=-1,
        zmax=1,
        colorscale="RdBu",
        hovertemplate="%{y} and %{x}: %{z:.2f}<extra></extra>",
    )
    font = {"size": 9 if len(labels) > 40 else 10}
    ticks = {"tickfont": font, "showticklabels": len(labels) <= _LONG_LIST, "automargin": True}
    figure.update_layout(
        template="none",
        height=min(1400, max(420, 12 * len(labels) + 200)),
        margin={"l": 190, "r": 16, "b": 170, "t": 20},
        yaxis={"autorange": "reversed", "dtick": 1, **ticks},
        xaxis={"tickangle": 90, "dtick": 1, **ticks},
    )
    return figure
