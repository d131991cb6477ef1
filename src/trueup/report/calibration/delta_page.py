"""The page of a delta action: error against horizon per method, which joints are corrected, and films side by side."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from trueup.calibrate.delta.beside.baselines import ScoredMethod
from trueup.calibrate.delta.delta import DeltaResult
from trueup.calibrate.delta.problem import DeltaProblem
from trueup.calibrate.delta.score import HORIZONS_S
from trueup.core.arrays import FloatArray
from trueup.core.errors import TrueupError
from trueup.report.page import Page
from trueup.report.traces import chart, line_style
from trueup.robot.model import ModelCfg
from trueup.view.draw import visual_model
from trueup.view.film import film
from trueup.world.actuators.target_stages import LearnedDelta, TargetStage

_SHOWN_S, _FILM = 6.0, {"width": 320, "height": 240, "fps": 25.0}
FILMS = (
    ("recorded", "The robot, as recorded."),
    ("source", "The simulator, put back into the recorded state every second."),
    ("corrected", "The simulator with the delta action, put back likewise."),
)


def delta_page(
    problem: DeltaProblem, result: DeltaResult, scored: Sequence[ScoredMethod], verdict: str, films: Path
) -> Page:
    """Verdict, errors, joints and films; `films` is the folder that they are made in."""
    page = Page(f"Delta action of {problem.robot.spec.name}", "What a simulator lacks, as a correction of its targets.")
    page.verdict("good" if result.ratio < 1.0 else "warn", verdict)
    page.section("Error of replay against its horizon")
    page.text(
        "Simulations start in recorded states of held-out data and play the recorded commands. Shown is the mean "
        "distance of all bodies from the recorded ones, in the world (E_g-mpjpe) and from the root (E_mpjpe)."
    )
    shown = scored or _without_others(result)
    page.plot(_horizons(shown))
    head = ("mm", *(f"{where}, {s:g} s" for where in ("in the world", "from the root") for s in HORIZONS_S), "fit, s")
    page.table(
        head, [(method.name, *method.errors.global_mm, *method.errors.mpjpe_mm, method.seconds) for method in shown]
    )
    learned = [method for method in scored if method.rounds]
    if learned:
        page.section("Which way to a delta action learns faster")
        page.text(
            "The same data and the same score, in the world after 1 s, on the ends of the logs that rounds are chosen "
            "by, against the time of the processor that learning had taken (s). PPO is the published way; the other "
            "one goes through the linearised simulator."
        )
        page.plot(_curves(learned))
    page.section("Which joints are corrected, and how")
    linear = bool(result.net.linear.any())
    page.text(_how(result) if linear else f"Root mean square correction, {result.net.spec.limit_rad:g} rad at most.")
    page.table(("joint", "correction, mrad", *(_WORDS if linear else ())), _joints(result))
    page.section("Recorded, simulator, simulator with the delta action")
    found = _films(problem, result, films)
    if found:
        page.films(found, columns=3)
    else:
        page.text("No films: this computer has no ffmpeg or no OpenGL (`trueup doctor`).")
    return page


_WORDS = ("of q* - q", "of dq, s", "of dry friction, mrad", "of the target before")


def _joints(result: DeltaResult) -> list[tuple[str | float, ...]]:
    """Corrections joint by joint, with the linear part in plain units where there is one."""
    net, rows = result.net, []
    spec, n = net.spec, len(net.spec.joint_names)
    first_past = 4 * n + 6 * spec.base
    for line, joint in zip(net.linear / net.std, spec.corrected, strict=True):
        late = float(line[first_past + joint]) if spec.past else 0.0
        parts = (float(line[joint]), float(line[n + joint]), 1e3 * float(line[3 * n + joint]), late)
        name = spec.joint_names[joint]
        rows.append((name, 1e3 * result.by_joint[name], *(parts if net.linear.any() else ())))
    return sorted(rows, key=lambda row: -row[1])


def _how(result: DeltaResult) -> str:
    return (
        "Root mean square correction, and its linear part: the share of q* - q that is added (-0.35: the servo has "
        "0.65 of the gain), of the speed, of its sign (dry friction), and of the target before over this one (1: the "
        "command acts a control step late). Beyond the range of the data its inputs are held at the range's edge, and "
        f"no correction exceeds {result.net.spec.limit_rad:g} rad."
    )


def _without_others(result: DeltaResult) -> tuple[ScoredMethod, ...]:
    parts = {"nothing": result.without, "delta action": result.corrected}
    return tuple(ScoredMethod(name=name, errors=errors, seconds=0.0) for name, errors in parts.items())


def _horizons(scored: Sequence[ScoredMethod]) -> object:
    figure = chart(360, {"title": {"text": "s"}}, {"title": {"text": "mm"}, "rangemode": "tozero"})
    for k, method in enumerate(scored):
        x, y = (0.0, *HORIZONS_S), (0.0, *method.errors.global_mm)
        figure.add_scatter(x=x, y=y, name=method.name, mode="lines+markers", line=line_style(k))
    return figure


def _curves(learned: Sequence[ScoredMethod]) -> object:
    figure = chart(300, {"title": {"text": "CPU-s"}}, {"title": {"text": "mm"}, "rangemode": "tozero"})
    for k, method in enumerate(learned):
        x, y = [seconds for seconds, _ in method.rounds], [errors.global_mm[-1] for _, errors in method.rounds]
        figure.add_scatter(x=x, y=y, name=method.name, mode="lines+markers", line=line_style(k))
    return figure


def _films(problem: DeltaProblem, result: DeltaResult, folder: Path) -> list[tuple[Path, str]]:
    """From the middle of the held-out data; none where films cannot be made."""
    rate, tracks = problem.shooting.tracks.rate_hz, problem.shooting.tracks
    seconds = round(_SHOWN_S)
    steps = round(rate)
    first = int(problem.scored[len(problem.scored) // 3])
    starts = first + steps * np.arange(seconds)
    starts = starts[starts + steps < tracks.last[first]]
    shown: dict[str, FloatArray] = {}
    for name, stages in (("source", ()), ("corrected", (LearnedDelta(result.net),))):
        run: tuple[TargetStage, ...] = stages
        shown[name] = np.concatenate(list(problem.shooting.run(starts, steps, run)["qpos"]))
    rows = np.arange(len(shown["source"])) + first + 1
    recorded = shown["source"].copy()
    sim = problem.shooting.made(1)
    recorded[:, sim.index.qpos] = tracks.pos[rows]
    if sim.free_base and tracks.base_pos is not None:
        recorded[:, sim.base_qpos : sim.base_qpos + 7] = tracks.base_pos[rows]
    shown["recorded"] = recorded
    model = visual_model(problem.robot, ModelCfg(base="free" if sim.free_base else "fixed"))
    out = []
    try:
        for name, caption in FILMS:
            out.append((film(model, shown[name], folder / f"{name}.mp4", sample_hz=rate, **_FILM), caption))  # type: ignore[arg-type]
    except TrueupError:
        return []
    return out
