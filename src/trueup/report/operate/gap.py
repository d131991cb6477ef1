"""Output of `trueup gap` and its page: the verdict first and last, ranked causes with evidence between."""

from __future__ import annotations

import shlex

from rich.console import Console

from trueup.core.errors import TrueupError
from trueup.gap.gap import gap
from trueup.gap.result import GapResult
from trueup.gap.verbs import GapVerb
from trueup.report.page import Badge, Page
from trueup.report.terminal import progress_bar, text_table

_SHOWN = 5
OUT = "gap"  # folder that commands name where none was given


def run_gap(verb: GapVerb) -> int:
    """Diagnose, print, write; 1 if a cause was found."""
    if not verb.logs:
        raise TrueupError("no log was named: give LOG... [--robot ROBOT]")
    console = Console()
    with progress_bar("comparing", console) as progress:
        found = gap(
            verb.robot,
            verb.logs,
            verb.cfg,
            params=verb.params,
            bundle=verb.bundle,
            mapping=verb.mapping,
            out=verb.out or OUT,
            progress=progress,
        ).result
    print_gap(found, console)
    if verb.out is not None:
        console.print(f"result {found.write(verb.out)}", soft_wrap=True)
        console.print(f"page   {gap_page(found).write(verb.out / 'index.html')}", soft_wrap=True)
    console.print(verdict(found), style=_style(found), markup=False, highlight=False, soft_wrap=True)
    if found.causes and verb.out is None and found.refit is not None:
        console.print(f"first  {_written(verb)}", markup=False, highlight=False, soft_wrap=True)
    if found.causes:
        console.print(f"next   {found.causes[0].command}", markup=False, highlight=False, soft_wrap=True)
    return 0 if found.nothing_wrong else 1


def _written(verb: GapVerb) -> str:
    """The same command, that leaves a refit request."""
    options = {"--robot": verb.robot, "--params": verb.params, "--bundle": verb.bundle, "--mapping": verb.mapping}
    given = [word for name, value in options.items() if value is not None for word in (name, str(value))]
    return shlex.join(["trueup", "gap", *map(str, verb.logs), *given, "--out", OUT])


def verdict(found: GapResult) -> str:
    """The diagnosis in one sentence."""
    if found.nothing_wrong and found.disagreement:
        return f"NO SINGLE CAUSE: {found.disagreement}."
    if found.nothing_wrong:
        return "NOTHING WRONG: no single change explains what simulator and robot do differently."
    if not found.causes:
        worst = max(found.distances, key=lambda name: found.distances[name])
        return f"NO COMMANDS IN THE LOG: farthest from simulation is {worst} ({found.distances[worst]:.2g} deviations)."
    first = found.causes[0]
    rivals = [cause.name for cause in found.causes[1:] if cause.tied] if first.excitation else []
    named = all(joint in first.evidence for joint in first.joints)
    where = "" if named else f" ({', '.join(first.joints)})"
    text = f"{first.name.upper()}{where}: {first.evidence}."
    return f"{text} As good: {', '.join(rivals)}; to tell them apart: {first.excitation}." if rivals else text


def print_gap(found: GapResult, console: Console) -> None:
    """The verdict, causes, a second cause, and errors by horizon."""
    console.print(verdict(found), style=_style(found), markup=False, highlight=False, soft_wrap=True)
    if found.causes:
        table = text_table(("cause", ">explains", ">90 % from", ">to", ">confidence", "size"))
        for cause in found.causes[:_SHOWN]:
            name = f"{cause.name} (as good)" if cause.tied else cause.name
            table.add_row(
                name, *_shares(cause.explained, *cause.interval, cause.confidence), cause.evidence.split(":")[0]
            )
        console.print(table)
    for pair in found.pairs[:2]:
        console.print(f"with {pair.names[1]} too: {pair.explained:.0%} (adds {pair.adds:.0%})", highlight=False)
    if found.horizons:
        errors = [
            (horizon.signal, horizon.horizon, f"{horizon.error:.3g}", f"{horizon.moved:.3g}", horizon.unit)
            for horizon in found.horizons
        ]
        console.print(text_table(("signal", "after", ">error", ">moved", "unit"), errors))
    if found.distances:
        rows = [(name, f"{value:.3g}") for name, value in found.distances.items()]
        console.print(text_table(("distance of distributions", ">value"), rows))
    for note in (*([found.disagreement] if found.disagreement and found.causes else []), *found.notes):
        console.print(f"note: {note}", style="dim", markup=False, soft_wrap=True)


def gap_page(found: GapResult) -> Page:
    """The diagnosis as a page."""
    page = Page(f"Gap of {found.robot}", "Where simulator and robot differ, and why.")
    page.verdict("good" if found.nothing_wrong else "bad", verdict(found))
    page.facts(
        {"logs": len(found.logs), "seconds": found.seconds, "windows": found.windows, "base": found.base,
         "model": found.params or "nominal"}
    )  # fmt: skip
    if found.causes:
        page.section("Causes")
        columns = ("cause", "explains", "90 % interval", "likeliest in", "evidence", "to tell apart")
        rows = [
            (Badge("warn" if cause.tied else "bad", cause.name), f"{cause.explained:.0%}",
             "{:.0%} to {:.0%}".format(*cause.interval), f"{cause.confidence:.0%}",
             cause.evidence.rsplit(": explains", 1)[0], cause.excitation)
            for cause in found.causes
        ]  # fmt: skip
        page.table(columns, rows, "Share of the squared mismatch of held-out windows that disappears.")
        page.section("What fixes it")
        for cause in found.causes[:_SHOWN]:
            page.code(f"{cause.name}: {cause.command}")
    if found.pairs:
        page.section("With a second cause")
        both = [(*pair.names, *_shares(pair.explained, pair.adds)) for pair in found.pairs]
        page.table(("first", "second", "together", "adds"), both)
    page.section("Everything that was tested")
    ordered = [(name, f"{share:.0%}") for name, share in sorted(found.tried.items(), key=lambda item: -item[1])]
    page.table(("hypothesis", "explains"), ordered, "Also what is too small to matter.")
    page.section("Mismatch by horizon")
    page.table(
        ("signal", "after", "error", "moved", "unit"),
        [(horizon.signal, horizon.horizon, horizon.error, horizon.moved, horizon.unit) for horizon in found.horizons],
        "Root mean square, simulated from measured states with the logged commands.",
    )
    if found.distances:
        page.section("Distances of distributions")
        page.table(("signal", "distance"), list(found.distances.items()))
    if notes := [one for one in (found.disagreement, *found.notes) if one]:
        page.text("\n\n".join(notes))
    return page


def _shares(*values: float) -> list[str]:
    return [f"{value:.0%}" for value in values]


def _style(found: GapResult) -> str:
    return "bold green" if found.nothing_wrong else "bold red"
