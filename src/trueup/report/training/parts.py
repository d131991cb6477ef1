"""Parts of a run's page: reward terms, commanded against measured motion, gait, smoothness."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from trueup.report.page import Page
from trueup.report.traces import COLOURS, chart, line_style
from trueup.tasks.task import Task
from trueup.train.play.episode import Episode

Row = Mapping[str, float]
_PREFIX = "reward/"
_BAR = 18  # pixels of a foot in the gait diagram


def weighted_terms(rows: Sequence[Row], task: Task) -> dict[str, list[float | None]]:
    """Each reward term's weighted mean in every record, largest at the end first; unrecorded ones are left out."""
    out: dict[str, list[float | None]] = {}
    for name, term in task.rewards.items():
        if any(_PREFIX + name in row for row in rows):
            out[name] = [term.weight * row[_PREFIX + name] if _PREFIX + name in row else None for row in rows]
    return dict(sorted(out.items(), key=lambda entry: -abs(entry[1][-1] or 0.0)))


def reward_terms(page: Page, rows: Sequence[Row], task: Task) -> None:
    """Plot the terms over the training, where the run recorded them."""
    terms = weighted_terms(rows, task)
    if not terms:
        return
    page.section("Reward terms")
    figure = chart(420, {"title": {"text": "million control steps"}}, {"title": {"text": "weight x term"}}, t=90)
    for k, (name, values) in enumerate(terms.items()):
        figure.add_scatter(x=[row["steps"] / 1e6 for row in rows], y=values, name=name, line=line_style(k))
    page.plot(figure, "Mean of each term times its full weight; late terms count in part at first.")


def episode_parts(page: Page, episode: Episode) -> None:
    """Commanded and measured motion, gait, and smoothness of the actions, as far as the episode has them."""
    if episode.measured.shape == episode.asked.shape and episode.names:
        page.section("Asked and measured")
        page.plot(_asked(episode), "One episode without exploration.")
    if episode.feet:
        page.section("Gait")
        page.plot(_gait(episode), "Bars: the foot is on the ground.")
        rows = zip(episode.feet, episode.duty().tolist(), episode.phase(), strict=True)
        page.table(("foot", "duty factor", "phase after the first foot"), rows)
    if len(episode.action) > 2:
        page.section("Action smoothness")
        change = episode.action_change()
        figure = chart(240, {"title": {"text": "time (s)"}}, {"title": {"text": "change per step"}})
        figure.add_scatter(x=episode.time[1:], y=change.astype(np.float32), name="change", line=line_style(0))
        page.plot(figure, f"Root mean square over all actions from step to step; mean {change.mean():.3f}.")


def _asked(episode: Episode) -> Any:
    count = len(episode.names)
    figure = chart(150 * count + 90, {"title": {"text": "time (s)"}}, {}, t=50)
    for k, name in enumerate(episode.names):
        axis = "y" if k == 0 else f"y{k + 1}"
        room = {"domain": [1 - (k + 0.85) / count, 1 - k / count], "anchor": "x", "title": {"text": name}}
        figure.layout[f"yaxis{k + 1 if k else ''}"] = room
        pairs = (("asked", episode.asked), ("measured", episode.measured))
        for colour, (label, values) in enumerate(pairs):
            figure.add_scatter(
                x=episode.time,
                y=values[:, k],
                name=label,
                legendgroup=label,
                showlegend=k == 0,
                yaxis=axis,
                line={"color": COLOURS[colour]},
            )
    figure.update_layout(xaxis={"anchor": "y" if count == 1 else f"y{count}"})
    return figure


def _gait(episode: Episode) -> Any:
    y = {"autorange": "reversed", "automargin": True}
    figure = chart(2 * _BAR * len(episode.feet) + 110, {"title": {"text": "time (s)"}}, y)
    for k, foot in enumerate(episode.feet):
        edges = np.diff(np.concatenate([[0], episode.contact[:, k].astype(np.int8), [0]]))
        x: list[float | None] = []
        for start, end in zip(np.flatnonzero(edges == 1), np.flatnonzero(edges == -1), strict=True):
            x += [episode.dt * float(start), episode.dt * float(end), None]
        line = {"width": _BAR, "color": COLOURS[k % len(COLOURS)]}
        figure.add_scatter(x=x, y=[None if at is None else foot for at in x], mode="lines", line=line, name=foot)
    figure.update_layout(showlegend=False)
    return figure
