"""Unseen motion on the page of an actuator ladder: rungs beside what was measured, joint by joint, and as loops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from trueup.calibrate.actuator.ladder import Ladder
from trueup.calibrate.actuator.rungs import rung_named
from trueup.calibrate.actuator.score.rollouts import roll
from trueup.data.log import Log
from trueup.report.calibration.actuator_plots import hysteresis_loops
from trueup.report.page import Page
from trueup.report.traces import joint_traces

FloatArray = NDArray[np.float64]
_SHOWN_S, _MOST_SHOWN = 6.0, 5
_MOVING = 0.3  # of the way of the liveliest seconds, or the liveliest joint: still motion


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
