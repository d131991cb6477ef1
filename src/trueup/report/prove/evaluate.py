"""Output of `trueup evaluate`: progress, a table of scenarios, red flags, sensitivity; and the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import msgspec
from rich.console import Console

from trueup.core.errors import TrueupError
from trueup.core.stop import stop_on_signal
from trueup.evaluate.run import evaluate
from trueup.evaluate.score import PolicyScore, ScenarioResult, Sensitivity, compare
from trueup.evaluate.verbs import EvaluateVerb
from trueup.report.prove.scores_page import scores_page
from trueup.report.prove.words import left_out, level_words, too_few, verdict_words
from trueup.report.terminal import progress_bar, text_table

_WIDE = 110  # characters that titles and all columns need
_SHOWN = {"error": ">error", "cost_of_transport": ">cost of transport", "torque": ">torque", "clearance": ">clearance"}


def run_evaluate(verb: EvaluateVerb) -> int:
    """Evaluate, print, write; 0: every scenario was passed, 1: not, 130: stopped."""
    console = Console(stderr=verb.json)
    if not verb.bundles:
        raise TrueupError("name at least one bundle; `trueup export RUN --out X.bundle` makes one of a run")
    names = policy_names(verb.bundles)
    options = {name: value for name, value in vars(verb).items() if name not in ("bundles", "out", "json")}
    scores: list[PolicyScore] = []
    with stop_on_signal() as stop:
        for bundle, name in zip(verb.bundles, names, strict=True):
            out = verb.folder if len(names) == 1 else verb.folder / name
            with progress_bar(f"evaluating {name}", console) as progress:
                scores.append(evaluate(bundle, out=out, progress=progress, stop=stop, **options))
            if stop.is_set():
                break
    if verb.json:
        print(msgspec.json.encode([replace(score, folder=None) for score in scores]).decode())
    for score in scores:
        print_score(score, console)
    if len(scores) > 1 and all(score.complete for score in scores):
        print_duels(scores, console)
    if stop.is_set():
        console.print(f"stopped; what is done is in {verb.folder}: the same command goes on", soft_wrap=True)
        return 130
    page = scores_page(scores).write(verb.folder / "index.html")
    console.print(f"page   {page}", soft_wrap=True)
    return 0 if all(score.passed for score in scores) else 1


def policy_names(bundles: Sequence[Path]) -> list[str]:
    """A name for each bundle that is also a folder's; two of one name get numbers."""
    stems = [bundle.resolve().stem for bundle in bundles]
    return [stem if stems.count(stem) == 1 else f"{stem}-{k + 1}" for k, stem in enumerate(stems)]


def print_score(score: PolicyScore, console: Console) -> None:
    """The table of scenarios, red flags and margins of one policy."""
    console.print(f"\n{score.policy}: {verdict_words(score)}", style="bold", markup=False, soft_wrap=True)
    is_wide = console.width >= _WIDE
    known = {name: head for name, head in _SHOWN.items() if any(name in result.metrics for result in score.results)}
    shown = known if is_wide else {name: head for name, head in known.items() if name == "error"}
    table = text_table(("scenario", ">success", ">95 %", *shown.values(), "failed by"))
    for result in score.results:
        numbers = [_number(result, name) for name in shown]
        style = None if result.passed else "red"
        interval = f"{result.rate.low:.2f}-{result.rate.high:.2f}"
        count = f"{result.rate.successes}/{result.rate.trials}"
        table.add_row(
            result.title if is_wide else result.name, count, interval, *numbers, _reasons(result), style=style
        )
    console.print(table)
    console.print(f"error: {score.error_label or 'none'}", style="dim")
    for note in (too_few(score), left_out(score)):
        if note:
            console.print(note, style="yellow", markup=False, soft_wrap=True)
    for flag in score.red_flags:
        console.print(f"[red]{flag.name}[/red]: {flag.seen}", soft_wrap=True)
        console.print(f"  usually {flag.cause}; {flag.fix}", style="dim", markup=False, soft_wrap=True)
    if score.sensitivity is not None:
        _print_sensitivity(score.sensitivity, console)


def print_duels(scores: Sequence[PolicyScore], console: Console) -> None:
    """The first policy against each of the others."""
    first = scores[0]
    for other in scores[1:]:
        duels = compare(first, other)
        count = {word: sum(duel.outcome == word for duel in duels) for word in ("won", "drawn", "lost")}
        text = ", ".join(f"{word} {number}" for word, number in count.items())
        console.print(f"\n{first.policy} against {other.policy}: {text} of {len(duels)} scenarios", style="bold")
        for duel in duels:
            if duel.outcome != "drawn":
                console.print(f"  {duel.outcome} {first[duel.name].title} (p {duel.p:.2g})", markup=False)


def _print_sensitivity(found: Sensitivity, console: Console) -> None:
    table = text_table(("moved", ">bears", ">breaks at"), title=f"what breaks it, in {found.base!r}")
    for probe in found.probes:
        table.add_row(probe.title, level_words(probe, probe.margin), level_words(probe, probe.breaks))
    console.print(table)
    if found.pairs:
        worst = found.pairs[0]
        console.print(
            f"worst pair, two thirds of the way to their margins: {' and '.join(worst.titles)}, "
            f"{worst.rate.share:.0%} succeed"
        )


def _number(result: ScenarioResult, name: str) -> str:
    return f"{result.metrics[name].mean:.3f}" if name in result.metrics else ""


def _reasons(result: ScenarioResult) -> str:
    return ", ".join(f"{why} {count}" for why, count in sorted(result.reasons.items(), key=lambda item: -item[1]))
