"""What `trueup record --excitation active` shows before anything moves: what the motion should tell."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from trueup.calibrate.active.plan import ActivePlan
from trueup.report.page import Page


def print_active(plan: ActivePlan, console: Console) -> None:
    """Predicted standard errors of the weak parameters, the gain over usual excitations, and how it ends."""
    table = Table("weak parameter", "unit", box=None, header_style="bold")
    for name in ("estimate", "+- now", "+- after", "then"):
        table.add_column(name, justify="left" if name == "then" else "right")
    for row in _rows(plan):
        table.add_row(*row)
    console.print(table)
    console.print(_ending(plan))
    console.print(_others(plan))


def add_active(page: Page, plan: ActivePlan) -> None:
    """The same as a section of the plan's page."""
    page.section("What this motion should tell")
    page.text(_ending(plan))
    columns = ("weak parameter", "unit", "estimate", "standard error now", "predicted after", "then")
    page.table(columns, _rows(plan))
    page.text(_others(plan))


def _rows(plan: ActivePlan) -> list[tuple[str, str, str, str, str, str]]:
    return [
        (
            entry.estimate.parameter.label,
            entry.estimate.parameter.unit,
            f"{entry.estimate.value:.4g}",
            f"{entry.estimate.standard_error:.2g}",
            f"{entry.standard_error:.2g}",
            entry.word,
        )
        for entry in plan.expected
    ]


def _ending(plan: ActivePlan) -> str:
    seconds = plan.rehearsal.plan.seconds
    if plan.reached:
        return f"{seconds:.0f} s of this motion should identify every weak parameter: the plan ends there."
    if plan.seconds_needed is not None:
        return (
            f"{seconds:.0f} s do not identify all of them; about {plan.seconds_needed:.0f} s of such motion would "
            "(--seconds), or more room (--amplitude)."
        )
    return (
        f"{seconds:.0f} s do not identify all of them, and more of such motion will not either: what is left needs "
        "another pose, a known load, or fewer parameters."
    )


def _others(plan: ActivePlan) -> str:
    others = ", ".join(f"{name} {value:.2f}" for name, value in sorted(plan.others.items(), key=lambda kv: kv[1]))
    return (
        f"standard errors over prior widths, root mean square of the weak parameters: now {plan.before:.2f}, after "
        f"{plan.after:.2f}; the same time within the same limits with {others}"
    )
