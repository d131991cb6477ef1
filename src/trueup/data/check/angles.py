"""Checks of units: degrees where radians are meant, column by column, so that the rest can be checked in radians.

Degrees show in three ways: against the command (ratio 57.3), against the velocity (ratio 57.3), or, when all columns
agree, against what a joint can do (the robot's limits; without a robot, more than two turns either way).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from trueup.core.arrays import FloatArray
from trueup.data.check.finding import Finding, make_finding
from trueup.data.check.view import correlation, delayed, spread
from trueup.data.log import RobotReference

DEGREE = 180.0 / np.pi
TRAIL_S = (0.0, 0.02, 0.04, 0.06, 0.08, 0.1, 0.13, 0.16)
PLAUSIBLE_RAD = 4.0 * np.pi  # without a robot: two turns either way


def degree_columns(
    pos: FloatArray, target: FloatArray | None, vel: FloatArray | None, dt: float, reference: RobotReference | None
) -> dict[str, set[int]]:
    """Per signal, the joints whose column is in degrees (or degrees a second)."""
    out: dict[str, set[int]] = {"joint_pos": set(), "target_pos": set(), "joint_vel": set()}
    movers = [j for j, turns in enumerate(spread(pos)) if turns > 0]
    for j in movers:
        ratios = {}
        if target is not None:
            ratios["target_pos"] = (_ratio(*_matched(pos[:, j], target[:, j], dt), 0.5), 1.6)
        if vel is not None:
            ratios["joint_vel"] = (_speed_ratio(pos[:, j], vel[:, j], dt), 1.35)
        for other, (ratio, slack) in ratios.items():
            if DEGREE / slack < ratio < DEGREE * slack:
                out["joint_pos"].add(j)
            elif DEGREE / slack < 1 / max(ratio, 1e-12) < DEGREE * slack:
                out[other].add(j)
    implausible = [j for j in range(pos.shape[1]) if j not in out["joint_pos"] and _beyond(pos[:, j], j, reference)]
    # a single column beyond two turns may be a wheel; half of them is a unit
    if len(implausible) >= max(1, len(movers) / 2):
        out["joint_pos"].update(movers)  # a file has one unit: the other columns move too little to show it
    elif reference is not None:
        out["joint_pos"].update(implausible)
    for j in out["joint_pos"]:  # what agrees with a measured column in degrees is in degrees too
        size = float(np.mean(pos[:, j] ** 2))
        if target is not None and np.sqrt(np.mean(target[:, j] ** 2) / max(size, 1e-12)) > 1 / np.sqrt(DEGREE):
            out["target_pos"].add(j)  # nearer to 1 than to 1/57.3
        if vel is not None and 1 / 1.35 < _speed_ratio(pos[:, j], vel[:, j], dt) < 1.35:
            out["joint_vel"].add(j)
    return out


def _matched(pos: FloatArray, target: FloatArray, dt: float) -> tuple[FloatArray, FloatArray]:
    """Position and command at the shift of largest correlation: a servo may lag a fast command by half a period."""
    return max(delayed(pos, target, dt, TRAIL_S), key=lambda pair: abs(correlation(*pair)))


def _ratio(a: FloatArray, b: FloatArray, least: float) -> float:
    """Size of a against b when they move together, else 0."""
    if abs(correlation(a, b)) < least:
        return 0.0
    return float(np.std(a)) / max(float(np.std(b)), 1e-12)


def _speed_ratio(pos: FloatArray, vel: FloatArray, dt: float) -> float:
    """Size of the position's differences against the integrated velocity over about 0.1 s."""
    m = max(1, round(0.1 / dt))
    if len(pos) < 4 * m:
        return 0.0
    area = np.concatenate([[0.0], np.cumsum((vel[1:] + vel[:-1]) / 2 * dt)])
    return _ratio(pos[m:] - pos[:-m], area[m:] - area[:-m], 0.8)


def _beyond(pos: FloatArray, j: int, reference: RobotReference | None) -> bool:
    """Whether a column is far outside of what the joint can do, and inside when read as degrees."""
    low, high = (float(x) for x in np.percentile(pos, [0.5, 99.5]))
    wide, step = high - low, np.diff(pos)
    leaps = np.abs(step) > 0.3 * wide
    smooth = float(np.ptp(np.cumsum(np.where(leaps, 0.0, step))))
    turns = leaps.any() and bool(np.all(np.abs(np.abs(step[leaps]) - 2 * np.pi) < 0.5))
    # the range comes from few jumps or full turns: a jump or a wrapped angle, not a unit
    if (0 < np.count_nonzero(leaps) <= 2 or turns) and smooth < 0.5 * wide:
        return False
    if reference is None:
        net = abs(float(pos[-1] - pos[0]))
        return max(-low, high) > PLAUSIBLE_RAD and max(-low, high) / DEGREE < PLAUSIBLE_RAD / 2 and net < 0.7 * wide
    below, above = float(reference.position_low[j]), float(reference.position_high[j])
    room = 0.1 * (above - below)
    inside = below - room <= low / DEGREE and high / DEGREE <= above + room
    return wide > 2 * (above - below) and inside


def check_units(
    names: tuple[str, ...], columns: dict[str, set[int]], signals: dict[str, FloatArray]
) -> Iterator[Finding]:
    """Report the columns in degrees."""
    for signal, joints in columns.items():
        if joints:
            order = sorted(joints)
            top = float(np.max(np.abs(signals[signal][:, order])))
            text = (
                f"{signal} reaches {top:.4g}, in degrees that is {top / DEGREE:.3g} rad: it fits the command, the "
                f"velocity or the joint's range only after division by 57.3"
            )
            who = [names[j] for j in order]
            yield make_finding("unit_degrees", "error", text, signal, who, score=0.95, largest=top)
