"""Chapters of a round's report, one function each, from the files that its stages wrote."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from trueup.deploy.ladder.records import RUNGS
from trueup.evaluate.score import read_score
from trueup.gap.predictions import predictions
from trueup.gap.result import FILE as GAP_FILE
from trueup.gap.result import read as read_gap
from trueup.loop.compare import RoundFigures
from trueup.loop.context import Context
from trueup.loop.stages.learn import BUNDLE
from trueup.report.page import Badge, Cell, Status
from trueup.report.traces import chart
from trueup.report.workspace.story import Chapter
from trueup.train.folder import RunFolder
from trueup.world.fitted.calibration import Calibration, Estimate, read_calibration

_MOST = 12  # rows of a table
_VERDICTS = (
    "Those that differ most, of which the recordings exclude what the model said. Identified: known closely; bounded: "
    "known to one side; weak: known within the interval only. Training draws from all of it."
)
_LOAD = ("mass_scale", "com_offset")


def recorded(loop: Context, round_: int, films: list[tuple[Path, str]]) -> Chapter:
    folder = loop.folder(round_, "record")
    names = ", ".join(sorted(one.name for one in folder.glob("*.mcap")))
    moved = f"{loop.asked.driver} was moved for {loop.budgets.record_s:g} s in the air."
    held = f" Not fitted, but scored and diagnosed: {', '.join(one.name for one in loop.unseen())}."
    text = f"Recordings that were given: {names}.{held}" if loop.asked.logs else f"{moved} Logs: {names}."
    return Chapter(title="what was recorded", text=text, films=films, links=_links(loop, round_, "record", "check"))


def calibrated(loop: Context, round_: int) -> Chapter:
    fit = read_calibration(loop.fit(round_))
    wrong = [one for one in fit.estimates if one.nominal_excluded]
    rows: list[tuple[Cell, ...]] = [
        (one.parameter.label or one.parameter.name, one.nominal, one.value,
         f"{one.interval[0]:.3g} to {one.interval[1]:.3g}", one.parameter.unit,
         Badge("good" if one.verdict == "identified" else "warn", one.verdict))
        for one in _clearest(wrong or fit.estimates)
    ]  # fmt: skip
    before, after = held_out_errors(fit)
    verdict = f"{len(wrong)} of {len(fit.estimates)} parameters are not what the model says"
    verdict += f"; error on held-out motion {before:.1f} → {after:.1f} mrad"
    columns = ("parameter", "the model said", "the robot says", "95 %", "unit", "verdict")
    load = [one for one in fit.estimates if one.parameter.name in _LOAD]
    said = "; ".join(f"{one.parameter.label} {one.value:.3g} {one.parameter.unit}" for one in load)
    weighed = f"Squats on the ground weighed the trunk: {said}." if load else ""
    return Chapter(
        title="what the simulator got wrong", verdict=verdict, tables=[(columns, rows)],
        text=f"{weighed}\n\n{_VERDICTS}",
        links=_links(loop, round_, "calibrate", "ladder"),
    )  # fmt: skip


def held_out_errors(fit: Calibration) -> tuple[float, float]:
    """Error of the nominal and of the fitted model on held-out motion, mrad."""
    before, after = fit.holdout_nominal or fit.fit_nominal, fit.holdout_calibrated or fit.fit_calibrated
    return 1e3 * before.open_loop_mean, 1e3 * after.open_loop_mean


def _clearest(estimates: Sequence[Estimate]) -> list[Estimate]:
    """Estimates that differ most from their nominal values, in widths of their own intervals."""

    def distance(one: Estimate) -> float:
        nominal = one.value if one.nominal is None else one.nominal
        return abs(one.value - nominal) / max(1e-9, one.interval[1] - one.interval[0])

    return sorted(estimates, key=distance, reverse=True)[:_MOST]


def learned(loop: Context, round_: int, films: list[tuple[Path, str]]) -> Chapter:
    rows = RunFolder(loop.folder(round_, "train") / "run").read_metrics()
    plots = []
    error = next((name for name in ("velocity_error", "error") if rows and name in rows[0]), "episode_return")
    if rows:
        figure = chart(260, {"title": "million control steps"}, {"title": error.replace("_", " ")})
        figure.add_scatter(x=[r["steps"] / 1e6 for r in rows], y=[r[error] for r in rows], mode="lines")
        plots.append((figure, "With exploration and randomised physics, over the training."))
    begun = "It went on from the policy of the round before. " if round_ > 1 else ""
    if round_ == 1 and loop.asked.start is not None:
        begun = "It went on from a policy that was given. "
    steps = f"{rows[-1]['steps']:,.0f}" if rows else "no"
    text = f"{begun}{steps} control steps of {loop.task} in draws of the calibration's posterior."
    return Chapter(
        title="what was learned", text=text, films=films, plots=plots, links=_links(loop, round_, "train", "evaluate")
    )


def judged(loop: Context, round_: int) -> Chapter:
    if loop.unproven:
        return Chapter(title="what the gate said", verdict=loop.unproven, status="warn")
    certificate = json.loads((loop.folder(round_, "verify") / f"{BUNDLE}.certificate.json").read_text())
    checks: list[dict[str, Any]] = certificate["checks"]
    blocking = [one["name"] for one in checks if one["state"] == "fail"]
    verdict = f"not passed: {', '.join(blocking)}" if blocking else "passed: the policy may run"
    status: dict[str, Status] = {"pass": "good", "fail": "bad"}
    rows: list[tuple[Cell, ...]] = [
        (one["name"], Badge(status.get(one["state"], "warn"), one["state"]), str(one["found"]), str(one["asked"]))
        for one in checks
    ]
    tables: list[Any] = []
    scores = sorted(loop.folder(round_, "evaluate").rglob("score.json"))
    if scores:
        score = read_score(scores[0].parent)
        found: list[tuple[Cell, ...]] = [
            (one.name, f"{one.rate.share:.0%}", f"{one.rate.low:.0%} to {one.rate.high:.0%}") for one in score.results
        ]
        tables = [(("scenario in the simulator", "success", "95 %"), found)]
    return Chapter(
        title="what the gate said", verdict=verdict, status="bad" if blocking else "good", tables=tables,
        details={f"all {len(checks)} questions of the gate": (("question", "", "found", "asked"), rows)},
        links=_links(loop, round_, "evaluate", "verify"),
    )  # fmt: skip


def deployed(loop: Context, round_: int, figures: RoundFigures | None, films: list[tuple[Path, str]]) -> Chapter:
    folder = loop.folder(round_, "deploy")
    rows: list[tuple[Cell, ...]] = []
    records = [json.loads(file.read_text()) for file in folder.glob(f"{BUNDLE}.ladder/**/*.json")]
    for record in sorted(records, key=lambda one: RUNGS.index(one["rung"])):
        failed = [one["name"] for one in record["judged"] if not one["passed"]]
        rows.append(
            (
                record["rung"],
                Badge("bad" if failed else "good", "not passed" if failed else "passed"),
                ", ".join(failed),
            )
        )
    facts: dict[str, Cell] = {}
    if figures is not None:
        facts = {"runs": figures.runs, "seconds": round(figures.seconds), "joint error, rad": figures.tracking}
    verdict = "the last rung was not reached"
    if figures is not None:
        error = "" if figures.error is None else f"; velocity error {figures.error:.3f} m/s"
        verdict = f"{figures.falls} of {figures.runs} runs fell{error}"
    return Chapter(
        title="what the robot did", verdict=verdict, status="good" if figures and not figures.falls else "bad",
        facts=facts, films=films, tables=[(("rung", "", "what failed"), rows)], links=_links(loop, round_, "deploy"),
        text="Velocity is by leg odometry: from joints and IMU alone." if figures and figures.error is not None else "",
    )  # fmt: skip


def diagnosed(loop: Context, round_: int) -> Chapter:
    folder = loop.folder(round_, "gap")
    if not (folder / GAP_FILE).exists():
        return Chapter(title="what the diagnosis found", verdict="no run to diagnose", status="warn")
    result = read_gap(folder)
    columns = ("cause", "size", "explains", "90 %", "likeliest in", "mended by")
    rows: list[tuple[Cell, ...]] = [
        (Badge("warn", f"{one.name} (as good)") if one.tied else one.name, one.evidence.split(":")[0],
         f"{one.explained:.0%}", "{:.0%} to {:.0%}".format(*one.interval), f"{one.confidence:.0%}", one.command)
        for one in result.causes[:_MOST]
    ]  # fmt: skip
    verdict = result.disagreement or "nothing wrong: no single change explains what simulator and robot do differently"
    if result.causes:
        first, rivals = result.causes[0], [one.name for one in result.causes[1:] if one.tied]
        also = f"; as good: {', '.join(rivals)}" if rivals else ""
        verdict = f"{first.name} explains {first.explained:.0%} of what simulator and robot do differently{also}"
    asked = ""
    if result.refit is not None:
        suspects = ", ".join(dict.fromkeys(one.name for one in result.refit.suspects))
        asked = f"The fit of the next round is asked to look at {suspects}."
    return Chapter(
        title="what the diagnosis found", verdict=verdict, status="warn" if rows else "good", text=asked,
        tables=[(columns, rows)] if rows else [], links=_links(loop, round_, "gap"),
    )  # fmt: skip


def predicted(loop: Context, round_: int) -> list[Chapter]:
    """The gate's prediction for the robot beside its measured runs; empty without a prediction."""
    found = predictions(loop.workspace.path / f"round-{round_}", loop.robot)
    if not found.judged:
        return []
    rows: list[tuple[Cell, ...]] = [
        (one.name, one.predicted, f"{one.low:.3g} to {one.high:.3g}", one.measured, one.unit,
         "" if one.inside is None else Badge("good" if one.inside else "bad", "inside" if one.inside else "outside"))
        for robot in found.robots for one in robot.quantities
    ]  # fmt: skip
    columns = ("of the robot", "predicted", "95 %", "measured", "unit", "")
    chapter = Chapter(
        title="predicted and measured", verdict=f"{found.inside} of {found.judged} figures within their intervals",
        status="good" if found.inside == found.judged else "warn", tables=[(columns, rows)],
        text="What the gate predicted from simulation alone, over the task's whole range of commands.",
    )  # fmt: skip
    return [chapter]


def _links(loop: Context, round_: int, *stages: str) -> dict[str, str]:
    """Pages and logs of the stages."""
    out = {}
    for stage in stages:
        folder = loop.workspace.folder(round_, stage)
        for page in sorted(folder.glob("**/index.html")):
            inside = page.parent.relative_to(folder)
            name = stage if str(inside) in (".", "fit", "run", "gate") else f"{stage} {inside}"
            out[f"{name}: page"] = str(page.relative_to(loop.workspace.path))
        if (folder / "stage.log").exists():
            out[f"{stage}: what it printed"] = str((folder / "stage.log").relative_to(loop.workspace.path))
    return out
