"""Output of `trueup symptoms`: symptoms on the robot, measurements, and the changes of training."""

from __future__ import annotations

import sys

import msgspec
from rich.console import Console
from rich.markup import escape

from trueup.gap.symptoms.finding import Looked, SymptomTable
from trueup.gap.symptoms.symptoms import symptoms
from trueup.gap.symptoms.verbs import SymptomsVerb
from trueup.report.terminal import text_table

_COLUMNS = ("symptom", "quantity", ">measured", ">bound", "unit", "")


def run_symptoms(verb: SymptomsVerb) -> int:
    """Measure, evaluate, write and print; 0: no symptoms, 1: some."""
    console = Console(stderr=verb.json)
    with console.status("reading") as status:

        def progress(text: str) -> None:
            status.update(f"simulating {verb.robots} robots: {text}")

        table = symptoms(
            verb.logs, verb.robot, out=verb.folder, bundle=verb.bundle, task=verb.task, params=verb.params,
            command=verb.command, robots=verb.robots, seed=verb.seed, threads=verb.threads, progress=progress,
        )  # fmt: skip
    if verb.json:
        sys.stdout.write(msgspec.json.encode(table).decode() + "\n")
    else:
        print_symptoms(table, console)
        console.print(f"written  {verb.folder}", soft_wrap=True, highlight=False)
    return int(bool(table.symptoms))


def print_symptoms(table: SymptomTable, console: Console) -> None:
    """Print every checked quantity, then each symptom with evidence, cause and change."""
    console.print(text_table(_COLUMNS, [_row(seen) for seen in table.looked if seen.value is not None]))
    unseen = sorted({seen.name for seen in table.looked if seen.value is None and seen.name != "falls at set-down"})
    if unseen:
        console.print(f"not measured in these recordings: {', '.join(unseen)}", soft_wrap=True, highlight=False)
    for symptom in table.symptoms:
        console.print(f"[red]{symptom.name}[/]: {escape(symptom.evidence)}", soft_wrap=True, highlight=False)
        console.print(f"  bound    {escape(symptom.bound_from)}", soft_wrap=True, highlight=False)
        console.print(f"  cause    {escape(symptom.cause)}", soft_wrap=True, highlight=False)
        words = "; ".join(change.words for change in symptom.changes)
        console.print(f"  training {escape(symptom.change)}" + (f" ({words})" if words else ""), soft_wrap=True,
                      highlight=False)  # fmt: skip
    for text in table.notes:
        console.print(f"note     {escape(text)}", soft_wrap=True, highlight=False)
    if not table.symptoms:
        against = f"{table.reference} simulated robots" if table.reference else "the robot's limits"
        console.print(f"[green]no symptoms[/] in {len(table.runs)} runs, against {against}", highlight=False)
    elif table.command:
        console.print(f"next     {escape(table.command)}", soft_wrap=True, highlight=False)


def _row(seen: Looked) -> tuple[str, ...]:
    bound = "-" if seen.bound is None else f"{seen.bound:.3g}"
    assert seen.value is not None
    return (
        seen.name,
        seen.quantity.replace("_", " "),
        f"{seen.value:.3g}",
        bound,
        seen.unit,
        "told" if seen.told else "",
    )
