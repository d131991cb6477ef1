"""Figures of a round on the robot, and comparison of two rounds.

Everything is computed from the robot's own sensors: how the runs ended, the joints' distance from their targets, and
for legged robots the velocity by leg odometry against the commanded one. Rounds are compared run by run:
run k of both has the same command and duration, on the same robot.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from trueup.core.arrays import FloatArray, Ids
from trueup.data.log import Log
from trueup.deploy.session.recording import FILE, PHASES, RecordedRows, read_rows
from trueup.robot.load import Robot
from trueup.tasks.evaluation.statistics import mcnemar
from trueup.world.odometry import leg_odometry

_BLOCK_S = 2.0  # of walking: blocks are nearly independent
_DRAWS = 4000
_FALLEN_RAD = 1.0
_SIGNIFICANT = 0.05

Verdict = Literal["better", "no difference", "worse", "mixed"]


@dataclass(frozen=True, kw_only=True)
class RoundFigures:
    """Figures of a round on the robot.

    runs        on the last rung; `fell`: whether each leaned beyond 1 rad or ended early
    blocks      (run, block) mean distance of the base's velocity from the commanded one in blocks of 2 s, m/s; after
                a fall the robot counts as standing still; None where velocity cannot be measured
    tracking    RMS distance of joints from their targets, rad
    """

    fell: tuple[bool, ...]
    seconds: float
    blocks: tuple[tuple[float, ...], ...] | None
    tracking: float

    @property
    def runs(self) -> int:
        return len(self.fell)

    @property
    def falls(self) -> int:
        return sum(self.fell)

    @property
    def error(self) -> float | None:
        """Mean distance of the velocity from the commanded one, m/s."""
        return None if self.blocks is None else float(np.mean(self.blocks))

    @property
    def interval(self) -> tuple[float, float] | None:
        """95 % of `error`, by resampling runs and their blocks."""
        return None if self.blocks is None else mean_interval(np.array(self.blocks))


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """The second of two rounds against the first.

    change       second minus first error, m/s, run by run and block by block, with its 95 % interval
    falls_p      two-sided sign test of the runs that fell in one round only
    verdict      better: error lower beyond its interval, or fewer falls by the sign test, and the other no worse
                 (no more falls; error not higher beyond its interval); worse likewise; mixed: better in one, worse in
                 the other; else no difference that these runs could show
    """

    runs: int
    falls: tuple[int, int]
    falls_p: float
    change: float | None
    low: float | None
    high: float | None
    verdict: Verdict


def round_figures(robot: Robot, deploy_folder: Path, seconds: float) -> RoundFigures | None:
    """Figures of the runs of the last rung, each of `seconds` as planned; None if there are none."""
    found = [read_rows(one) for one in sorted(deploy_folder.glob(f"full-*/{FILE}"))]
    if not found:
        return None
    walked = [_policy_rows(rows) for rows in found]
    lasted = [len(rows) / one.header.control_hz for rows, one in zip(walked, found, strict=True)]
    blocks = [_velocity_errors(robot, rows, seconds) for rows in found]
    return RoundFigures(
        fell=tuple(_fall(rows) is not None or t < seconds - 0.1 for rows, t in zip(found, lasted, strict=True)),
        seconds=float(sum(lasted)),
        blocks=None if any(one is None for one in blocks) else tuple(one for one in blocks if one is not None),
        tracking=float(np.sqrt(np.mean(np.concatenate([_tracking(rows) for rows in found]) ** 2))),
    )


def compare(first: RoundFigures | None, second: RoundFigures | None) -> Comparison | None:
    """The second round against the first, by the runs that both have; None if there is nothing to compare."""
    if first is None or second is None or not (runs := min(first.runs, second.runs)):
        return None
    change = low = high = None
    if first.blocks is not None and second.blocks is not None:
        paired = np.array(second.blocks[:runs]) - np.array(first.blocks[:runs])
        change, (low, high) = float(paired.mean()), mean_interval(paired)
    pairs = list(zip(first.fell[:runs], second.fell[:runs], strict=True))
    only_first, only_second = sum(a and not b for a, b in pairs), sum(b and not a for a, b in pairs)
    p = mcnemar(only_first, only_second)
    return Comparison(
        runs=runs, falls=(sum(a for a, _ in pairs), sum(b for _, b in pairs)), falls_p=p, change=change, low=low,
        high=high, verdict=_verdict(only_second - only_first, p, low, high),
    )  # fmt: skip


def _verdict(more_falls: int, p: float, low: float | None, high: float | None) -> Verdict:
    lower, higher = high is not None and high < 0.0, low is not None and low > 0.0
    fewer, more = more_falls < 0 and p < _SIGNIFICANT, more_falls > 0 and p < _SIGNIFICANT
    if (lower and more_falls > 0) or (higher and more_falls < 0):
        return "mixed"
    if lower or fewer:
        return "better"
    return "worse" if higher or more else "no difference"


def mean_interval(blocks: FloatArray) -> tuple[float, float]:
    """95 % of the mean of (run, block), by resampling runs, and blocks within them."""
    runs, size = blocks.shape
    rng = np.random.default_rng(0)
    rows = rng.integers(0, runs, (_DRAWS, runs, 1))
    means = blocks[rows, rng.integers(0, size, (_DRAWS, runs, size))].mean(axis=(1, 2))
    low, high = np.quantile(means, (0.025, 0.975))
    return float(low), float(high)


def rows_log(rows: RecordedRows) -> Log:
    """The states of a recorded run as a log."""
    names = ("joint_pos", "joint_vel", *(("imu_quat", "imu_gyro") if rows.header.has_imu else ()))
    signals = {name: np.asarray(rows.columns[name], np.float64) for name in names}
    return Log(time=rows.columns["time_s"][:, 0], joint_names=rows.header.joint_names, signals=signals)


def _policy_rows(rows: RecordedRows) -> Ids:
    """Indices of the rows in which the policy ran."""
    return np.flatnonzero(rows.columns["phase"][:, 0] == PHASES.index("policy"))


def _velocity_errors(robot: Robot, rows: RecordedRows, seconds: float) -> tuple[float, ...] | None:
    """Mean error of each block of a run of `seconds`, m/s; after a fall or an early end the commanded speed."""
    if not robot.spec.feet or not rows.header.has_imu or rows.columns["command"].shape[1] < 2:
        return None
    hz, walked = rows.header.control_hz, _policy_rows(rows)
    count = round(seconds * hz)
    if not len(walked):
        return None
    asked = np.linalg.norm(rows.columns["command"][walked, :2], axis=1)
    error = np.full(count, asked.max())
    fall = _fall(rows)
    upright = walked[walked < (len(rows) if fall is None else fall)][:count]
    if len(rows) > 1:
        found = leg_odometry(robot, rows_log(rows)).velocity[upright, :2]
        error[: len(upright)] = np.linalg.norm(found - rows.columns["command"][upright, :2], axis=1)
    parts = max(1, round(seconds / _BLOCK_S))
    return tuple(float(one.mean()) for one in np.array_split(error, parts))


def _fall(rows: RecordedRows) -> int | None:
    """First row in which the base leans beyond 1 rad; None if it never did."""
    if not rows.header.has_imu:
        return None
    _, x, y, _ = rows.columns["imu_quat"].T
    leaning = np.flatnonzero(1.0 - 2.0 * (x * x + y * y) < np.cos(_FALLEN_RAD))
    return int(leaning[0]) if len(leaning) else None


def _tracking(rows: RecordedRows) -> FloatArray:
    walked = _policy_rows(rows)
    walked = walked[walked + 1 < len(rows)]
    return np.asarray(rows.columns["joint_pos"][walked + 1] - rows.columns["sent_pos"][walked], np.float64).ravel()
