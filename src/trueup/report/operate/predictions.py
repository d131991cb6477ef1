"""`trueup predictions`: what was predicted of a robot, what its runs showed, and how good the predictions were."""

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
    """What held, of robots and then run by run; intervals are those of a robot's mean, so no run is judged by them."""
    for line in summary_lines(found):
        console.print(line, soft_wrap=True, highlight=False)
    if found.runs:
        console.print(text_table(COLUMNS, [_row(one.name, each) for one in found.robots for each in one.quantities]))
        console.print(text_table(RUNS, [_run(run) for one in found.robots for run in one.runs]))
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


def _row(name: str, one: PredictedQuantity) -> list[str]:
    measured = "-" if one.measured is None else f"{one.measured:.3g} {one.unit}"
    inside = "-" if one.inside is None else "inside" if one.inside else "outside"
    return [name, one.name, f"{one.predicted:.3g}", f"{one.low:.3g} to {one.high:.3g}", measured, inside]


def _run(one: ScoredRun) -> list[str]:
    known = {each.name: each.measured for each in one.quantities}
    measured = ["-" if (value := known.get(name)) is None else f"{value:.3g}" for name in ("velocity error", "power")]
    return [one.name, one.command, "yes" if one.fell else "no", f"{one.fall_chance:.0%}", *measured]
