"""Chapters of a round's story, one function each, from the files that its stages left."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from trueup.evaluate.score import read_score
from trueup.loop.compare import RoundFigures
from trueup.loop.context import Context
from trueup.loop.stages.learn import BUNDLE
from trueup.report.page import Badge, Cell, Status
from trueup.report.traces import chart
from trueup.report.workspace.story import Chapter
from trueup.train.folder import RunFolder
from trueup.world.fitted.calibration import read_calibration

_MOST = 12  # rows of a table


def recorded(loop: Context, round_: int, films: list[tuple[Path, str]]) -> Chapter:
    folder = loop.folder(round_, "record")
    names = ", ".join(sorted(one.name for one in folder.glob("*.mcap")))
    text = f"{loop.asked.driver} was moved for {loop.budgets.record_s:g} s in the air. Logs: {names}."
    return Chapter(title="what was recorded", text=text, films=films, links=_links(loop, round_, "record", "check"))


def calibrated(loop: Context, round_: int) -> Chapter:
    fit = read_calibration(loop.fit(round_))
    before, after = fit.holdout_nominal or fit.fit_nominal, fit.holdout_calibrated or fit.fit_calibrated
    wrong = [one for one in fit.estimates if one.nominal_excluded]
    rows: list[tuple[Cell, ...]] = [
        (one.parameter.label or one.parameter.name, one.nominal, one.value,
         f"{one.interval[0]:.3g} to {one.interval[1]:.3g}", one.parameter.unit,
         Badge("good" if one.verdict == "identified" else "warn", one.verdict))
        for one in (wrong or fit.estimates)[:_MOST]
    ]  # fmt: skip
    verdict = f"{len(wrong)} of {len(fit.estimates)} parameters are not what the model says"
    if before is not None and after is not None:
        verdict += (
            f"; error on held-out motion {1e3 * before.open_loop_mean:.1f} -> {1e3 * after.open_loop_mean:.1f} mrad"
        )
    columns = ("parameter", "the model said", "the robot says", "95 %", "unit", "verdict")
    return Chapter(
        title="what the simulator got wrong", verdict=verdict, tables=[(columns, rows)],
        links=_links(loop, round_, "calibrate", "ladder"),
    )  # fmt: skip


def learned(loop: Context, round_: int, films: list[tuple[Path, str]]) -> Chapter:
    rows = RunFolder(loop.folder(round_, "train") / "run").read_metrics()
    plots = []
    error = next((name for name in ("velocity_error", "error") if rows and name in rows[0]), "episode_return")
    if rows:
        figure = chart(260, {"title": "million control steps"}, {"title": error.replace("_", " ")})
        figure.add_scatter(x=[r["steps"] / 1e6 for r in rows], y=[r[error] for r in rows], mode="lines")
        plots.append((figure, "With exploration and randomised physics, over the training."))
    begun = "It went on from the policy of the round before. " if round_ > 1 else ""
    steps = f"{rows[-1]['steps']:,.0f}" if rows else "no"
    text = f"{begun}{steps} control steps of {loop.task} in draws of the calibration's posterior."
    return Chapter(
        title="what was learned", text=text, films=films, plots=plots, links=_links(loop, round_, "train", "evaluate")
    )


def judged(loop: Context, round_: int) -> Chapter:
    certificate = json.loads((loop.folder(round_, "verify") / f"{BUNDLE}.certificate.json").read_text())
    checks: list[dict[str, Any]] = certificate["checks"]
    blocking = [one["name"] for one in checks if one["state"] == "fail"]
    verdict = f"not passed: {', '.join(blocking)}" if blocking else "passed: the policy may run"
    status: dict[str, Status] = {"pass": "good", "fail": "bad"}
    rows: list[tuple[Cell, ...]] = [
        (one["name"], Badge(status.get(one["state"], "warn"), one["state"]), str(one["found"]), str(one["asked"]))
        for one in checks
    ]
    tables: list[Any] = [(("question", "", "found", "asked"), rows)]
    scores = sorted(loop.folder(round_, "evaluate").rglob("score.json"))
    if scores:
        score = read_score(scores[0].parent)
        found: list[tuple[Cell, ...]] = [
            (one.name, one.rate.share, f"{one.rate.low:.0%} to {one.rate.high:.0%}") for one in score.results
        ]  # fmt: skip
        tables.insert(0, (("scenario", "success", "95 %"), found))
    return Chapter(
        title="what the gate said", verdict=verdict, status="bad" if blocking else "good", tables=tables,
        links=_links(loop, round_, "evaluate", "verify"),
    )  # fmt: skip


def deployed(loop: Context, round_: int, figures: RoundFigures | None, films: list[tuple[Path, str]]) -> Chapter:
    folder = loop.folder(round_, "deploy")
    rows: list[tuple[Cell, ...]] = []
    for file in sorted(folder.glob(f"{BUNDLE}.ladder/**/*.json"), key=lambda one: one.stat().st_mtime):
        record = json.loads(file.read_text())
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
        facts = {"runs": figures.runs, "falls": figures.falls, "joint error, rad": figures.tracking}
        facts |= {} if figures.error is None else {"velocity error, m/s": figures.error}
    verdict = "the last rung was not reached" if figures is None else f"{figures.falls} of {figures.runs} runs fell"
    return Chapter(
        title="what the robot did", verdict=verdict, status="good" if figures and not figures.falls else "bad",
        facts=facts, films=films, tables=[(("rung", "", "what failed"), rows)], links=_links(loop, round_, "deploy"),
        text="Velocity is by leg odometry: from joints and IMU alone." if figures and figures.error is not None else "",
    )  # fmt: skip


def diagnosed(loop: Context, round_: int) -> Chapter:
    manifest, folder = loop.workspace.manifest(round_, "gap"), loop.folder(round_, "gap")
    if not (folder / "result.json").exists():
        note = manifest.note if manifest is not None else ""
        return Chapter(title="what the diagnosis found", verdict=note or "no run to diagnose", status="warn")
    result = json.loads((folder / "result.json").read_text())
    causes = result.get("causes", [])
    verdict = (
        "nothing wrong was found"
        if result.get("nothing_wrong") or not causes
        else f"{len(causes)} causes, the likeliest first"
    )
    rows = [tuple(_text(one.get(key)) for key in _keys(causes)) for one in causes[:_MOST]]
    tables = [(_keys(causes), rows)] if causes else []
    return Chapter(
        title="what the diagnosis found", verdict=verdict, status="good" if not causes else "warn", tables=tables,
        links=_links(loop, round_, "gap"),
    )  # fmt: skip


def _keys(causes: list[dict[str, Any]]) -> list[str]:
    return [key for key, value in causes[0].items() if not isinstance(value, list | dict)][:6] if causes else []


def _text(value: Any) -> Cell:
    return value if isinstance(value, float | int | str) else str(value)


def _links(loop: Context, round_: int, *stages: str) -> dict[str, str]:
    """Pages that stages left, and their logs."""
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
