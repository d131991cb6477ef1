"""Results as text and as a page: `tu.table(fit)`, `tu.report(fit, "fit.html")`, or methods of the result."""

from __future__ import annotations

import io
from pathlib import Path

from rich.console import Console

from trueup.calibrate.actuator.ladder import Ladder
from trueup.calibrate.calibrate import Fit
from trueup.calibrate.score_logs import LogScores
from trueup.deploy.deploy import Deployed
from trueup.evaluate.score import PolicyScore
from trueup.gap.gap import Gap
from trueup.gap.symptoms.finding import SymptomTable
from trueup.report.calibration.actuators import ladder_page, print_ladder
from trueup.report.calibration.calibrate import print_fit
from trueup.report.calibration.fit_page import fit_page
from trueup.report.calibration.score_logs import print_scores
from trueup.report.calibration.score_logs import scores_page as log_scores_page
from trueup.report.operate.deploy import deploy_page, print_deployed
from trueup.report.operate.gap import gap_page, print_gap
from trueup.report.operate.symptoms import print_symptoms
from trueup.report.prove.evaluate import print_score
from trueup.report.prove.scores_page import scores_page
from trueup.report.prove.verify import print_verdict, verify_page
from trueup.verify.verify import Verified

_WIDTH = 150  # characters that the widest table needs


def table(
    result: Fit | Ladder | LogScores | PolicyScore | Verified | Deployed | Gap | SymptomTable, *, verbose: bool = False
) -> str:
    """A result as text: parameters with verdicts, rungs, errors on logs, success in scenarios, checks, a run, causes.

    verbose   of a fit: every parameter, note and advice instead of like joints together
    """
    console = Console(file=io.StringIO(), width=_WIDTH)
    match result:
        case Fit():
            print_fit(result, console, verbose=verbose)
        case Ladder():
            print_ladder(result, console)
        case LogScores():
            print_scores(result, console)
        case PolicyScore():
            print_score(result, console)
        case Verified():
            print_verdict(result.certificate, console)
        case Deployed():
            print_deployed(result, console)
        case Gap():
            print_gap(result.result, console)
        case SymptomTable():
            print_symptoms(result, console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def report(result: Fit | Ladder | LogScores | PolicyScore | Verified | Deployed | Gap, path: str | Path) -> Path:
    """Write a result's page, one HTML file that opens offline."""
    match result:
        case Fit():
            page = fit_page(result)
        case Ladder():
            page = ladder_page(result)
        case LogScores():
            page = log_scores_page(result)
        case PolicyScore():
            page = scores_page([result])
        case Verified():
            page = verify_page(result)
        case Deployed():
            page = deploy_page(result)
        case Gap():
            page = gap_page(result.result)
    return page.write(path)
