"""Traces of joints over time, one row a joint, as plotly figures for `Page.plot`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueup.core.errors import TrueupError

Floats = NDArray[np.floating[Any]]
MAX_POINTS = 4000  # per trace: twice the pixels of a wide screen, so that a first zoom still shows more
COLOURS = ("#e4572e", "#3b82f6", "#10a37f", "#b5831a", "#a855f7", "#8a94a3")  # read well on white and on dark
_ROW, _GAP, _TOP, _BOTTOM = 118, 22, 64, 60  # pixels


def joint_traces(
    time: Floats, signals: Mapping[str, Floats], joint_names: Sequence[str], unit: str, *, max_points: int = MAX_POINTS
) -> Any:
    """Return a plotly Figure with one row per joint; signals (T, njoint) share colours, legend and zoom.

    `time` (T,) in seconds. Long signals are thinned to `max_points` with their peaks kept.
    """
    njoint = len(joint_names)
    for name, values in signals.items():
        if values.shape != (len(time), njoint):
            raise TrueupError(f"signal {name!r} must have shape ({len(time)}, {njoint}), found {values.shape}")
    figure = _empty_figure()
    for k in range(njoint):
        for colour, (name, values) in enumerate(signals.items()):
            x, y = decimate(time, values[:, k], max_points)
            figure.add_scatter(
                x=x,
                y=y.astype(np.float32),  # halves the page; nothing is read off a plot to seven digits
                name=name,
                legendgroup=name,
                showlegend=k == 0,
                mode="lines",
                line={"color": COLOURS[colour % len(COLOURS)], "width": 1.4},
                yaxis=_axis("y", k),
                hovertemplate=f"%{{y:.4g}} {unit}",
            )
    figure.update_layout(_layout(joint_names, unit))
    return figure


def decimate(time: Floats, values: Floats, max_points: int = MAX_POINTS) -> tuple[Floats, Floats]:
    """Thin a signal (T,) to at most `max_points`: both ends and the extremes of equal slices, so peaks stay.

    A gap (NaN) stays a gap: one NaN is kept of every slice that has one.
    """
    if max_points < 8:
        raise ValueError(f"max_points must be at least 8, found {max_points}")
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


def _empty_figure() -> Any:
    try:
        return import_module("plotly.graph_objects").Figure()  # half a second to import: only when drawn
    except ImportError:
        raise TrueupError("plots need plotly: `pip install 'trueup[report]'`") from None


def _axis(letter: str, k: int) -> str:
    return letter if k == 0 else f"{letter}{k + 1}"


def _layout(joint_names: Sequence[str], unit: str) -> dict[str, Any]:
    """All rows hang on one time axis below the last, so zooming one zooms all."""
    count = len(joint_names)
    inside = count * _ROW + (count - 1) * _GAP
    layout: dict[str, Any] = {
        "template": "none",
        "height": inside + _TOP + _BOTTOM,
        "margin": {"l": 56, "r": 16, "t": _TOP, "b": _BOTTOM},
        "hovermode": "x unified",
        "font": {"size": 12},
        "legend": {"orientation": "h", "x": 0, "y": 1, "yanchor": "bottom", "yref": "paper", "xanchor": "left"},
        "xaxis": {"title": {"text": "time (s)"}, "anchor": _axis("y", count - 1), "showspikes": True},
        "annotations": [],
    }
    layout["xaxis"] |= {"spikemode": "across", "spikethickness": 1, "spikedash": "dot", "zeroline": False}
    for k, name in enumerate(joint_names):
        top = 1 - k * (_ROW + _GAP) / inside
        layout[f"yaxis{k + 1 if k else ''}"] = {
            "domain": [max(0.0, top - _ROW / inside), min(1.0, top)],
            "anchor": "x",
            "zeroline": False,
            "nticks": 4,
            "title": {"text": unit, "standoff": 4},
        }
        layout["annotations"].append(
            {
                "text": f"<b>{_plain(name)}</b>",
                "xref": "paper",
                "yref": "paper",
                "x": 1,
                "y": min(1.0, top),
                "xanchor": "right",
                "yanchor": "bottom",
                "showarrow": False,
                "font": {"size": 12},
            }
        )
    layout["legend"]["y"] = 1 + 24 / inside
    return layout


def _plain(text: str) -> str:
    """Names as they are: plotly reads some HTML tags in labels."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
