"""Figures and sections of an actuator ladder's page: errors by rung and by horizon, unseen motion, hysteresis loops."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueup.calibrate.actuator.folder import RungResult
from trueup.calibrate.actuator.ladder import Ladder
from trueup.calibrate.actuator.rungs import rung_named
from trueup.calibrate.actuator.score import roll
from trueup.data.log import Log
from trueup.report.calibration.plots import chart
from trueup.report.page import Page
from trueup.report.traces import COLOURS, joint_traces

FloatArray = NDArray[np.float64]
_MRAD = 1e3
_WHOLE_S = 20.0  # place of whole logs on the axis of horizons
_SHOWN_S, _MOST_SHOWN = 6.0, 5
_MOVING = 0.3  # of the way of the liveliest seconds, or the liveliest joint: still motion


def ladder_chart(results: Sequence[RungResult], chosen: str) -> Any:
    """Return errors on unseen and on fitted data, rung by rung, simplest on top."""
    shown = [(result.rung, result.scores) for result in results if result.scores is not None]
    labels = [rung_named(rung).title for rung, _ in shown]
    held, train = [scores.motion for _, scores in shown], [scores.train for _, scores in shown]
    figure = chart(
        34 * len(labels) + 130,
        {"title": {"text": "whole-rollout position error, mrad"}}
        | _log_axis([_MRAD * error.mean for error in (*held, *train)]),
        {"autorange": "reversed", "automargin": True},
        l=190,
    )
    figure.add_bar(
        x=[_MRAD * error.mean for error in held],
        y=labels,
        error_x={"array": [_MRAD * error.se for error in held], "thickness": 1.4},
        orientation="h",
        name="unseen motion",
        marker={"color": [COLOURS[2] if rung == chosen else COLOURS[1] for rung, _ in shown]},
        hovertemplate="%{y}: %{x:.2f} mrad on unseen motion<extra></extra>",
    )
    figure.add_scatter(
        x=[_MRAD * error.mean for error in train],
        y=labels,
        mode="markers",
        name="motion it was fitted to",
        marker={"color": COLOURS[0], "symbol": "line-ns-open", "size": 14, "line": {"width": 2}},
        hovertemplate="%{y}: %{x:.2f} mrad on what it was fitted to<extra></extra>",
    )
    other = [
        (rung_named(rung).title, scores.groups["gain"])
        for rung, scores in shown
        if len(scores.groups) > 1 and "gain" in scores.groups
    ]
    if other:
        figure.add_scatter(
            x=[_MRAD * error.mean for _, error in other],
            y=[label for label, _ in other],
            mode="markers",
            name="new gain",
            marker={"color": COLOURS[4], "symbol": "diamond-open", "size": 9, "line": {"width": 2}},
            hovertemplate="%{y}: %{x:.2f} mrad under a new gain<extra></extra>",
        )
    return figure


def horizon_chart(results: Sequence[RungResult]) -> Any:
    """Return the error on unseen data against how far ahead is predicted, a line per rung."""
    shown = [(result.rung, result.scores.held) for result in results if result.scores is not None]
    horizon = {"type": "log", "title": {"text": "horizon"}, "tickvals": [0.005, 0.02, 0.1, 1.0, _WHOLE_S]}
    figure = chart(
        430,
        {**horizon, "ticktext": ["5 ms", "20 ms", "0.1 s", "1 s", "whole"]},
        {"title": {"text": "mrad"}} | _log_axis([_MRAD * error.mean for _, held in shown for error in held]),
        t=90,
    )
    for k, (rung, held) in enumerate(shown):
        figure.add_scatter(
            x=[_WHOLE_S if error.seconds is None else error.seconds for error in held],
            y=[_MRAD * error.mean for error in held],
            error_y={"array": [_MRAD * error.se for error in held], "thickness": 1, "width": 2},
            name=rung_named(rung).title,
            mode="lines+markers",
            line={"color": COLOURS[k % len(COLOURS)], "dash": ("solid", "dash", "dot")[k // len(COLOURS) % 3]},
            hovertemplate="%{y:.3g} mrad",
        )
    return figure


def _log_axis(values: Sequence[float]) -> dict[str, Any]:
    """A logarithmic axis with whole numbers at its ticks, of a decade's digits as many as there is room for."""
    known = [value for value in values if value > 0.0 and math.isfinite(value)] or [1.0]
    low, high = min(known), max(known)
    digits = (1, 2, 3, 5, 7) if high < 30 * low else (1, 3) if high < 1000 * low else (1,)
    decades = range(math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 2)
    ticks = [digit * 10.0**decade for decade in decades for digit in digits]
    return {"type": "log", "tickvals": ticks, "ticktext": [f"{tick:g}" for tick in ticks]}


def hysteresis_loops(command: FloatArray, moved: Mapping[str, FloatArray], joint: str) -> Any:
    """Return how far a joint is from its command, against the command: loops of friction, lag and hysteresis.

    command (T,) and every trace of `moved` (T,), rad.
    """
    figure = chart(
        430,
        {"title": {"text": f"command of {joint}, rad"}, "zeroline": False},
        {"title": {"text": "position minus command, mrad"}},
        t=70,
    )
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
    log = lively(ladder.held)
    moved = _moved(ladder, log)
    joints = ladder.robot.spec.joint_names
    page.section("Unseen motion")
    page.text("Commands of a held-out log in the simulator, from one measured state on. Drag to zoom.")
    worst = _worst_joint(log, moved)
    missed = {
        name: 1e3 * (position - log["joint_pos"])[:, [worst]]
        for name, position in list(moved.items())[1 + (len(moved) > 2) :]
    }
    page.plot(
        joint_traces(log.time - log.time[0], missed, [joints[worst]], "mrad"),
        f"Simulated minus measured position of {joints[worst]}, which the simplest rung gets most wrong.",
    )
    page.plot(joint_traces(log.time - log.time[0], moved, joints, "rad"))
    page.table(
        ("rung", *joints),
        [
            (rung_named(r.rung).title, *(1e3 * error for error in r.scores.whole.joints))
            for r in ladder.file.rungs
            if r.scores is not None
        ],
        "Error of every rung on all unseen motion, joint by joint, mrad.",
    )
    _loops(page, ladder)


def _loops(page: Page, ladder: Ladder) -> None:
    """How far a joint is from its command against the command, in the smoothest of the held-out logs."""
    log = gentle(ladder.held)
    moved = _moved(ladder, log)
    joint = _worst_joint(log, moved)
    page.section("Hysteresis loops")
    page.plot(
        hysteresis_loops(
            log["target_pos"][:, joint],
            {name: position[:, joint] for name, position in moved.items()},
            ladder.robot.spec.joint_names[joint],
        ),
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
    log = max(logs, key=lambda one: _ways(one)[1].max())
    rows, way = _ways(log)
    start = int(way.argmax())
    return log.window(start, start + rows)


def gentle(logs: Sequence[Log]) -> Log:
    """The seconds of the smoothest log in which commands move least, those aside in which they hardly move."""
    enough = _MOVING * max(_ways(one)[1].max() for one in logs)
    moving = [one for one in logs if _ways(one)[1].max() >= enough]
    log = min(moving, key=lambda one: np.abs(np.diff(one["target_pos"], axis=0)).max())
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
