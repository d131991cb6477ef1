"""Checks against the robot: names, order and sign of the joints, limits; and target against measured columns."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trueup.data.finding import Finding, Level, make_finding
from trueup.data.log import SIGNALS
from trueup.data.reference import Reference
from trueup.data.view import BoolArray, FloatArray, LogView, correlation, smooth

BEYOND_RAD = 0.05  # outside a limit by this much is no rounding and no encoder bias
NEAR_POSE_RAD, FAR_POSE_RAD = 0.25, 0.5
TRACK_DELAYS_S = (0.0, 0.02, 0.05, 0.1)


def match_reference(
    names: tuple[str, ...], reference: Reference | None
) -> tuple[Reference | None, list[Finding]]:
    """Put the robot in the log's joint order; by name where possible, else by place and with a finding."""
    if reference is None or names == reference.joint_names:
        return reference, []
    if set(names) <= set(reference.joint_names) and len(set(names)) == len(names):
        if len(names) == len(reference.joint_names):
            return reference.in_order(names), []
        text = f"the log has {len(names)} of the robot's {len(reference.joint_names)} joints"
        return reference.in_order(names), [make_finding("joint_names", "note", text, score=0.2)]
    strange = [name for name in names if name not in reference.joint_names]
    if len(names) != len(reference.joint_names):
        text = (
            f"the log has {len(names)} joints, the robot {len(reference.joint_names)}, and {strange[0]!r} is none of "
            f"them: nothing was compared with the robot"
        )
        return None, [make_finding("joint_names", "error", text, joints=strange, score=0.9)]
    text = f"{strange[0]!r} is no joint of the robot ({', '.join(reference.joint_names)}): compared by place instead"
    return reference, [make_finding("joint_names", "warning", text, joints=strange, score=0.5)]


def check_tracking(view: LogView) -> list[Finding]:
    """Report measured columns that follow another joint's command, or their own with the wrong sign."""
    if view.target is None or view.rows < 40:
        return []
    half = max(1, round(0.04 / view.dt))
    pos, target = smooth(view.pos, half), smooth(view.target, half)
    joints = [j for j in view.fair if np.ptp(target[:, j]) > 0.02 and view.moving[j]]
    flips = [j for j in joints if _flipped(pos[:, j], target[:, j], view.dt)]
    swaps = _swaps(view, pos, target, joints)
    if set(flips) & set(swaps):  # both explain some joints: the one that explains more of them does
        swaps, flips = (swaps, []) if len(swaps) > len(flips) else ({}, flips)
    found = []
    if swaps:
        text = "; ".join(
            f"{view.names[j]} moves as the command of {view.names[k]} says" for j, k in swaps.items()
        )
        who = [view.names[j] for j in swaps]
        found.append(make_finding("column_swap", "error", text, signal="target_pos", joints=who, score=0.9))
    if flips:
        worst = -max(_together(pos[:, j], -target[:, j], view.dt) for j in flips)
        text = f"measured position and command run against each other, correlation {worst:.2f}"
        who = [view.names[j] for j in flips]
        found.append(
            make_finding(
                "sign_flip",
                "error",
                text,
                signal="joint_pos",
                joints=who,
                score=0.9,
                numbers={"correlation": worst},
            )
        )
    view.blamed.update(swaps, flips)
    return found


