"""The page of a training run: how it learned, what it met, what it looks like."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from trueup.report.page import Cell, Page
from trueup.report.traces import COLOURS, chart, line_style
from trueup.tasks.load import load_task
from trueup.tasks.task import Task, error_label, error_metric
from trueup.train.folder import RunFolder

Row = Mapping[str, float]
_POINTS = 400  # of a curve
_MILLION = 1e6


def write_run_page(run: str | Path) -> Path:
    """Write RUN/index.html from what the run has recorded so far."""
    folder = RunFolder(run)
    cfg, rows = folder.config(), folder.read_metrics()
    task = load_task(cfg.task, cfg.robot)
    page = Page(f"Training {cfg.task}", f"seed {cfg.seed}, {cfg.nenv} simulations")
    if rows:
        file = folder.path / "assessments.jsonl"
        assessed = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
        _facts(page, rows[-1], assessed, task)
        rows = rows[:: max(1, len(rows) // _POINTS)]
        _learning(page, rows, assessed, task)
        _curriculum(page, rows, task)
    films = sorted(folder.films.glob("*.mp4"))
    if films:
        page.section("What it looks like")
        page.film(films[-1], f"after {int(films[-1].stem) / _MILLION:.2f} M steps")
    return page.write(folder.path / "index.html")


def _facts(page: Page, last: Row, assessed: Sequence[Row], task: Task) -> None:
    facts: dict[str, Cell] = {
        "control steps": f"{last['steps'] / _MILLION:.2f} M",
        "time": f"{last['elapsed_s'] / 60:.1f} min",
        "steps a second": f"{last['steps'] / last['elapsed_s']:,.0f}",
        "reward per step": last["reward"],
    }
    name, _, unit = error_label(task).partition(", ")
    metric = error_metric(task) or ""
    if metric in last:
        facts[f"{name}, exploring"] = f"{last[metric]:.3f} {unit}"
    if assessed:
        newest = assessed[-1]
        found = "" if newest["error"] is None else f"{newest['error']:.3f} {unit}, "
        facts["assessed"] = f"{found}{newest['falls']:.0f} falls"
    page.facts(facts)


def _learning(page: Page, rows: Sequence[Row], assessed: Sequence[Row], task: Task) -> None:
    page.section("Learning")
    page.plot(_curves(rows, {"reward": "reward per step"}, "reward per step"))
    metric = error_metric(task) or ""
    if any(metric in row for row in rows):
        figure = _curves(rows, {metric: "exploring, in ranges that grow"}, error_label(task))
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


def _curriculum(page: Page, rows: Sequence[Row], task: Task) -> None:
    """Levels of terrain, ranges that grow, and red flags, of those that the run has."""
    if kinds := {key: key[8:] for key in rows[-1] if key.startswith("terrain/")}:
        page.section("Terrain")
        page.plot(_curves(rows, kinds, "mean level"), "Level of the curriculum, over all and by kind of ground.")
    if names := [key[4:-4] for key in rows[-1] if key.startswith("adr/") and key.endswith("/low")]:
        page.section("Ranges that grow by success (ADR)")
        figure = _curves(rows, {}, "boundaries, share of the full range")
        for k, name in enumerate(names):
            low, width = task.randomize[name].low, max(task.randomize[name].high - task.randomize[name].low, 1e-12)
            for side in ("low", "high"):
                shares = [(row[f"adr/{name}/{side}"] - low) / width for row in rows]
                _add(figure, rows, shares, k, name=name, legendgroup=name, showlegend=side == "low")
        page.plot(figure, "0 and 1 are the ends of the task's own range.")
    if flags := {key: key[5:] for key in rows[-1] if key.startswith("flag/")}:
        page.section("Red flags")
        page.plot(_curves(rows, flags, "share of simulations"), "Shuffling, hopping, torque at its limit, idling.")


def _curves(rows: Sequence[Row], names: Mapping[str, str], unit: str) -> Any:
    """Metrics over the training, by the labels they have in the legend."""
    y = {"title": {"text": unit}, "automargin": True}
    figure = chart(320, {"title": {"text": "million control steps"}}, y, t=30)
    figure.update_layout(showlegend=True)
    for k, (key, label) in enumerate(names.items()):
        known = [row for row in rows if key in row]
        _add(figure, known, [row[key] for row in known], k, name=label)
    return figure


def _add(figure: Any, rows: Sequence[Row], values: Sequence[float], k: int, **options: Any) -> None:
    figure.add_scatter(x=[row["steps"] / _MILLION for row in rows], y=values, line=line_style(k), **options)
