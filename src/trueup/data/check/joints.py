"""Checks against the robot: names, order and sign of the joints, limits; and target against measured columns."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from trueup.core.arrays import FloatArray
from trueup.data.check.finding import Finding, Level, make_finding
from trueup.data.check.view import BoolArray, LogView, correlation, delayed, smooth
from trueup.data.log import SIGNALS, RobotReference

BEYOND_RAD = 0.05  # outside a limit by this much is no rounding and no encoder bias
NEAR_POSE_RAD, FAR_POSE_RAD = 0.25, 0.5
CHANGE_RAD = 0.15  # a column is moved or negated only if it comes nearer to the default pose by this much
CLEAR_RAD = 0.6  # nearer to the default pose by this much in all: an order explains one column beyond its limits
UNDECIDED_RAD = 0.1  # a wrong joint, nearer to the default pose: below, two explanations are alike
TRACK_DELAYS_S = (0.0, 0.02, 0.05, 0.1)


def match_reference(
    names: tuple[str, ...], reference: RobotReference | None
) -> tuple[RobotReference | None, list[Finding]]:
    """Put the robot in the log's joint order; by name where possible, else by place and with a finding."""
    if reference is None or names == reference.joint_names:
        return reference, []
    have, robot = len(names), len(reference.joint_names)
    strange = [name for name in names if name not in reference.joint_names]
    if not strange and len(set(names)) == have:
        text = f"the log has {have} of the robot's {robot} joints"
        found = [] if have == robot else [make_finding("joint_names", "note", text, score=0.2)]
        return reference.in_order(names), found
    first = (strange or names)[0]
    if have != robot:
        text = (
            f"the log has {have} joints, the robot {robot}, and {first!r} is none of them: nothing was compared with "
        )
        return None, [make_finding("joint_names", "error", f"{text}the robot", "", strange, score=0.9)]
    text = f"{first!r} is no joint of the robot ({', '.join(reference.joint_names)}): compared by place instead"
    return reference, [make_finding("joint_names", "warning", text, "", strange, score=0.5)]


def _cheapest_order(cost: FloatArray) -> NDArray[np.intp]:
    """Column of every row such that the sum of a square cost is smallest."""
    from scipy.optimize import linear_sum_assignment  # type: ignore[attr-defined]  # takes a while to import

    return np.asarray(linear_sum_assignment(cost)[1], np.intp)


def check_tracking(view: LogView) -> Iterator[Finding]:
    """Report measured columns that follow another joint's command, or their own with the wrong sign."""
    if view.target is None or view.rows < 40:
        return
    half = max(1, round(0.04 / view.dt))
    pos, target = smooth(view.pos, half), smooth(view.target, half)
    joints = [j for j in view.fair if np.ptp(target[:, j]) > 0.02 and view.moving[j]]
    flips = [j for j in joints if _flipped(pos[:, j], target[:, j], view.dt)]
    swaps = _swaps(view, pos, target, joints)
    if set(flips) & set(swaps):  # both explain some joints: the one that comes nearer to their commands does
        turned = sum(_apart(pos[:, j], -target[:, j], view.dt) for j in flips) / len(flips)
        moved = sum(_apart(pos[:, j], target[:, k], view.dt) for j, k in swaps.items()) / len(swaps)
        swaps, flips = (swaps, []) if moved < turned else ({}, flips)
    if swaps:
        text = "; ".join(f"{view.names[j]} moves as the command of {view.names[k]} says" for j, k in swaps.items())
        yield view.finding("column_swap", "error", text, "target_pos", swaps, score=0.9)
    if flips:
        worst = -max(_together(pos[:, j], -target[:, j], view.dt) for j in flips)
        text = f"measured position and command run against each other, correlation {worst:.2f}"
        yield view.finding("sign_flip", "error", text, "joint_pos", flips, score=0.9, correlation=worst)
    view.blamed.update(swaps, flips)


def _together(pos: FloatArray, target: FloatArray, dt: float) -> float:
    """Largest correlation with the command over a few usual delays."""
    return max(correlation(*pair) for pair in delayed(pos, target, dt, TRACK_DELAYS_S))


def _apart(pos: FloatArray, target: FloatArray, dt: float) -> float:
    """Smallest distance (rms, rad) to the command over a few usual delays."""
    pairs = delayed(pos, target, dt, TRACK_DELAYS_S)
    return min(float(np.sqrt(np.mean((late - early) ** 2))) for late, early in pairs)


