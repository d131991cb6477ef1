"""Output of `trueup verify` and its page: the verdict first, then blocking checks, then all checks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from rich.console import Console

from trueup.policy.bundle.certificate import Certificate, GateCheck, Prediction
from trueup.report.page import Badge, Page, Status
from trueup.report.prove.scores_page import add_scores
from trueup.report.terminal import progress_bar, text_table
from trueup.verify.verbs import VerifyVerb
from trueup.verify.verify import Verified, verify

_STATES: dict[str, tuple[Status, str, str]] = {
    "pass": ("good", "passed", "green"),
    "fail": ("bad", "blocks", "red"),
    "warn": ("warn", "warning", "yellow"),
    "skipped": ("plain", "not tried", "dim"),
}


def run_verify(verb: VerifyVerb) -> int:
    """Verify a bundle, print the verdict, write certificate and page; 1 if something blocks."""
    console = Console()
    if verb.select:
        verb = replace(verb, bundle=run_select(verb, console), select=False)
    with progress_bar("verifying", console) as progress:
        found = verify(verb, progress)
    print_verdict(found.certificate, console)
    page = verify_page(found).write(found.folder / "index.html")
    console.print(f"certificate   {found.path}   page   {page}", soft_wrap=True)
    return 0 if found.passed else 1


def run_select(verb: VerifyVerb, console: Console) -> Path:
    """Test the snapshots of a run, print their scores, export the best; returns its bundle."""
    from trueup.verify.select import select_bundle, select_snapshot  # brings PyTorch

    with progress_bar("trying snapshots", console) as progress:
        candidates = select_snapshot(verb.bundle, scenarios=verb.scenarios, threads=verb.threads, progress=progress)
    rows = [
        (str(candidate.iteration), f"{candidate.success:.1%}", f"{candidate.error:.3f}") for candidate in candidates
    ]
    console.print(text_table(("snapshot", ">success", ">error"), rows))
    return select_bundle(verb.bundle, candidates)


def verdict_line(certificate: Certificate) -> str:
    """The verdict in one sentence."""
    count = sum(check.state == "pass" for check in certificate.checks)
    if certificate.passed:
        return f"{certificate.name} may run on {certificate.robot}: {count} of {len(certificate.checks)} checks passed"
    names = ", ".join(check.name for check in certificate.blocking)
    return f"{certificate.name} may not run on {certificate.robot}: {names}"


def prediction_line(prediction: Prediction) -> str:
    """The predicted results on the robot, with intervals."""
    of = prediction
    name = of.metric.replace("_", " ")
    return (
        f"on a robot: {name} {of.error:.3f} [{of.error_low:.3f}, {of.error_high:.3f}] {of.unit}, "
        f"episodes without a fall {of.success:.0%} [{of.success_low:.0%}, {of.success_high:.0%}] "
        f"({of.worlds} simulated robots)"
    )


def print_verdict(certificate: Certificate, console: Console) -> None:
    """Print all checks, then the verdict and remedies."""
    rows = []
    for check in certificate.checks:
        _, word, colour = _STATES[check.state]
        rows.append((check.name, f"[{colour}]{word}[/{colour}]", check.found))
    console.print(text_table(("check", "", "found"), rows))
    if certificate.prediction is not None:
        console.print(prediction_line(certificate.prediction), soft_wrap=True, highlight=False)
    for check in certificate.blocking:
        if check.remedy:
            console.print(f"  {check.name}: {check.remedy}", soft_wrap=True, highlight=False)
    colour = "green" if certificate.passed else "red"
    console.print(f"[bold {colour}]{verdict_line(certificate)}[/]", soft_wrap=True, highlight=False)


def verify_page(found: Verified) -> Page:
    """Verdict, blocking checks, prediction and all other checks; then the scenarios, engines side by side."""
    certificate = found.certificate
    page = Page(
        f"Gate: {certificate.name}",
        f"{certificate.robot}, task {certificate.task}, {certificate.trials} trials of each scenario",
    )
    page.verdict("good" if certificate.passed else "bad", verdict_line(certificate) + ".")
    page.facts(
        {
            "passed": sum(check.state == "pass" for check in certificate.checks),
            "blocking": len(certificate.blocking),
            "warnings": sum(check.state == "warn" for check in certificate.checks),
            "engines": ", ".join(certificate.engines),
            "bundle": certificate.bundle[:12],
        }
    )
    if certificate.blocking:
        page.section("What blocks")
        page.table(
            ("check", "found", "remedy"), [(check.name, check.found, check.remedy) for check in certificate.blocking]
        )
    if certificate.prediction is not None:
        page.section("Prediction")
        page.text(prediction_line(certificate.prediction) + ".")
    page.section("Checks")
    page.table(("check", "verdict", "found", "asked"), [_row(check) for check in certificate.checks])
    add_scores(page, list(found.scores.values()))
    return page


def _row(check: GateCheck) -> tuple[str, Badge, str, str]:
    status, word, _ = _STATES[check.state]
    return check.name, Badge(status, word), check.found, check.asked