def _together(pos: FloatArray, target: FloatArray, dt: float) -> float:
    """Largest correlation with the command over a few usual delays."""
    best = -1.0
    for delay in TRACK_DELAYS_S:
        k = min(round(delay / dt), len(pos) // 4)
        best = max(best, correlation(pos[k:], target[: len(target) - k]))
    return best


def _apart(pos: FloatArray, target: FloatArray, dt: float) -> float:
    """Smallest distance (rms, rad) to the command over a few usual delays."""
    best = np.inf
    for delay in TRACK_DELAYS_S:
        k = min(round(delay / dt), len(pos) // 4)
        best = min(best, float(np.sqrt(np.mean((pos[k:] - target[: len(target) - k]) ** 2))))
    return best


def _swaps(view: LogView, pos: FloatArray, target: FloatArray, joints: list[int]) -> dict[int, int]:
    """Joint -> joint whose command it follows instead of its own: nearer in shape and in level, both ways round."""
    apart = np.array([[_apart(pos[:, j], target[:, k], view.dt) for k in joints] for j in joints])
    out: dict[int, int] = {}
    for a, j in enumerate(joints):
        b = int(np.argmin(apart[a]))
        if b == a or int(np.argmin(apart[:, b])) != a or apart[a, b] > 0.6 * apart[a, a]:
            continue
        own, best = (_together(pos[:, j], target[:, k], view.dt) for k in (j, joints[b]))
        # much nearer in level is enough: some delay makes any two waves of one frequency alike in shape
        if best > 0.6 and (1 - best < 0.4 * (1 - own) or apart[a, b] < 0.35 * apart[a, a]):
            out[j] = joints[b]
    return out if len(out) > 1 else {}


def _flipped(pos: FloatArray, target: FloatArray, dt: float) -> bool:
    """Whether the joint follows the negated command, in shape and in level, better than the command at any delay."""
    against, along = _together(pos, -target, dt), _together(pos, target, dt)
    return against > max(0.6, along + 0.3) and _apart(pos, -target, dt) < 0.6 * _apart(pos, target, dt)


def check_order(view: LogView) -> list[Finding]:
    """Report columns that fit the robot only negated, or only in another order."""
    if view.reference is None:
        return []
    ref, joints = view.reference, view.fair
    low, high = np.percentile(view.pos, [1, 99], axis=0)
    fits = (low[:, None] > ref.position_low - BEYOND_RAD) & (high[:, None] < ref.position_high + BEYOND_RAD)
    turned = (-high > ref.position_low - BEYOND_RAD) & (-low < ref.position_high + BEYOND_RAD)
    wrong = [j for j in joints if not fits[j, j]]
    middle, pose = np.median(view.pos, axis=0), ref.default_pose
    nearer = np.abs(middle + pose) < np.abs(middle - pose)  # to the default pose, once negated
    signs = [j for j in wrong if turned[j] and nearer[j] and _mostly_outside(view, j)]
    order = _rearranged(fits, wrong) if len(joints) == len(view.names) else None
    if order is not None and (
        len(signs) < len(wrong)
        or _misfit(middle, pose[order], wrong) < _misfit(-middle, pose, wrong) + 0.1 * len(wrong)
    ):
        return _order(view, order, "the joints' limits", "error")
    if signs:
        return _signs(view, signs, "the joint's limits")
    return _by_pose(view, fits)


def _mostly_outside(view: LogView, j: int) -> bool:
    """A joint that only touches its limit is no sign error."""
    assert view.reference is not None
    low, high = view.reference.position_low[j], view.reference.position_high[j]
    return float(np.mean((view.pos[:, j] < low) | (view.pos[:, j] > high))) > 0.3


def _misfit(middle: FloatArray, pose: FloatArray, joints: list[int]) -> float:
    return float(np.sum(np.abs(middle - pose)[joints]))


def _by_pose(view: LogView, fits: BoolArray) -> list[Finding]:
    """Without a violated limit the default pose may still tell, when the log was recorded around it."""
    assert view.reference is not None
    pose = view.reference.default_pose
    middle = np.median(view.pos, axis=0)
    near = np.abs(middle[:, None] - pose) < NEAR_POSE_RAD
    far = [j for j in view.fair if abs(middle[j] - pose[j]) > FAR_POSE_RAD]
    signs = [j for j in far if abs(middle[j] + pose[j]) < NEAR_POSE_RAD]
    rest_near = all(near[j, j] for j in view.fair if j not in far)
    if signs and len(signs) == len(far) and rest_near and len(view.names) > 1:
        return _signs(view, signs, "the default pose", "warning")
    order = _rearranged(near & fits, far) if len(view.fair) == len(view.names) else None
    return [] if order is None else _order(view, order, "the default pose", "warning")


def _rearranged(fits: BoolArray, wrong: list[int]) -> NDArray[np.intp] | None:
    """A robot joint for every column such that all fit, keeping columns that fit where they are if possible.

    Augmenting paths (Kuhn 1955) from the identity; None when fewer than two columns are wrong or no such order exists.
    """
    if len(wrong) < 2:
        return None
    n = len(fits)
    column_of = [j if fits[j, j] else -1 for j in range(n)]

    def place(j: int, seen: set[int]) -> bool:
        for k in sorted(range(n), key=lambda k: column_of[k] >= 0):
            if fits[j, k] and k not in seen:
                seen.add(k)
                if column_of[k] < 0 or place(column_of[k], seen):
                    column_of[k] = j
                    return True
        return False

    if not all(place(j, set()) for j in range(n) if j not in column_of):
        return None
    order = np.empty(n, np.intp)
    order[column_of] = np.arange(n)
    return order


def _order(view: LogView, order: NDArray[np.intp], by: str, level: Level) -> list[Finding]:
    moved = [j for j in range(len(order)) if order[j] != j]
    pairs = ", ".join(f"column {view.names[j]} fits {view.names[int(order[j])]}" for j in moved)
    text = f"the columns contradict {by} in this order and agree in another: {pairs}"
    who = [view.names[j] for j in moved]
    view.blamed.update(moved)
    return [make_finding("joint_order", level, text, signal="joint_pos", joints=who, score=0.85)]


def _signs(view: LogView, joints: list[int], by: str, level: Level = "error") -> list[Finding]:
    low, high = np.percentile(view.pos[:, joints[0]], [1, 99])
    text = f"{view.names[joints[0]]} moves between {low:.3g} and {high:.3g} rad, which fits {by} only when negated"
    who = [view.names[j] for j in joints]
    view.blamed.update(joints)
    return [make_finding("joint_sign", level, text, signal="joint_pos", joints=who, score=0.8)]


def check_limits(view: LogView) -> list[Finding]:
    """Report positions, speeds and torques beyond the robot's limits, and commands beyond them."""
    if view.reference is None:
        return []
    ref = view.reference
    still = 0.005 + 4 * np.hypot(view.noise, view.quantum)
    found = _outside(view, "joint_pos", view.pos, ref.position_low, ref.position_high, still)
    if view.vel is not None:
        found += _outside(
            view, "joint_vel", view.vel, -ref.velocity_limit, ref.velocity_limit, 0.05 * ref.velocity_limit
        )
    if view.torque is not None:
        found += _outside(
            view, "joint_torque", view.torque, -ref.torque_limit, ref.torque_limit, 0.05 * ref.torque_limit
        )
    if view.target is not None:
        found += _outside(
            view, "target_pos", view.target, ref.position_low, ref.position_high, np.full_like(still, 0.005)
        )
    return found


def _outside(
    view: LogView, signal: str, values: FloatArray, low: FloatArray, high: FloatArray, room: FloatArray
) -> list[Finding]:
    """Report columns that leave [low, high] by more than `room` in more than a few rows."""
    excess = np.maximum(values - high, low - values)
    rows = np.count_nonzero(excess > room, axis=0)
    least = max(3, round(0.001 * view.rows))  # a single noisy reading is no motion beyond a limit
    bad = [j for j in view.fair if rows[j] >= least]
    if not bad:
        return []
    j = max(bad, key=lambda k: float(excess[:, k].max()))
    top, share = float(excess[:, j].max()), float(rows[j] / view.rows)
    text = f"{view.names[j]} is beyond its limit by up to {top:.3g} {SIGNALS[signal][1]}, in {share:.1%} of the rows"
    code, level = _severity(signal, top, share)
    who = [view.names[k] for k in bad]
    numbers = {"excess": top, "share": share}
    return [
        make_finding(code, level, text, signal=signal, joints=who, score=0.4 + share / 2, numbers=numbers)
    ]


def _severity(signal: str, top: float, share: float) -> tuple[str, Level]:
    if signal == "target_pos":
        return "target_outside_limits", "note"
    if signal == "joint_pos" and (top > 0.5 or share > 0.2):
        return "limits_exceeded", "error"
    return "limits_exceeded", "warning"