def _swaps(view: LogView, pos: FloatArray, target: FloatArray, joints: list[int]) -> dict[int, int]:
    """Joint -> joint whose command it follows instead of its own: nearer in shape and in level, in the best order."""
    if len(joints) < 2:
        return {}
    apart = np.array([[_apart(pos[:, j], target[:, k], view.dt) for k in joints] for j in joints])
    out: dict[int, int] = {}
    for a, b in enumerate(_cheapest_order(apart)):
        if b == a or apart[a, b] > 0.6 * apart[a, a]:
            continue
        j, k = joints[a], joints[int(b)]
        own, best = (_together(pos[:, j], target[:, i], view.dt) for i in (j, k))
        # much nearer in level is enough: some delay makes any two waves of one frequency alike in shape
        if best > 0.6 and (1 - best < 0.4 * (1 - own) or apart[a, b] < 0.35 * apart[a, a]):
            out[j] = k
    return out if len(out) > 1 else {}


def _flipped(pos: FloatArray, target: FloatArray, dt: float) -> bool:
    """Whether the joint follows the negated command, in shape and in level, better than the command at any delay."""
    against, along = _together(pos, -target, dt), _together(pos, target, dt)
    return against > max(0.6, along + 0.3) and _apart(pos, -target, dt) < 0.6 * _apart(pos, target, dt)


def check_order(view: LogView) -> Iterator[Finding]:
    """Report columns that fit the robot only negated, or only in another order.

    Both are tested on the limits; the default pose decides between them, and where it cannot, both are reported.
    """
    if view.reference is None:
        return
    ref = view.reference
    low, high = np.percentile(view.pos, [1, 99], axis=0)
    middle = (low + high) / 2
    inside = (low[:, None] > ref.position_low - BEYOND_RAD) & (high[:, None] < ref.position_high + BEYOND_RAD)
    turned = (-high > ref.position_low - BEYOND_RAD) & (-low < ref.position_high + BEYOND_RAD)
    wrong = [j for j in view.fair if not inside[j, j]]
    if not wrong:
        yield from _by_pose(view, ref.default_pose, inside & _within(view, ref))
        return
    order = _rearranged(view, ref.default_pose, middle, inside & _within(view, ref), wrong)
    # joints that fit the limits and the default pose better when negated
    nearer = np.abs(middle - ref.default_pose) - np.abs(middle + ref.default_pose)
    flips = [j for j in view.fair if turned[j] and nearer[j] > (0 if j in wrong else FAR_POSE_RAD)]
    moved = [] if order is None else [j for j, k in enumerate(order) if j != k]
    by_order = np.inf if order is None else _misfit(middle, ref.default_pose[order], moved)
    negated = np.where(np.isin(np.arange(len(middle)), flips), -middle, middle)
    by_sign = _misfit(negated, ref.default_pose, flips) if set(wrong) <= set(flips) else np.inf
    undecided = UNDECIDED_RAD * len(wrong)
    if order is not None and by_order < by_sign + undecided:
        yield _order(view, order, "the joints' limits", "error")
    # a joint that only touches its limit is no sign error
    beyond = np.mean((view.pos < ref.position_low) | (view.pos > ref.position_high), axis=0)
    outside = [j for j in flips if j not in wrong or beyond[j] > 0.3]
    if outside and (order is None or by_sign < by_order + undecided):
        yield _signs(view, outside, "the joint's limits", "error")


def _within(view: LogView, ref: RobotReference) -> BoolArray:
    """Whether the column of joint j keeps the limits of speed and torque of joint k, [j, k]."""
    keeps = np.ones((len(view.names), len(view.names)), bool)
    for values, limit in ((view.vel, ref.velocity_limit), (view.torque, ref.torque_limit)):
        if values is not None:
            keeps &= np.percentile(np.abs(values), 99.5, axis=0)[:, None] < 1.1 * limit
    return np.asarray(keeps)


def _misfit(middle: FloatArray, pose: FloatArray, changed: list[int]) -> float:
    """Distance of all joints from the default pose, plus a penalty for every column declared wrong."""
    return float(np.sum(np.abs(middle - pose))) + CHANGE_RAD * len(changed)


