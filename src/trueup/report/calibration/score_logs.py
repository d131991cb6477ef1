"""What `trueup sim LOG... --params FIT` shows: errors per log and per joint, and a page with traces."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np
from rich.console import Console
from rich.table import Table

from trueup.calibrate.score_logs import JointErrors, LogScores, joint_errors
from trueup.report.page import Page
from trueup.report.traces import joint_traces
from trueup.world.replay.replay import Replay

WORSE = "WORSE THAN NOMINAL: on these logs the fit predicts worse than the model without it. Do not use it for them."
_HEAD = ("nominal RMSE", "fit RMSE", "nominal MAE", "fit MAE")
_MOST_SHOWN = 4
Row = tuple[str, float, float, float, float]
T = TypeVar("T")


def print_scores(scores: LogScores, console: Console | None = None) -> None:
    """Errors per log and per joint, in mrad."""
    console = console or Console()
    if scores.worse:
        console.print(WORSE, style="bold red")
    for title, rows in tables(scores).items():
        table = Table(title=f"{title}, mrad", title_justify="left")
        table.add_column("")
        for name in _shown(scores, _HEAD):
            table.add_column(name, justify="right")
        for label, *values in rows:
            table.add_row(label, *(f"{value:.3f}" for value in _shown(scores, values)))
        console.print(table)
    console.print(_about(scores))
    for note in scores.notes:
        console.print(f"note: {note}", style="dim", markup=False)


def scores_text(scores: LogScores) -> str:
    """What `print_scores` shows, as plain text."""
    out = io.StringIO()
    print_scores(scores, Console(file=out, width=120))
    return out.getvalue()


def tables(scores: LogScores) -> dict[str, list[Row]]:
    """Rows of errors (mrad) by title: open loop per log and per joint, then windows."""
    nominal, fit = scores.nominal, scores.calibrated or scores.nominal
    whole = [_means(name_of(scores, k), [a], [b]) for k, (a, b) in _pairs(nominal.replays, fit.replays)]
    out = {
        "Open loop, by log": [*whole, _means("all", nominal.replays, fit.replays)],
        "Open loop, by joint": _by_joint(scores, nominal.open_loop, fit.open_loop),
    }
    if nominal.windows is not None and fit.windows is not None:
        out["Windows of 0.5 s, by log"] = [
            _means(name_of(scores, k), a, b) for k, (a, b) in _pairs(nominal.cut, fit.cut) if a and b
        ]
        out["Windows of 0.5 s, by joint"] = _by_joint(scores, nominal.windows, fit.windows)
    return out


def name_of(scores: LogScores, k: int) -> str:
    """A log's name: its number, how long it is and where it says it comes from."""
    log = scores.logs[k]
    said = next((log.meta[key] for key in ("file", "source", "driver") if key in log.meta), "")
    words = ", ".join(map(str, said)) if isinstance(said, list | tuple) else str(said)
    return f"{k + 1}: {log.time[-1] - log.time[0]:.1f} s {words}".strip()


def write_scores_page(scores: LogScores, path: str | Path) -> Path:
    """Write the page."""
    page = Page(f"Logs of {scores.robot} in the simulator", "Recorded commands, replayed without a refit.")
    page.facts({**facts_of(scores), "logs": len(scores.logs), "physics": f"{scores.physics_hz:g} Hz"})
    if scores.worse:
        page.text(WORSE)
    page.text(_about(scores))
    for title, rows in tables(scores).items():
        page.section(title)
        shown: list[tuple[str | float, ...]] = [(row[0], *_shown(scores, row[1:])) for row in rows]
        page.table(("mrad", *_shown(scores, _HEAD)), shown)
    _traces(page, scores)
    return page.write(path)


def facts_of(scores: LogScores) -> dict[str, str]:
    """Open-loop errors in words."""
    facts = {"nominal, open loop": f"{1e3 * scores.nominal.open_loop.rmse_mean:.2f} mrad"}
    if scores.calibrated is not None:
        facts["fit, open loop"] = f"{1e3 * scores.calibrated.open_loop.rmse_mean:.2f} mrad"
    return facts


def _traces(page: Page, scores: LogScores) -> None:
    for k, nominal in enumerate(scores.nominal.replays[:_MOST_SHOWN]):
        page.section(f"Log {name_of(scores, k)}")
        signals = {"measured": nominal.measured_pos[0], "nominal": nominal.joint_pos[0]}
        if scores.calibrated is not None:
            signals["fit"] = scores.calibrated.replays[k].joint_pos[0]
        finite = {name: np.nan_to_num(values) for name, values in signals.items()}
        page.plot(joint_traces(nominal.time, finite, scores.joint_names, "rad"))


def _pairs(nominal: Sequence[T], fit: Sequence[T]) -> Iterator[tuple[int, tuple[T, T]]]:
    return enumerate(zip(nominal, fit, strict=True))


def _means(label: str, nominal: Sequence[Replay], fit: Sequence[Replay]) -> Row:
    a, b = joint_errors(nominal), joint_errors(fit)
    assert a is not None
    assert b is not None
    return label, 1e3 * a.rmse_mean, 1e3 * b.rmse_mean, 1e3 * a.mae_mean, 1e3 * b.mae_mean


def _by_joint(scores: LogScores, nominal: JointErrors, fit: JointErrors) -> list[Row]:
    both = zip(scores.joint_names, nominal.rmse, fit.rmse, nominal.mae, fit.mae, strict=True)
    means = ("mean", nominal.rmse_mean, fit.rmse_mean, nominal.mae_mean, fit.mae_mean)
    return [(name, 1e3 * a, 1e3 * b, 1e3 * c, 1e3 * d) for name, a, b, c, d in (*both, means)]


def _shown(scores: LogScores, values: Sequence[T]) -> list[T]:
    """All four columns, or those of the nominal model when there is no fit."""
    return list(values) if scores.calibrated is not None else [values[0], values[2]]


def _about(scores: LogScores) -> str:
    lost = [
        f"{model.diverged} of {len(scores.logs)} simulations {what} blew up"
        for what, model in (("of the nominal model", scores.nominal), ("with the fit", scores.calibrated))
        if model is not None and model.diverged
    ]
    words = (
        f"RMSE and MAE of joint position, mean over joints; physics at {scores.physics_hz:g} Hz; open loop from the "
        "first sample to the last, and windows of 0.5 s from recorded states."
    )
    return " ".join([words, *(f"{one}." for one in lost)])
