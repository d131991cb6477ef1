"""Output of `trueup predictions`: predictions of a robot against its runs, and their scores."""

from __future__ import annotations

import sys

import msgspec
from rich.console import Console
from rich.markup import escape

from trueup.gap.predictions import PredictedQuantity, Predictions, ScoredRun, predictions
from trueup.gap.verbs import PredictionsVerb
from trueup.report.terminal import text_table

COLUMNS = ("of the robot", "what", "predicted", "95 %", "measured", "")
RUNS = ("run", "asked for", "fell", "chance", "velocity error, m/s", "power, W")


def run_predictions(verb: PredictionsVerb) -> int:
    """Score and print; 0 if there was anything to score, else 1."""
    found = predictions(verb.workspace, verb.robot)
    if verb.json:
        sys.stdout.write(msgspec.json.encode(found).decode() + "\n")
    else:
        print_predictions(found, Console())
    return int(not found.runs)


def print_predictions(found: Predictions, console: Console) -> None:
    """Print scores of robots, then runs; intervals are those of a robot's mean, so single runs have none."""
    for line in summary_lines(found):
        console.print(line, soft_wrap=True, highlight=False)
    if found.runs:
        console.print(
            text_table(COLUMNS, [_row(robot.name, each) for robot in found.robots for each in robot.quantities])
        )
        console.print(text_table(RUNS, [_run(run) for robot in found.robots for run in robot.runs]))
    for note in found.notes:
        console.print(f"note     {escape(note)}", soft_wrap=True, highlight=False)


def summary_lines(found: Predictions) -> list[str]:
    """The predictions of a workspace in a few words."""
    if not found.runs:
        return ["no run of the last rung has a prediction of its bundle"]
    text = f"{found.inside} of {found.judged} quantities lie inside their intervals"
    falls = f"{found.falls} of {found.runs} runs fell, {found.expected_falls:.1f} were expected"
    score = "" if found.brier is None else f"; Brier score {found.brier:.3f}"
    base = "" if found.brier_base is None else f" ({found.brier_base:.3f} for whoever knows only the share that fell)"
    return [text, falls + score + base]


def _row(name: str, quantity: PredictedQuantity) -> list[str]:
    measured = "-" if quantity.measured is None else f"{quantity.measured:.3g} {quantity.unit}"
    inside = "-" if quantity.inside is None else "inside" if quantity.inside else "outside"
    return [
        name,
        quantity.name,
        f"{quantity.predicted:.3g}",
        f"{quantity.low:.3g} to {quantity.high:.3g}",
        measured,
        inside,
    ]


def _run(run: ScoredRun) -> list[str]:
    known = {each.name: each.measured for each in run.quantities}
    measured = ["-" if (value := known.get(name)) is None else f"{value:.3g}" for name in ("velocity error", "power")]
    return [run.name, run.command, "yes" if run.fell else "no", f"{run.fall_chance:.0%}", *measured]
