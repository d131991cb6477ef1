"""Figures of an actuator ladder's page: the ladder itself, error against horizon, hysteresis loops."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueup.calibrate.actuator.folder import RungResult
from trueup.calibrate.actuator.rungs import rung_named
from trueup.report.traces import COLOURS

FloatArray = NDArray[np.float64]
_MRAD = 1e3
_WHOLE_S = 20.0  # where whole logs stand on the axis of horizons


def ladder_chart(results: Sequence[RungResult], chosen: str) -> Any:
    """Return errors on unseen and on fitted data, rung by rung, simplest on top."""
    figure = import_module("plotly.graph_objects").Figure()
    shown = [result for result in results if result.scores is not None]
    labels = [rung_named(result.rung).title for result in shown]
    held = [result.scores.motion for result in shown if result.scores is not None]
    train = [result.scores.train for result in shown if result.scores is not None]
    figure.add_bar(
        x=[_MRAD * error.mean for error in held],
        y=labels,
        error_x={"array": [_MRAD * error.se for error in held], "thickness": 1.4},
        orientation="h",
        name="unseen motion",
        marker={"color": [COLOURS[2] if result.rung == chosen else COLOURS[1] for result in shown]},
        hovertemplate="%{y}: %{x:.2f} mrad on unseen motion<extra></extra>",
    )
    figure.add_scatter(
        x=[_MRAD * error.mean for error in train],
        y=labels,
        mode="markers",
        name="motion it was fitted to",
        marker={"color": COLOURS[0], "symbol": "line-ns-open", "size": 14, "line": {"width": 2}},
        hovertemplate="%{y}: %{x:.2f} mrad on what it was fitted to<extra></extra>",
    )
    other = [
        (rung_named(r.rung).title, r.scores.groups["gain"])
        for r in shown
        if r.scores is not None and len(r.scores.groups) > 1 and "gain" in r.scores.groups
    ]
    if other:
        figure.add_scatter(
            x=[_MRAD * error.mean for _, error in other],
            y=[label for label, _ in other],
            mode="markers",
            name="new gain",
            marker={"color": COLOURS[4], "symbol": "diamond-open", "size": 9, "line": {"width": 2}},
            hovertemplate="%{y}: %{x:.2f} mrad under a new gain<extra></extra>",
        )
    figure.update_layout(
        template="none",
        height=34 * len(labels) + 130,
        margin={"l": 190, "r": 16, "t": 40, "b": 54},
        xaxis={"title": {"text": "whole-rollout position error, mrad"}}
        | _log_axis([_MRAD * error.mean for error in (*held, *train)]),
        yaxis={"autorange": "reversed", "automargin": True},
        legend={"orientation": "h", "x": 0, "y": 1, "yanchor": "bottom"},
    )
    return figure


def horizon_chart(results: Sequence[RungResult]) -> Any:
    """Return the error on unseen data against how far ahead is predicted, a line per rung."""
    figure = import_module("plotly.graph_objects").Figure()
    for k, result in enumerate(r for r in results if r.scores is not None):
        assert result.scores is not None
        held = result.scores.held
        figure.add_scatter(
            x=[_WHOLE_S if error.seconds is None else error.seconds for error in held],
            y=[_MRAD * error.mean for error in held],
            error_y={"array": [_MRAD * error.se for error in held], "thickness": 1, "width": 2},
            name=rung_named(result.rung).title,
            mode="lines+markers",
            line={
                "color": COLOURS[k % len(COLOURS)],
                "dash": ("solid", "dash", "dot")[k // len(COLOURS) % 3],
            },
            hovertemplate="%{y:.3g} mrad",
        )
    figure.update_layout(
        template="none",
        height=430,
        margin={"l": 70, "r": 16, "t": 90, "b": 54},
        xaxis={
            "type": "log",
            "title": {"text": "horizon"},
            "tickvals": [0.005, 0.02, 0.1, 1.0, _WHOLE_S],
            "ticktext": ["5 ms", "20 ms", "0.1 s", "1 s", "whole"],
        },
        yaxis={"title": {"text": "mrad"}}
        | _log_axis([_MRAD * e.mean for r in results if r.scores is not None for e in r.scores.held]),
        legend={"orientation": "h", "x": 0, "y": 1, "yanchor": "bottom"},
    )
    return figure


def _log_axis(values: Sequence[float]) -> dict[str, Any]:
    """A logarithmic axis with whole numbers at its ticks, of a decade's digits as many as there is room for."""
    known = [value for value in values if value > 0.0 and math.isfinite(value)] or [1.0]
    low, high = min(known), max(known)
    digits = (1, 2, 3, 5, 7) if high < 30 * low else (1, 3) if high < 1000 * low else (1,)
    decades = range(math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 2)
    ticks = [digit * 10.0**decade for decade in decades for digit in digits]
    return {"type": "log", "tickvals": ticks, "ticktext": [f"{tick:g}" for tick in ticks]}


def hysteresis_loops(command: FloatArray, moved: Mapping[str, FloatArray], joint: str) -> Any:
    """Return how far a joint is from its command, against the command: loops of friction, lag and hysteresis.

    command (T,) and every trace of `moved` (T,), rad.
    """
    figure = import_module("plotly.graph_objects").Figure()
    for k, (name, position) in enumerate(moved.items()):
        figure.add_scatter(
            x=command.astype(np.float32),
            y=(_MRAD * (position - command)).astype(np.float32),
            name=name,
            mode="lines",
            line={"color": COLOURS[k % len(COLOURS)], "width": 2.4 if k == 0 else 1.2},
            hovertemplate="%{y:.1f} mrad",
        )
    figure.update_layout(
        template="none",
        height=430,
        margin={"l": 70, "r": 16, "t": 70, "b": 54},
        xaxis={"title": {"text": f"command of {joint}, rad"}, "zeroline": False},
        yaxis={"title": {"text": "position minus command, mrad"}},
        legend={"orientation": "h", "x": 0, "y": 1, "yanchor": "bottom"},
    )
    return figure
