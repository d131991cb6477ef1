"""The page of a training run: how it learned, what it met, what it looks like."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from trueup.report.page import Cell, Page
from trueup.report.traces import COLOURS
from trueup.tasks.load import load_task
from trueup.tasks.task import error_label, error_metric
from trueup.train.folder import RunFolder

Row = Mapping[str, float]
_POINTS = 400  # of a curve
_MILLION = 1e6


class _Error:
    """The goal's error: the metric's name (empty: none), and how it is called."""

    def __init__(self, metric: str | None, label: str) -> None:
        self.metric, self.label = metric or "", label
        self.name, _, self.unit = label.partition(", ")


def write_run_page(run: str | Path) -> Path:
    """Write RUN/index.html from what the run has recorded so far."""
    folder = RunFolder(run)
    cfg, rows, assessed = folder.config(), folder.read_metrics(), _assessments(folder)
    task = load_task(cfg.task, cfg.robot)
    page = Page(f"Training {cfg.task}", f"seed {cfg.seed}, {cfg.nenv} simulations")
    if rows:
        error = _Error(error_metric(task), error_label(task))
        _facts(page, rows, assessed, error)
        rows = rows[:: max(1, len(rows) // _POINTS)]
        _progress(page, rows, assessed, error)
        _curriculum(page, rows, cfg.task)
        _flags(page, rows)
    films = sorted(folder.films.glob("*.mp4"))
    if films:
        page.section("What it looks like")
        page.film(films[-1], f"after {int(films[-1].stem) / _MILLION:.2f} M steps")
    return page.write(folder.path / "index.html")


def _assessments(folder: RunFolder) -> list[Row]:
    file = folder.path / "assessments.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def _facts(page: Page, rows: Sequence[Row], assessed: Sequence[Row], error: _Error) -> None:
    last = rows[-1]
    facts: dict[str, Cell] = {
        "control steps": f"{last['steps'] / _MILLION:.2f} M",
        "time": f"{last['elapsed_s'] / 60:.1f} min",
        "steps a second": f"{last['steps'] / last['elapsed_s']:,.0f}",
        "reward per step": last["reward"],
    }
    if error.metric in last:
        facts[f"{error.name}, exploring"] = f"{last[error.metric]:.3f} {error.unit}"
    if assessed:
        newest = assessed[-1]
        found = "" if newest["error"] is None else f"{newest['error']:.3f} {error.unit}, "
        facts["assessed"] = f"{found}{newest['falls']:.0f} falls"
    page.facts(facts)


def _progress(page: Page, rows: Sequence[Row], assessed: Sequence[Row], error: _Error) -> None:
    page.section("Learning")
    page.plot(_curves(rows, {"reward": "reward per step"}, "reward per step"))
    if any(error.metric in row for row in rows):
        figure = _curves(rows, {error.metric: "exploring, in ranges that grow"}, error.label)
        if assessed:
            figure.add_scatter(
                x=[row["steps"] / _MILLION for row in assessed],
                y=[row["error"] for row in assessed],
                text=[f"{row['falls']:.0f} falls" for row in assessed],
                mode="markers+text",
                textposition="top center",
                name="assessed: no randomisation, no exploration",
                marker={"color": COLOURS[2], "size": 9},
            )
        page.plot(figure)
    page.plot(_curves(rows, {"terminated": "falls per step and simulation"}, "falls per step"))


def _curriculum(page: Page, rows: Sequence[Row], task: str) -> None:
    kinds = {key: key[8:] for key in rows[-1] if key.startswith("terrain/")}
    if kinds:
        page.section("Terrain")
        page.plot(_curves(rows, kinds, "mean level"), "Level of the curriculum, over all and by kind of ground.")
    names = [key[4:-4] for key in rows[-1] if key.startswith("adr/") and key.endswith("/low")]
    if names:
        page.section("Ranges that grow by success (ADR)")
        page.plot(_boundaries(rows, names, task), "0 and 1 are the ends of the task's own range.")


def _boundaries(rows: Sequence[Row], names: Sequence[str], task: str) -> Any:
    """Lower and upper boundary of every range over the training, as shares of the task's own."""
    ranges, figure = load_task(task).randomize, _empty("boundaries, share of the full range")
    for k, name in enumerate(names):
        low, width = ranges[name].low, max(ranges[name].high - ranges[name].low, 1e-12)
        for side in ("low", "high"):
            figure.add_scatter(
                x=[row["steps"] / _MILLION for row in rows],
                y=[(row[f"adr/{name}/{side}"] - low) / width for row in rows],
                name=name,
                legendgroup=name,
                showlegend=side == "low",
                line={"color": COLOURS[k % len(COLOURS)], "dash": ("solid", "dash", "dot")[k // len(COLOURS) % 3]},
            )
    return figure


def _flags(page: Page, rows: Sequence[Row]) -> None:
    flags = {key: key[5:] for key in rows[-1] if key.startswith("flag/")}
    if flags:
        page.section("Red flags")
        page.plot(_curves(rows, flags, "share of simulations"), "Shuffling, hopping, torque at its limit, idling.")


def _curves(rows: Sequence[Row], names: Mapping[str, str], unit: str) -> Any:
    figure = _empty(unit)
    for k, (key, label) in enumerate(names.items()):
        known = [row for row in rows if key in row]
        figure.add_scatter(
            x=[row["steps"] / _MILLION for row in known],
            y=[row[key] for row in known],
            name=label,
            line={"color": COLOURS[k % len(COLOURS)], "dash": "solid" if k < len(COLOURS) else "dash"},
        )
    return figure


def _empty(unit: str) -> Any:
    figure = import_module("plotly.graph_objects").Figure()
    figure.update_layout(
        template="none",
        height=320,
        margin={"l": 70, "r": 16, "t": 30, "b": 54},
        xaxis={"title": {"text": "million control steps"}},
        yaxis={"title": {"text": unit}, "automargin": True},
        legend={"orientation": "h", "x": 0, "y": 1, "yanchor": "bottom"},
        showlegend=True,
    )
    return figure
