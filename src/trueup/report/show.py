"""Results as text and as a page: `tu.table(fit)`, `tu.report(fit, "fit.html")`, or methods of the result."""

from __future__ import annotations

import io
from pathlib import Path

from rich.console import Console

from trueup.calibrate.actuator.ladder import Ladder
from trueup.calibrate.calibrate import Fit
from trueup.calibrate.score_logs import LogScores
from trueup.report.calibration.actuators import ladder_page, print_ladder
from trueup.report.calibration.calibrate import fit_page, print_fit
from trueup.report.calibration.score_logs import print_scores, scores_page

_WIDTH = 150  # characters that the widest table needs


def table(result: Fit | Ladder | LogScores) -> str:
    """A result as text: parameters with verdicts, rungs with the recommendation, or errors on logs."""
    console = Console(file=io.StringIO(), width=_WIDTH)
    match result:
        case Fit():
            print_fit(result, console)
        case Ladder():
            print_ladder(result, console)
        case LogScores():
            print_scores(result, console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def report(result: Fit | Ladder | LogScores, path: str | Path) -> Path:
    """Write a result's page, one HTML file that opens offline."""
    match result:
        case Fit():
            page = fit_page(result)
        case Ladder():
            page = ladder_page(result)
        case LogScores():
            page = scores_page(result)
    return page.write(path)
