"""`trueup predictions`: every run beside its prediction, and how good the predictions were."""

from __future__ import annotations

import sys

import msgspec
from rich.console import Console
from rich.markup import escape

from trueup.gap.predictions import PredictedQuantity, Predictions, predictions
from trueup.gap.verbs import PredictionsVerb
from trueup.report.page import Cell
from trueup.report.terminal import text_table

COLUMNS = ("run", "what", "predicted", "interval", "measured", "inside")


def run_predictions(verb: PredictionsVerb) -> int:
    """Score and print; 0 if there was anything to score, else 1."""
    found = predictions(verb.workspace, verb.robot)
    if verb.json:
        sys.stdout.write(msgspec.json.encode(found).decode() + "\n")
    else:
        print_predictions(found, Console())
    return int(not found.runs)


def print_predictions(found: Predictions, console: Console) -> None:
    """Table of runs and robots, then one line about all."""
    if found.runs:
        console.print(text_table(COLUMNS, [[str(cell) for cell in row] for row in prediction_rows(found)]))
    for line in summary_lines(found):
        console.print(line, soft_wrap=True, highlight=False)
    for note in found.notes:
        console.print(f"note     {escape(note)}", soft_wrap=True, highlight=False)


def prediction_rows(found: Predictions, robot: str | None = None) -> list[tuple[Cell, ...]]:
    """Rows of runs, then of all runs of a robot together; `robot`: only those of that name."""
    out: list[tuple[Cell, ...]] = []
    for scored in found.robots:
        if robot is not None and scored.name != robot:
            continue
        for run in scored.runs:
            fell = "fell" if run.fell else "stayed up"
            out.append((run.name, "fall", f"{run.fall_chance:.0%}", "", fell, f"Brier {run.brier:.2f}"))
            out += [_row(run.name, quantity) for quantity in run.quantities]
        out += [_row(f"{scored.name}: all runs", quantity) for quantity in scored.quantities]
    return out


def summary_lines(found: Predictions) -> list[str]:
    """The predictions of a workspace in a few words."""
    if not found.runs:
        return ["no run of the last rung has a prediction of its bundle"]
    text = f"{found.inside} of {found.judged} quantities lie inside their intervals"
    falls = f"{found.falls} of {found.runs} runs fell, {found.expected_falls:.1f} were expected"
    score = "" if found.brier is None else f"; Brier score {found.brier:.3f}"
    base = "" if found.brier_base is None else f" ({found.brier_base:.3f} for whoever knows only the share that fell)"
    return [text, falls + score + base]


def _row(name: str, found: PredictedQuantity) -> tuple[Cell, ...]:
    measured = "-" if found.measured is None else f"{found.measured:.3g} {found.unit}"
    inside = "-" if found.inside is None else "inside" if found.inside else "outside"
    return (name, found.name, f"{found.predicted:.3g}", f"{found.low:.3g} to {found.high:.3g}", measured, inside)
