"""Checks of units: degrees where radians are meant, column by column, so that the rest can be checked in radians.

Degrees show in three ways: against the command (ratio 57.3), against the velocity (ratio 57.3), or, when all columns
agree, against what a joint can do (the robot's limits; without a robot, more than two turns either way).
"""

from __future__ import annotations

import numpy as np

from trueup.data.check.finding import Finding, make_finding
from trueup.data.check.view import FloatArray, correlation, delayed, spread
from trueup.data.reference import Reference

DEGREE = 180.0 / np.pi
TRAIL_S = (0.0, 0.02, 0.04, 0.06, 0.08, 0.1, 0.13, 0.16)
PLAUSIBLE_RAD = 4.0 * np.pi  # without a robot: two turns either way


def degree_columns(
    pos: FloatArray, target: FloatArray | None, vel: FloatArray | None, dt: float, reference: Reference | None
) -> dict[str, set[int]]:
    """Per signal, the joints whose column is in degrees (or degrees a second)."""
    n = pos.shape[1]
    out: dict[str, set[int]] = {"joint_pos": set(), "target_pos": set(), "joint_vel": set()}
    turns = spread(pos)
    for j in range(n):
        if turns[j] <= 0:
            continue
        if target is not None:
            ratio = _ratio(*_matched(pos[:, j], target[:, j], dt), 0.5)
            if _is_degree(ratio, 1.6):
                out["joint_pos"].add(j)
            elif _is_degree(1 / ratio if ratio > 0 else 0.0, 1.6):
                out["target_pos"].add(j)
        if vel is not None:
            ratio = _speed_ratio(pos[:, j], vel[:, j], dt)
            if _is_degree(ratio, 1.35):
                out["joint_pos"].add(j)
            elif _is_degree(1 / ratio if ratio > 0 else 0.0, 1.35):
                out["joint_vel"].add(j)
    implausible = [j for j in range(n) if j not in out["joint_pos"] and _beyond(pos[:, j], j, reference)]
    movers = [j for j in range(n) if turns[j] > 0]
    # a single column beyond two turns may be a wheel; half of them is a unit
    if len(implausible) >= max(1, len(movers) / 2):
        out["joint_pos"].update(movers)  # a file has one unit: the rest moves too little to show it
    elif reference is not None:
        out["joint_pos"].update(implausible)
    if target is not None:
        out["target_pos"].update(_with_target(pos, target, out))
    if vel is not None:
        out["joint_vel"].update(_with_velocity(pos, vel, dt, out["joint_pos"]))
    return out


def _is_degree(ratio: float, slack: float) -> bool:
    return DEGREE / slack < ratio < DEGREE * slack


def _matched(pos: FloatArray, target: FloatArray, dt: float) -> tuple[FloatArray, FloatArray]:
    """Position and command, cut so that they move together most: a servo may trail a fast command by half a swing."""
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


def _beyond(pos: FloatArray, j: int, reference: Reference | None) -> bool:
    """Whether a column is far outside of what the joint can do, and inside when read as degrees."""
    low, high = (float(x) for x in np.percentile(pos, [0.5, 99.5]))
    wide, step = high - low, np.diff(pos)
    leaps = np.abs(step) > 0.3 * wide
    smooth = float(np.ptp(np.cumsum(np.where(leaps, 0.0, step))))
    turns = leaps.any() and bool(np.all(np.abs(np.abs(step[leaps]) - 2 * np.pi) < 0.5))
    # few leaps make the range, or full turns do: a jump or a wrapped angle, not a unit
    if (0 < np.count_nonzero(leaps) <= 2 or turns) and smooth < 0.5 * wide:
        return False
    if reference is None:
        net = abs(float(pos[-1] - pos[0]))
        return max(-low, high) > PLAUSIBLE_RAD and max(-low, high) / DEGREE < PLAUSIBLE_RAD / 2 and net < 0.7 * wide
    below, above = float(reference.position_low[j]), float(reference.position_high[j])
    room = 0.1 * (above - below)
    inside = below - room <= low / DEGREE and high / DEGREE <= above + room
    return wide > 2 * (above - below) and inside


def _with_target(pos: FloatArray, target: FloatArray, out: dict[str, set[int]]) -> set[int]:
    """Targets of the same size as a measured column in degrees are in degrees too."""
    joints = set()
    for j in out["joint_pos"]:
        ratio = float(np.sqrt(np.mean(target[:, j] ** 2) / max(float(np.mean(pos[:, j] ** 2)), 1e-12)))
        if ratio > 1 / np.sqrt(DEGREE):  # nearer to 1 than to 1/57.3
            joints.add(j)
    return joints


def _with_velocity(pos: FloatArray, vel: FloatArray, dt: float, joints: set[int]) -> set[int]:
    """Velocities that agree with a measured column in degrees are in degrees a second too."""
    return {j for j in joints if 1 / 1.35 < _speed_ratio(pos[:, j], vel[:, j], dt) < 1.35}


def check_units(names: tuple[str, ...], columns: dict[str, set[int]], signals: dict[str, FloatArray]) -> list[Finding]:
    """Report the columns in degrees."""
    found = []
    for signal, joints in columns.items():
        if not joints:
            continue
        order = sorted(joints)
        top = float(np.max(np.abs(signals[signal][:, order])))
        text = (
            f"{signal} reaches {top:.4g}, in degrees that is {top / DEGREE:.3g} rad: it fits the command, the velocity "
            f"or the joint's range only after division by 57.3"
        )
        who = [names[j] for j in order]
        found.append(
            make_finding("unit_degrees", "error", text, signal=signal, joints=who, score=0.95, numbers={"largest": top})
        )
    return found
