"""Plotly figures for `Page.plot`: charts, and traces of joints over time, one row a joint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueup.core.errors import TrueupError
from trueup.report.page import plotly

Floats = NDArray[np.floating[Any]]
MAX_POINTS = 4000  # per trace: twice the pixels of a wide screen, so that a first zoom still shows more
COLOURS = ("#e4572e", "#3b82f6", "#10a37f", "#b5831a", "#a855f7", "#8a94a3")  # read well on white and on dark
_LIMIT_COLOUR = "#dc2626"
_LEAST_SPAN = 0.1  # of the range between limits: what a trace that hardly moves counts as
_ROW, _GAP, _TOP, _BOTTOM = 118, 22, 64, 60  # pixels


def chart(height: int, x: dict[str, Any], y: dict[str, Any], **margin: int) -> Any:
    """An empty figure with these axes and a legend above; margins l, r, t, b in pixels."""
    figure = plotly("graph_objects").Figure()
    figure.update_layout(
        template="none",
        height=height,
        margin={"l": 70, "r": 16, "t": 40, "b": 54} | margin,
        xaxis=x,
        yaxis=y,
        legend={"orientation": "h", "x": 0, "y": 1, "yanchor": "bottom"},
    )
    return figure


def line_style(k: int) -> dict[str, str]:
    """Colour and dash of the line number k of a chart."""
    return {"color": COLOURS[k % len(COLOURS)], "dash": ("solid", "dash", "dot")[k // len(COLOURS) % 3]}


def joint_traces(
    time: Floats,
    signals: Mapping[str, Floats],
    joint_names: Sequence[str],
    unit: str,
    *,
    limits: tuple[Floats, Floats] | None = None,
) -> Any:
    """Return a plotly Figure with one row per joint; signals (T, njoint) share colours, legend and zoom.

    `time` (T,) in seconds. Long signals are thinned with their peaks kept. All rows hang on one time
    axis below the last, so zooming one zooms all. `limits` (low, high), (njoint,) each, are written beside the joint's
    name, and drawn where the signals come near them: a far limit would flatten what there is to see.
    """
    count = len(joint_names)
    for name, values in signals.items():
        if values.shape != (len(time), count):
            raise TrueupError(f"signal {name!r} must have shape ({len(time)}, {count}), found {values.shape}")
    inside = count * _ROW + (count - 1) * _GAP
    spike = {"showspikes": True, "spikemode": "across", "spikethickness": 1, "spikedash": "dot", "zeroline": False}
    label = {"xref": "paper", "yref": "paper", "x": 1, "xanchor": "right", "yanchor": "bottom", "showarrow": False}
    figure = chart(
        inside + _TOP + _BOTTOM,
        {"title": {"text": "time (s)"}, "anchor": _axis(count - 1)} | spike,
        {},
        l=56,
        t=_TOP,
        b=_BOTTOM,
    )
    for k, joint in enumerate(joint_names):
        top = 1 - k * (_ROW + _GAP) / inside
        room = {"domain": [max(0.0, top - _ROW / inside), min(1.0, top)], "anchor": "x", "zeroline": False, "nticks": 4}
        figure.layout[f"yaxis{k + 1 if k else ''}"] = room | {"title": {"text": unit, "standoff": 4}}
        limit_text = "" if limits is None else f"  limits {limits[0][k]:.4g} to {limits[1][k]:.4g} {unit}"
        text = f"<b>{escape(joint, quote=False)}</b>{limit_text}"
        figure.add_annotation(label, text=text, y=min(1.0, top), font={"size": 12})
        if limits is not None:
            _draw_limits(figure, _axis(k), [values[:, k] for values in signals.values()], limits[0][k], limits[1][k])
        for colour, (name, values) in enumerate(signals.items()):
            x, y = decimate(time, values[:, k])
            figure.add_scatter(
                x=x,
                y=y.astype(np.float32),  # halves the page; nothing is read off a plot to seven digits
                name=name,
                legendgroup=name,
                showlegend=k == 0,
                mode="lines",
                line={"color": COLOURS[colour % len(COLOURS)], "width": 1.4},
                yaxis=_axis(k),
                hovertemplate=f"%{{y:.4g}} {unit}",
            )
    above = {"y": 1 + 24 / inside, "yref": "paper", "xanchor": "left"}
    figure.update_layout(hovermode="x unified", font={"size": 12}, legend=above)
    return figure


def _draw_limits(figure: Any, axis: str, values: Sequence[Floats], low: float, high: float) -> None:
    """Draw those limits that lie within one span of the values, as lines across the row."""
    finite = np.concatenate([array[np.isfinite(array)] for array in values])
    if not len(finite):
        return
    least, most = float(finite.min()), float(finite.max())
    room = max(most - least, _LEAST_SPAN * (high - low))
    for limit, is_near in ((low, least - low < room), (high, high - most < room)):
        if is_near:
            line = {"color": _LIMIT_COLOUR, "width": 1, "dash": "dash"}
            figure.add_shape(
                type="line", xref="paper", x0=0, x1=1, yref=axis, y0=float(limit), y1=float(limit), line=line
            )
            # a shape does not widen the axis: a point that is not seen does
            figure.add_scatter(
                x=[None, 0.0], y=[None, float(limit)], yaxis=axis, mode="markers", marker={"opacity": 0},
                showlegend=False, hoverinfo="skip",
            )  # fmt: skip


def decimate(time: Floats, values: Floats, max_points: int = MAX_POINTS) -> tuple[Floats, Floats]:
    """Thin a signal (T,) to at most `max_points`: both ends and the extremes of equal slices, so peaks stay.

    A gap (NaN) stays a gap: one NaN is kept of every slice that has one.
    """
    if len(values) <= max_points:
        return time, values
    missing = np.isnan(values)
    per_slice = 3 if missing.any() else 2
    inner = len(values) - 2
    width = -(-inner // ((max_points - 2) // per_slice))
    count = -(-inner // width)
    rows = 1 + np.minimum(np.arange(count * width), inner - 1).reshape(count, width)
    cut, gap = values[rows], missing[rows]
    picks = [np.where(gap, np.inf, cut).argmin(axis=1), np.where(gap, -np.inf, cut).argmax(axis=1)]
    if per_slice == 3:
        picks.append(gap.argmax(axis=1))
    chosen = [rows[np.arange(count), pick] for pick in picks]
    keep = np.unique(np.concatenate([[0], *chosen, [len(values) - 1]]))
    return time[keep], values[keep]


def _axis(k: int) -> str:
    return "y" if k == 0 else f"y{k + 1}"
