"""Output of `trueup doctor`: a table of checks, then estimated times of usual jobs."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from trueup.doctor.checks import Diagnosis, DoctorVerb, diagnose
from trueup.report.terminal import text_table

if TYPE_CHECKING:
    from trueup.doctor.speed import Cost

_MARKS = {"ok": ("ok", "green"), "warn": ("warn", "yellow"), "fail": ("FAIL", "bold red")}


def run_doctor(verb: DoctorVerb, console: Console | None = None) -> int:
    """Check this computer and print the findings; return the exit status, 1 if any check failed."""
    console = console or Console()
    if verb.json:
        diagnosis = diagnose()
        console.print_json(json.dumps(as_dict(diagnosis)))
    else:
        with console.status("measuring physics and drawing..."):
            diagnosis = diagnose()
        show(diagnosis, console)
    return exit_status(diagnosis)


def exit_status(diagnosis: Diagnosis) -> int:
    """1 if any check failed, else 0; warnings do not count."""
    return int(any(check.status == "fail" for check in diagnosis.checks))


def as_dict(diagnosis: Diagnosis) -> dict[str, Any]:
    """The same findings for programs: checks, speed, costs."""
    return {
        "ok": exit_status(diagnosis) == 0,
        "checks": [asdict(check) for check in diagnosis.checks],
        "speed": asdict(diagnosis.speed) if diagnosis.speed else None,
        "costs": [asdict(cost) for cost in _costs(diagnosis)],
    }


def show(diagnosis: Diagnosis, console: Console) -> None:
    """Print both tables; advice stands under the finding it belongs to."""
    table = text_table(("check", "", "found"), title="This computer", pad_edge=False)
    for check in diagnosis.checks:
        word, style = _MARKS[check.status]
        found = Text(check.found)
        if check.advice:
            found.append(f"\n-> {check.advice}", style=style if check.status != "ok" else "dim")
        table.add_row(check.name, Text(word, style=style), found)
    console.print(table)
    console.print()
    if costs := _costs(diagnosis):
        rows = [(cost.what, duration(cost.seconds), Text(cost.assumes, style="dim")) for cost in costs]
        console.print(text_table(("job", ">time", "assuming"), rows, title="What it takes here", pad_edge=False))


def duration(seconds: float) -> str:
    """A duration as text: `0.4 s`, `12 s`, `15 min`, `2.5 h`."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def _costs(diagnosis: Diagnosis) -> list[Cost]:
    if diagnosis.speed is None:
        return []
    from trueup.doctor.speed import estimate_costs  # needs the simulator, which is there if its speed is known

    return estimate_costs(diagnosis.speed)
