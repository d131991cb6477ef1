"""`tell_story`: content of a workspace's page: rounds compared, chapters with films, the chain of artifacts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from trueup.loop import chapters
from trueup.loop.compare import Comparison
from trueup.loop.context import Context
from trueup.loop.films import Film, policy_film, recorded_films, robot_films
from trueup.loop.run import Looped
from trueup.loop.stages.act import WALKS
from trueup.loop.verbs import STAGES
from trueup.loop.workspace import LOG
from trueup.report.page import Cell, Status
from trueup.report.traces import chart
from trueup.report.workspace.story import Artifact, Chapter, Story
from trueup.world.fitted.calibration import read_calibration


def tell_story(loop: Context, looped: Looped, *, films: bool = True) -> Story:
    """Content of the page so far; chapters of unfinished stages are left out."""
    rounds = loop.workspace.rounds()
    driver = "recordings" if loop.asked.logs else loop.asked.driver
    artifacts = [one for round_ in rounds for one in _artifacts(loop, round_)]
    return Story(
        title=f"{loop.robot.spec.name}: the loop",
        subtitle=f"{driver}, task {loop.trained.name}",
        lead=_lead(loop, len(rounds)),
        facts=_facts(loop, looped, rounds, artifacts),
        summary=_summary(loop, looped),
        comparison=_comparison(looped),
        plots=_run_by_run(loop, looped),
        films=_side_by_side(loop, looped) if films else [],
        rounds={round_: _chapters(loop, looped, round_, with_films=films) for round_ in rounds},
        artifacts=artifacts,
    )  # fmt: skip


def _lead(loop: Context, rounds: int) -> str:
    """What was done, for somebody who sees such a page for the first time."""
    if loop.asked.logs:
        trained = ", and a policy was trained in it" if loop.workspace.manifest(1, "train") is not None else ""
        return f"Recordings of a robot were given: a simulator was fitted to them{trained}. No robot was moved."
    robot = "a virtual robot whose physics are hidden from all that follows" if loop.is_twin else "the robot"
    first = f"Each round records {robot}, fits the simulator to it, trains a policy in draws of that fit"
    later = " A later round begins with what the diagnosis of the one before found." if rounds > 1 else ""
    return f"{first}, tests it, puts it on the robot rung by rung and diagnoses what it did there.{later}"


def _facts(loop: Context, looped: Looped, rounds: list[int], artifacts: list[Artifact]) -> dict[str, Cell]:
    """The few numbers that say what the loop came to; an arrow leads from the first to the last of them."""
    out: dict[str, Cell] = {}
    if looped.figures:
        ends = [looped.figures[k] for k in sorted({min(looped.figures), max(looped.figures)})]
        if all(one.error is not None for one in ends):
            out["velocity error, m/s"] = " → ".join(f"{one.error:.3f}" for one in ends)
        out["falls"] = " → ".join(f"{one.falls} of {one.runs}" for one in ends)
    out |= _simulator(loop, rounds)
    out["stages done"] = sum(bool(one.hash) for one in artifacts)
    out["minutes"] = round(sum(one.seconds for one in artifacts) / 60.0, 1)
    return out


def _simulator(loop: Context, rounds: list[int]) -> dict[str, Cell]:
    """The simulator's error on unseen motion, before and after the newest fit."""
    done = [k for k in rounds if loop.workspace.manifest(k, "calibrate") is not None]
    if not done:
        return {}
    errors = chapters.held_out_errors(read_calibration(loop.fit(done[-1])))
    return {"simulator's error, mrad": "{:.1f} → {:.1f}".format(*errors)}


def _side_by_side(loop: Context, looped: Looped) -> list[Film]:
    """The same run on the robot in the first and in the last round."""
    if len(looped.figures) < 2:
        return []
    ends = (min(looped.figures), max(looped.figures))
    return [(path, f"Round {k}. {said}") for k in ends for path, said in robot_films(loop, k)[:1]]


def _chapters(loop: Context, looped: Looped, round_: int, *, with_films: bool) -> list[Chapter]:
    """Those whose stages are done."""
    seen = recorded_films(loop, round_) if with_films else []
    home = policy_film(loop, round_) if with_films else []
    out = robot_films(loop, round_) if with_films else []
    makers: dict[str, Callable[[], Chapter]] = {
        "record": lambda: chapters.recorded(loop, round_, seen),
        "calibrate": lambda: chapters.calibrated(loop, round_),
        "train": lambda: chapters.learned(loop, round_, home),
        "verify": lambda: chapters.judged(loop, round_),
        "deploy": lambda: chapters.deployed(loop, round_, looped.figures.get(round_), out),
        "gap": lambda: chapters.diagnosed(loop, round_),
    }
    told = [make() for name, make in makers.items() if loop.workspace.manifest(round_, name) is not None]
    if round_ in looped.figures and not loop.unproven:
        told += chapters.predicted(loop, round_)
    return told


