"""What `trueup calibrate delta` prints."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from trueup.calibrate.delta.delta import DeltaResult, calibrate_delta
from trueup.calibrate.delta.score import HORIZONS_S
from trueup.calibrate.delta.verbs import DeltaVerb
from trueup.core.errors import TrueupError
from trueup.report.terminal import progress_bar, text_table


def run_delta(verb: DeltaVerb) -> int:
    """Learn, print, write."""
    if not verb.logs:
        raise TrueupError("no log was named: give LOG... --robot ROBOT --out DIR")
    console = Console()
    with progress_bar("learning the delta action", console) as progress:
        result = calibrate_delta(
            verb.robot,
            verb.logs,
            verb.cfg,
            params=verb.params,
            mapping=verb.mapping,
            folder=verb.out,
            progress=progress,
        )
    helps = result.ratio < 1.0
    console.print(headline(result), style="bold green" if helps else "bold yellow", markup=False, highlight=False)
    console.print(_table(result))
    for note in result.notes:
        console.print(f"note: {note}", style="dim", markup=False)
    console.print(f"delta  {verb.out}", soft_wrap=True)
    if helps:
        console.print(f"next   trueup train TASK --from RUN --delta {verb.out}", soft_wrap=True, highlight=False)
    return 0


def headline(result: DeltaResult) -> str:
    """One sentence on what the correction is worth."""
    before, after = result.without.global_mm[-1], result.corrected.global_mm[-1]
    if result.ratio >= 1.0:
        return f"No correction was found: bodies are {before:.1f} mm off after {HORIZONS_S[-1]:g} s, as without one."
    text = f"After {HORIZONS_S[-1]:g} s of replay bodies are {after:.1f} mm off instead of {before:.1f}"
    return f"{text} ({result.ratio:.2f} of it), on {result.windows} windows held out."


def _table(result: DeltaResult) -> Table:
    rows = [
        (name, *(f"{value:.1f}" for value in errors.global_mm), *(f"{value:.1f}" for value in errors.mpjpe_mm))
        for name, errors in (("without", result.without), ("with the delta action", result.corrected))
    ]
    head = (f">{where}, {seconds:g} s" for where in ("in the world", "from the root") for seconds in HORIZONS_S)
    return text_table(("bodies off by, mm", *head), rows)
