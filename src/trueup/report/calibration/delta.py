"""Output of `trueup calibrate delta`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from trueup.calibrate.delta.beside.baselines import BOTH, IDENTIFIED, ScoredMethod, recommended, score_all
from trueup.calibrate.delta.delta import DeltaResult, learn_delta, write_delta
from trueup.calibrate.delta.problem import DeltaProblem
from trueup.calibrate.delta.score import HORIZONS_S
from trueup.calibrate.delta.verbs import DeltaVerb
from trueup.core.errors import TrueupError
from trueup.data.files import read_logs
from trueup.report.calibration.delta_page import delta_page
from trueup.report.terminal import progress_bar, text_table
from trueup.robot.load import load_robot


def run_delta(verb: DeltaVerb) -> int:
    """Learn, print, write."""
    if not verb.logs:
        raise TrueupError("no log was named: give LOG... --robot ROBOT --out DIR")
    console, robot = Console(), load_robot(verb.robot)
    logs, held = (read_logs(files, verb.mapping) for files in (verb.logs, verb.holdout))
    problem = DeltaProblem(robot, logs, verb.cfg, holdout=held, params=verb.params)
    scored: tuple[ScoredMethod, ...] = ()
    with progress_bar("learning the delta action", console) as progress:
        if verb.baselines:
            result, scored = score_all(problem, progress)
        else:
            result = learn_delta(problem, progress)
    folder = Path(verb.out)
    write_delta(result, folder, verb.cfg, {method.name: method.errors._asdict() for method in scored})
    helps = result.ratio < 1.0
    console.print(headline(result), style="bold green" if helps else "bold yellow", markup=False, highlight=False)
    console.print(_table(result, scored))
    for note in result.notes:
        console.print(f"note: {note}", style="dim", markup=False)
    console.print(f"delta  {folder}", soft_wrap=True)
    if verb.page:
        page = delta_page(problem, result, scored, headline(result), folder).write(folder / "index.html")
        console.print(f"page   {page}", soft_wrap=True)
    for line in next_steps(scored, folder, helps=helps):
        console.print(line, soft_wrap=True, highlight=False, markup=False)
    return 0


def next_steps(scored: Sequence[ScoredMethod], folder: Path, *, helps: bool) -> tuple[str, ...]:
    """What to train under; with baselines, the best of them on the held-out data."""
    train = f"trueup train TASK --from RUN --delta {folder}"
    best = recommended(scored) if scored else None
    if best == IDENTIFIED:
        told = "identified parameters explain these logs as well as a delta action: trueup calibrate LOG... --out fit"
        return told, "next   trueup train TASK --from RUN --params fit"
    if best == BOTH:
        told = "a delta action on an identified simulator is best here: trueup calibrate LOG... --out fit, then this"
        return f"{told} command with --params fit", f"next   {train} --params fit"
    return (f"next   {train}",) if helps and best != "nothing" else ()


def headline(result: DeltaResult) -> str:
    """One sentence on the correction's effect."""
    before, after = result.without.global_mm[-1], result.corrected.global_mm[-1]
    if result.ratio >= 1.0:
        return f"No correction was found: bodies are {before:.1f} mm off after {HORIZONS_S[-1]:g} s, as without one."
    text = f"After {HORIZONS_S[-1]:g} s of replay bodies are {after:.1f} mm off instead of {before:.1f}"
    return f"{text} ({result.ratio:.2f} of it), on {result.windows} windows held out."


def _table(result: DeltaResult, scored: Sequence[ScoredMethod]) -> Table:
    found = [(method.name, method.errors) for method in scored]
    found = found or [("without", result.without), ("with the delta action", result.corrected)]
    rows = [(name, *(f"{value:.1f}" for value in (*errors.global_mm, errors.mpjpe_mm[-1]))) for name, errors in found]
    head = (*(f">{seconds:g} s" for seconds in HORIZONS_S), f">from root, {HORIZONS_S[-1]:g} s")
    return text_table(("bodies off, mm", *head), rows)