def in_words(found: Comparison) -> str:
    """A comparison as a sentence."""
    said = {
        "better": "The last round was better than the first",
        "worse": "The last round was worse than the first",
        "mixed": "The last round was better than the first in one thing and worse in the other",
        "no difference": "These runs show no difference between the first and the last round",
    }[found.verdict]
    change = ""
    if found.change is not None and found.low is not None and found.high is not None:
        change = f"velocity error {found.change:+.3f} m/s ({found.low:+.3f} to {found.high:+.3f} at 95 %), "
    return f"{said}: {change}falls {found.falls[0]} -> {found.falls[1]} of {found.runs}."


def _summary(loop: Context, looped: Looped) -> list[tuple[Status, str]]:
    if looped.comparison is None:
        on_robot = ", ".join(map(str, looped.figures)) or "none"
        if loop.asked.logs:
            return _of_recordings(loop)
        return [("plain", f"Rounds that came to the last rung on the robot: {on_robot}; two are needed to compare.")]
    status: dict[str, Status] = {"better": "good", "worse": "bad"}
    return [(status.get(looped.comparison.verdict, "warn"), in_words(looped.comparison))]


def _of_recordings(loop: Context) -> list[tuple[Status, str]]:
    """What the fit is worth on motion that it did not see; all that recordings alone can show."""
    if loop.workspace.manifest(1, "calibrate") is None:
        return [("plain", "Recordings were given and no robot: what follows is what they show.")]
    before, after = chapters.held_out_errors(read_calibration(loop.fit(1)))
    errors = f"{after:.1f} instead of {before:.1f} mrad on motion that the fit did not see"
    if after < before:
        return [("good", f"The fitted simulator is nearer to the robot than the model as it came: {errors}.")]
    return [("warn", f"The fit is no better than the model as it came: {errors}.")]


def _comparison(looped: Looped) -> tuple[list[str], list[list[Cell]]] | None:
    if not looped.figures:
        return None
    columns = ["round", "runs", "falls", "velocity error, m/s", "95 %", "joint error, rad"]
    rows: list[list[Cell]] = [
        [f"round {k}", one.runs, one.falls, one.error,
         "" if one.interval is None else "{:.3f} to {:.3f}".format(*one.interval), one.tracking]
        for k, one in looped.figures.items()
    ]  # fmt: skip
    return columns, rows


def _run_by_run(loop: Context, looped: Looped) -> list[tuple[Any, str]]:
    """Errors of all runs, rounds side by side; nothing where velocities were not asked for."""
    known = {k: one.blocks for k, one in looped.figures.items() if one.blocks is not None}
    if not known or not loop.walks:
        return []
    figure = chart(300, {"tickangle": 0}, {"title": "velocity error, m/s"})
    for k, blocks in known.items():
        asked = ["<br>".join(walk) for walk in WALKS[: len(blocks)]]
        fell = ["fell" if one else "" for one in looped.figures[k].fell]
        figure.add_bar(x=asked, y=[sum(one) / len(one) for one in blocks], name=f"round {k}", text=fell)
    return [(figure, "Run by run, on the robot: what was asked, and how far its velocity was from it.")]


def _artifacts(loop: Context, round_: int) -> list[Artifact]:
    out = []
    for name in STAGES:
        folder, made = loop.workspace.folder(round_, name), loop.workspace.manifest(round_, name)
        if not folder.exists():
            continue
        times, key = loop.workspace.times(round_, name), f"round-{round_}/{name}"
        names = [LOG, *(made.outputs if made is not None else ())]
        state, status = ("done", "good") if made is not None else ("not done", "warn")
        if made is not None and made.note:
            state, status = "left out", "warn"
        out.append(
            Artifact(
                key=key, state=state, status=status, hash="" if made is None else made.hash,  # type: ignore[arg-type]
                parents={} if made is None else made.inputs, note="" if made is None else made.note,
                files={one: f"{key}/{one}" for one in names if (folder / one).exists()},
                seconds=times.seconds, cpu_seconds=times.cpu_seconds,
            )
        )  # fmt: skip
    return out
