"""What a round came to on the robot, and one round against another.

Everything is computed from the robot's own sensors: how the runs ended, how far the joints were from their targets, and
for legged robots the velocity by leg odometry against the velocity that was asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from trueup.core.arrays import FloatArray, Ids
from trueup.data.log import Log
from trueup.deploy.session.recording import FILE, PHASES, Recorded, read_rows
from trueup.robot.load import Robot
from trueup.world.odometry import leg_odometry

_BLOCK_S = 2.0  # of walking, over which the interval's blocks are taken as independent
_DRAWS = 2000
_FALLEN_RAD = 1.0


@dataclass(frozen=True, kw_only=True)
class RoundFigures:
    """A round on the robot.

    runs        on the last rung; `falls`: those that leaned beyond 1 rad or ended before their time
    error       mean distance of the base's velocity from the one asked for, m/s; None where it cannot be measured
    low, high   of `error`: 95 %, by resampling blocks of 2 s
    tracking    RMS distance of joints from their targets, rad
    """

    runs: int
    falls: int
    seconds: float
    error: float | None
    low: float | None
    high: float | None
    tracking: float


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """The second of two rounds against the first."""

    first: RoundFigures
    second: RoundFigures
    verdict: Literal["better", "no worse", "worse", "not comparable"]


def round_figures(robot: Robot, deploy_folder: Path, seconds: float) -> RoundFigures | None:
    """Figures of the runs of the last rung, each of which should have lasted `seconds`; None if there are none."""
    found = [read_rows(one) for one in sorted(deploy_folder.glob(f"full-*/{FILE}"))]
    if not found:
        return None
    errors = [_velocity_errors(robot, rows) for rows in found]
    blocks = np.concatenate([error for error in errors if error is not None]) if errors[0] is not None else np.zeros(0)
    low, high = _interval(blocks)
    walked = [_policy_rows(rows) for rows in found]
    lasted = [len(rows) / one.header.control_hz for rows, one in zip(walked, found, strict=True)]
    return RoundFigures(
        runs=len(found),
        falls=sum(_fell(rows) or time < seconds - 0.1 for rows, time in zip(found, lasted, strict=True)),
        seconds=float(sum(lasted)),
        error=float(blocks.mean()) if len(blocks) else None,
        low=low,
        high=high,
        tracking=float(np.sqrt(np.mean(np.concatenate([_tracking(rows) for rows in found]) ** 2))),
    )


def compare(first: RoundFigures | None, second: RoundFigures | None) -> Comparison | None:
    """Better: fewer falls or a smaller error, and no worse in the other; None without two rounds on the robot."""
    if first is None or second is None:
        return None
    falls = second.falls / second.runs - first.falls / first.runs
    error = 0.0 if first.error is None or second.error is None else second.error - first.error
    verdict: Literal["better", "no worse", "worse"] = "no worse"
    if falls > 0 or error > 0:
        verdict = "worse"
    elif falls < 0 or error < 0:
        verdict = "better"
    return Comparison(first=first, second=second, verdict=verdict)


def rows_log(rows: Recorded) -> Log:
    """The states of a recorded run as a log."""
    names = ("joint_pos", "joint_vel", *(("imu_quat", "imu_gyro") if rows.header.has_imu else ()))
    signals = {name: np.asarray(rows.columns[name], np.float64) for name in names}
    return Log(time=rows.columns["time_s"][:, 0], joint_names=rows.header.joint_names, signals=signals)


def _policy_rows(rows: Recorded) -> Ids:
    """Indices of the rows in which the policy ran."""
    return np.flatnonzero(rows.columns["phase"][:, 0] == PHASES.index("policy"))


def _velocity_errors(robot: Robot, rows: Recorded) -> FloatArray | None:
    """Mean error of each block of walking, m/s."""
    if not robot.spec.feet or not rows.header.has_imu or rows.columns["command"].shape[1] < 2:
        return None
    walked = _policy_rows(rows)
    if len(walked) < 2:
        return np.zeros(0)
    found = leg_odometry(robot, rows_log(rows)).velocity[walked, :2]
    error = np.linalg.norm(found - rows.columns["command"][walked, :2], axis=1)
    size = max(1, round(_BLOCK_S * rows.header.control_hz))
    return np.array([error[k : k + size].mean() for k in range(0, max(1, len(error) - size // 2), size)])


def _interval(blocks: FloatArray) -> tuple[float | None, float | None]:
    """95 % of the mean, by resampling."""
    if len(blocks) < 3:
        return None, None
    rng = np.random.default_rng(0)
    means = blocks[rng.integers(0, len(blocks), (_DRAWS, len(blocks)))].mean(axis=1)
    low, high = np.quantile(means, (0.025, 0.975))
    return float(low), float(high)


def _fell(rows: Recorded) -> bool:
    if not rows.header.has_imu:
        return False
    _, x, y, _ = rows.columns["imu_quat"].T
    return bool((1.0 - 2.0 * (x * x + y * y) < np.cos(_FALLEN_RAD)).any())


def _tracking(rows: Recorded) -> FloatArray:
    walked = _policy_rows(rows)
    walked = walked[walked + 1 < len(rows)]
    return np.asarray(rows.columns["joint_pos"][walked + 1] - rows.columns["sent_pos"][walked], np.float64).ravel()