def _by_pose(view: LogView, pose: FloatArray, fits: BoolArray) -> Iterator[Finding]:
    """Without a violated limit the default pose may still tell, when the log was recorded around it."""
    middle = np.median(view.pos, axis=0)
    near = np.abs(middle[:, None] - pose) < NEAR_POSE_RAD
    far = [j for j in view.fair if abs(middle[j] - pose[j]) > FAR_POSE_RAD]
    signs = [j for j in far if abs(middle[j] + pose[j]) < NEAR_POSE_RAD]
    rest_near = all(near[j, j] for j in view.fair if j not in far)
    if signs and len(signs) == len(far) and rest_near and len(view.names) > 1:
        yield _signs(view, signs, "the default pose", "warning")
        return
    order = _rearranged(view, pose, middle, near & fits, far)
    if order is not None:
        yield _order(view, order, "the default pose", "warning")


def _rearranged(
    view: LogView, pose: FloatArray, middle: FloatArray, fits: BoolArray, wrong: list[int]
) -> NDArray[np.intp] | None:
    """A robot joint for every column such that all fit, near the default pose and with few columns moved.

    None when no such order exists, or when a single column is wrong and the order comes hardly nearer to the pose.
    """
    if not wrong or len(view.fair) < len(view.names):
        return None
    n = len(fits)
    apart = np.minimum(np.abs(middle[:, None] - pose), 10.0)
    order = _cheapest_order(apart + CHANGE_RAD * (1 - np.eye(n)) + 100.0 * n * ~fits)
    gain = float(np.sum(np.abs(middle - pose) - np.abs(middle - pose[order])))
    return order if fits[np.arange(n), order].all() and (len(wrong) > 1 or gain > CLEAR_RAD) else None


def _order(view: LogView, order: NDArray[np.intp], by: str, level: Level) -> Finding:
    moved = [j for j in range(len(order)) if order[j] != j]
    pairs = ", ".join(f"column {view.names[j]} fits {view.names[int(order[j])]}" for j in moved)
    text = f"the columns contradict {by} in this order and agree in another: {pairs}"
    view.blamed.update(moved)
    return view.finding("joint_order", level, text, "joint_pos", moved, score=0.85)


def _signs(view: LogView, joints: list[int], by: str, level: Level) -> Finding:
    low, high = np.percentile(view.pos[:, joints[0]], [1, 99])
    text = f"{view.names[joints[0]]} moves between {low:.3g} and {high:.3g} rad, which fits {by} only when negated"
    view.blamed.update(joints)
    return view.finding("joint_sign", level, text, "joint_pos", joints, score=0.8)


def check_limits(view: LogView) -> Iterator[Finding]:
    """Report positions, speeds and torques beyond the robot's limits, and commands beyond them."""
    if view.reference is None:
        return
    ref = view.reference
    still = 0.005 + 4 * np.hypot(view.noise, view.quantum)
    speed, torque = ref.velocity_limit, ref.torque_limit
    columns = (
        ("joint_pos", view.pos, ref.position_low, ref.position_high, still),
        ("joint_vel", view.vel, -speed, speed, 0.05 * speed),
        ("joint_torque", view.torque, -torque, torque, 0.05 * torque),
        ("target_pos", view.target, ref.position_low, ref.position_high, np.full_like(still, 0.005)),
    )
    least = max(3, round(0.001 * view.rows))  # a single noisy reading is no motion beyond a limit
    for signal, values, low, high, room in columns:
        if values is None:
            continue
        excess = np.maximum(values - high, low - values)
        rows = np.count_nonzero(excess > room, axis=0)
        bad = [j for j in view.fair if rows[j] >= least]
        if not bad:
            continue
        j = max(bad, key=lambda k: float(excess[:, k].max()))
        top, share = float(excess[:, j].max()), float(rows[j] / view.rows)
        text = (
            f"{view.names[j]} is beyond its limit by up to {top:.3g} {SIGNALS[signal][1]}, in {share:.1%} of the rows"
        )
        code = "limits_exceeded"
        level: Level = "warning"
        if signal == "target_pos":
            code, level = "target_outside_limits", "note"
        elif signal == "joint_pos" and (top > 0.5 or share > 0.2):
            level = "error"
        yield view.finding(code, level, text, signal, bad, score=0.4 + share / 2, excess=top, share=share)
