"""The page of `trueup compare`: runs of training side by side."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from trueup.report.page import Cell, Page
from trueup.report.terminal import text_table
from trueup.report.traces import chart, line_style
from trueup.report.training.parts import weighted_terms
from trueup.tasks.load import load_task
from trueup.tasks.task import error_label, error_metric
from trueup.train.compare import ComparedRun, CompareVerb, differences, read_runs

_POINTS = 400  # of a curve
_AXES = {"steps": ("million control steps", 1e-6), "elapsed_s": ("minutes of wall-clock time", 1 / 60)}
_COLUMNS = ("run", "M steps", "minutes", "error", "95 %", "score", "falls", "95 % of falls")


def run_compare(verb: CompareVerb) -> int:
    """Write the page and print the final assessments."""
    runs, console = read_runs(verb.runs), Console()
    write_compare_page(runs, verb.out)
    console.print(text_table(("run", *(f">{name}" for name in _COLUMNS[1:])), _final(runs)))
    console.print(f"page   {verb.out}", soft_wrap=True)
    return 0


def compare(runs: Sequence[str | Path], out: str | Path) -> Path:
    """Write the page that shows runs of training side by side, and return its path."""
    return write_compare_page(read_runs(runs), Path(out))


def write_compare_page(runs: Sequence[ComparedRun], path: Path) -> Path:
    """Assessments, settings that differ, learning curves, reward terms and films."""
    page = Page("Runs compared", ", ".join(run.name for run in runs))
    page.section("Final assessment")
    page.table(_COLUMNS, _final(runs), "Without exploration; intervals over episodes. A dash: not assessed.")
    page.section("Settings that differ")
    if rows := [(name, *values) for name, values in differences(runs).items()]:
        page.table(("setting", *(run.name for run in runs)), rows)
    else:
        page.text("All recorded settings are the same.")
    _curves(page, runs)
    _terms(page, runs)
    if films := [(run.film, f"{run.name}, {int(run.film.stem) / 1e6:.2f} M steps") for run in runs if run.film]:
        page.section("What they look like")
        page.films(films)
    return page.write(path)


def _final(runs: Sequence[ComparedRun]) -> list[tuple[str, ...]]:
    return [tuple("–" if cell is None else str(cell) for cell in _final_row(run)) for run in runs]


def _final_row(run: ComparedRun) -> tuple[Cell, ...]:
    last, error, falls = run.rows[-1] if run.rows else {}, run.error(), run.falls()
    score = None if run.assessed is None else run.assessed.get("score")
    return (
        run.name,
        f"{last['steps'] / 1e6:.2f}" if last else None,
        f"{last['elapsed_s'] / 60:.1f}" if last else None,
        None if error is None else f"{error[0]:.3f}",
        None if error is None or error[1] is None else f"{error[0] - error[1]:.3f} to {error[0] + error[1]:.3f}",
        None if score is None else f"{score:.3f}",
        None if falls is None else f"{falls[0]} of {falls[1]}",
        None if falls is None else f"{falls[2][0]:.1%} to {falls[2][1]:.1%}",
    )


def _curves(page: Page, runs: Sequence[ComparedRun]) -> None:
    """Reward, and the error where all runs pursue the same, over steps and over time."""
    page.section("Learning")
    tasks = [load_task(run.cfg.task, run.cfg.robot) for run in runs]
    metrics = {"reward": "reward per step"}
    if len({error_metric(task) for task in tasks}) == 1 and (metric := error_metric(tasks[0])) is not None:
        metrics[metric] = error_label(tasks[0])
    for key, label in metrics.items():
        for axis, (title, scale) in _AXES.items():
            figure = chart(320, {"title": {"text": title}}, {"title": {"text": label}, "automargin": True}, t=50)
            figure.update_layout(showlegend=True)
            for k, run in enumerate(runs):
                rows = [row for row in run.rows[:: max(1, len(run.rows) // _POINTS)] if key in row]
                x, y = [scale * row[axis] for row in rows], [row[key] for row in rows]
                figure.add_scatter(x=x, y=y, name=run.name, line=line_style(k))
            page.plot(figure)


def _terms(page: Page, runs: Sequence[ComparedRun]) -> None:
    """Weighted reward terms at the end of each run."""
    found = [weighted_terms(run.rows[-1:], load_task(run.cfg.task, run.cfg.robot)) for run in runs]
    names = dict.fromkeys(name for terms in found for name in terms)
    if not names:
        return
    page.section("Reward terms")
    rows = [(name, *(terms[name][-1] if name in terms else None for terms in found)) for name in names]
    page.table(("weight x term, last iteration", *(run.name for run in runs)), rows)
