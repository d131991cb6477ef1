"""Figures and sections of an actuator ladder's page: errors by rung and by horizon, unseen motion, hysteresis loops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from trueup.calibrate.actuator.folder import RungResult
from trueup.calibrate.actuator.ladder import Ladder
from trueup.calibrate.actuator.rungs import rung_named
from trueup.calibrate.actuator.score import roll
from trueup.core.arrays import FloatArray
from trueup.data.log import Log
from trueup.report.page import Page
from trueup.report.traces import COLOURS, chart, joint_traces, line_style

_MRAD = 1e3
_LOG = {"type": "log", "dtick": "D2", "exponentformat": "none"}
_WHOLE_S = 20.0  # place of whole logs on the axis of horizons
_SHOWN_S, _MOST_SHOWN = 6.0, 5
_MOVING = 0.3  # of the way of the liveliest seconds, or the liveliest joint: still motion


def ladder_chart(results: Sequence[RungResult], chosen: str) -> Any:
    """Return errors on unseen and on fitted data, rung by rung, simplest on top."""
    shown = [(result.rung, result.scores) for result in results if result.scores is not None]
    held = {rung_named(rung).title: scores.motion for rung, scores in shown}
    train = {rung_named(rung).title: scores.train for rung, scores in shown}
    groups = {rung_named(rung).title: scores.groups for rung, scores in shown if len(scores.groups) > 1}
    gain = {title: found["gain"] for title, found in groups.items() if "gain" in found}
    x, y = (
        {"title": {"text": "whole-rollout position error, mrad"}} | _LOG,
        {"autorange": "reversed", "automargin": True},
    )
    figure = chart(34 * len(shown) + 130, x, y, l=190)
    figure.add_bar(
        x=[_MRAD * error.mean for error in held.values()],
        y=list(held),
        error_x={"array": [_MRAD * error.se for error in held.values()], "thickness": 1.4},
        orientation="h",
        name="unseen motion",
        marker={"color": [COLOURS[2] if rung == chosen else COLOURS[1] for rung, _ in shown]},
        hovertemplate="%{y}: %{x:.2f} mrad on unseen motion<extra></extra>",
    )
    marks = (("motion it was fitted to", train, 0, "line-ns-open", 14), ("new gain", gain, 4, "diamond-open", 9))
    for name, errors, colour, symbol, size in marks:
        if errors:
            figure.add_scatter(
                x=[_MRAD * error.mean for error in errors.values()],
                y=list(errors),
                mode="markers",
                name=name,
                marker={"color": COLOURS[colour], "symbol": symbol, "size": size, "line": {"width": 2}},
                hovertemplate=f"%{{y}}: %{{x:.2f}} mrad, {name}<extra></extra>",
            )
    return figure


def horizon_chart(results: Sequence[RungResult]) -> Any:
    """Return the error on unseen data against how far ahead is predicted, a line per rung."""
    names = {0.005: "5 ms", 0.02: "20 ms", 0.1: "0.1 s", 1.0: "1 s", _WHOLE_S: "whole"}
    ticks = {"tickvals": list(names), "ticktext": list(names.values())}
    figure = chart(430, {"type": "log", "title": {"text": "horizon"}} | ticks, {"title": {"text": "mrad"}} | _LOG, t=90)
    shown = [(result.rung, result.scores.held) for result in results if result.scores is not None]
    for k, (rung, held) in enumerate(shown):
        figure.add_scatter(
            x=[_WHOLE_S if error.seconds is None else error.seconds for error in held],
            y=[_MRAD * error.mean for error in held],
            error_y={"array": [_MRAD * error.se for error in held], "thickness": 1, "width": 2},
            name=rung_named(rung).title,
            mode="lines+markers",
            line=line_style(k),
            hovertemplate="%{y:.3g} mrad",
        )
    return figure


def hysteresis_loops(command: FloatArray, moved: Mapping[str, FloatArray], joint: str) -> Any:
    """Return how far a joint is from its command, against the command: loops of friction, lag and hysteresis.

    command (T,) and every trace of `moved` (T,), rad.
    """
    x = {"title": {"text": f"command of {joint}, rad"}, "zeroline": False}
    figure = chart(430, x, {"title": {"text": "position minus command, mrad"}}, t=70)
    for k, (name, position) in enumerate(moved.items()):
        figure.add_scatter(
            x=command.astype(np.float32),
            y=(_MRAD * (position - command)).astype(np.float32),
            name=name,
            mode="lines",
            line={"color": COLOURS[k % len(COLOURS)], "width": 2.4 if k == 0 else 1.2},
            hovertemplate="%{y:.1f} mrad",
        )
    return figure


def motion_sections(page: Page, ladder: Ladder) -> None:
    """Measured and simulated over some seconds of unseen motion, and loops of a gentle one."""
    joints = ladder.robot.spec.joint_names
    log = lively(ladder.held)
    moved = _moved(ladder, log)
    worst, time = _worst_joint(log, moved), log.time - log.time[0]
    page.section("Unseen motion")
    page.text("Commands of a held-out log in the simulator, from one measured state on. Drag to zoom.")
    rungs = list(moved.items())[1 + (len(moved) > 2) :]
    missed = {name: _MRAD * (position - log["joint_pos"])[:, [worst]] for name, position in rungs}
    page.plot(
        joint_traces(time, missed, [joints[worst]], "mrad"),
        f"Simulated minus measured position of {joints[worst]}, which the simplest rung gets most wrong.",
    )
    page.plot(joint_traces(time, moved, joints, "rad"))
    page.table(
        ("rung", *joints),
        [
            (rung_named(r.rung).title, *(_MRAD * error for error in r.scores.whole.joints))
            for r in ladder.file.rungs
            if r.scores is not None
        ],
        "Error of every rung on all unseen motion, joint by joint, mrad.",
    )
    log = gentle(ladder.held)
    moved = _moved(ladder, log)
    worst = _worst_joint(log, moved)
    positions = {name: position[:, worst] for name, position in moved.items()}
    page.section("Hysteresis loops")
    page.plot(
        hysteresis_loops(log["target_pos"][:, worst], positions, joints[worst]),
        "A slow part of an unseen motion: distance from the command on the way there and back. Friction and hysteresis "
        "open the loop, and delay does when it is faster.",
    )


def _moved(ladder: Ladder, log: Log) -> dict[str, FloatArray]:
    """Measured and simulated positions (T, njoint) by title, simplest rung first."""
    moved = {"measured": log["joint_pos"]}
    for name in _worth_showing(ladder):
        rolled = roll(ladder.robot, [log], ladder.actuators[name], ladder.sim)[0]
        moved[rung_named(name).title] = rolled.joint_pos[0]
    return moved


def _worst_joint(log: Log, moved: Mapping[str, FloatArray]) -> int:
    """The joint that the simplest rung gets most wrong, of those that are asked to move."""
    first, way = list(moved.values())[1], np.ptp(log["target_pos"], axis=0)
    error = np.nan_to_num(np.abs(first - log["joint_pos"])).mean(axis=0)
    return int(np.where(way >= _MOVING * way.max(), error, -1.0).argmax())


def lively(logs: Sequence[Log]) -> Log:
    """The seconds in which commands move most."""
    log = max(logs, key=lambda candidate: _ways(candidate)[1].max())
    rows, way = _ways(log)
    start = int(way.argmax())
    return log.window(start, start + rows)


def gentle(logs: Sequence[Log]) -> Log:
    """The seconds of the smoothest log in which commands move least, those aside in which they hardly move."""
    enough = _MOVING * max(_ways(candidate)[1].max() for candidate in logs)
    moving = [candidate for candidate in logs if _ways(candidate)[1].max() >= enough]
    log = min(moving, key=lambda candidate: np.abs(np.diff(candidate["target_pos"], axis=0)).max())
    rows, way = _ways(log)
    start = int(np.where(way >= _MOVING * way.max(), way, np.inf).argmin())
    return log.window(start, start + rows)


def _ways(log: Log) -> tuple[int, FloatArray]:
    """Rows that are shown, and how far commands travel in them from every row on."""
    rows = min(len(log), round(_SHOWN_S * log.rate_hz))
    way = np.append(0.0, np.abs(np.diff(log["target_pos"], axis=0)).sum(axis=1).cumsum())
    return rows, way[rows - 1 :] - way[: len(way) - rows + 1]


def _worth_showing(ladder: Ladder) -> list[str]:
    """The simplest, pace, the recommended and the best of the others, simplest first."""
    scored = {r.rung: r.scores.whole.mean for r in ladder.file.rungs if r.scores is not None}
    must = [next(iter(scored)), "pace", ladder.file.recommendation.rung, "uan"]
    ranked = [name for name in must if name in scored] + sorted(scored, key=lambda name: scored[name])
    keep = list(dict.fromkeys(ranked))[:_MOST_SHOWN]
    return [name for name in scored if name in keep]
