"""Checks that the velocity column is the derivative of the position column.

Position differences over m rows are compared with the velocity integrated over the same rows. Integration, unlike
differentiation, keeps encoder noise small; m grows until the motion stands well above it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from trueup.core.arrays import FloatArray
from trueup.data.check.finding import Finding, Level
from trueup.data.check.view import LogView, correlation, sliding_correlation, smooth

RELATED = 0.6  # correlation below which the columns have nothing to do with each other
SCALE = 1.35  # ratio of sizes that is still filtering, not a wrong unit
LARGE, FEWEST_LARGE = 1.06, 3  # a ratio that filtering cannot give, in so many joints alike
LATE_ROWS, LATE_S = 1.2, 0.025
FEWEST_ROWS = 100
UNITS = {"deg/s": 57.2958, "rpm": 9.5493, "turns/s": 1 / (2 * np.pi)}  # factors to rad/s
STROKE_NAMES = ("grip", "jaw", "finger", "claw", "hand")


class Match(NamedTuple):
    """Velocity against position: correlation and size ratio at the best shift, that shift, and correlation without."""

    joint: int
    correlation: float
    ratio: float
    late_rows: float
    here: float


def check_velocity(view: LogView) -> Iterator[Finding]:
    """Report velocity columns of a wrong sign, scale, delay or joint."""
    if view.vel is None or view.rows < FEWEST_ROWS:
        return
    span = int(min(max(2, round(0.06 / view.dt)), max(2, view.rows // 8)))  # rows to integrate over
    moved = view.pos[span:] - view.pos[:-span]
    area = np.cumsum((view.vel[1:] + view.vel[:-1]) / 2 * view.dt, axis=0)
    area = np.concatenate([np.zeros((1, area.shape[1])), area])
    summed = area[span:] - area[:-span]
    # joints that move enough between two rows of the span to judge their velocity
    least = np.maximum(6 * np.hypot(view.noise, view.quantum), 0.002)
    joints = [j for j in view.fair if len(moved) >= 40 and float(np.std(moved[:, j])) > least[j]]
    matches = [_match(j, moved[:, j], summed[:, j], view.dt) for j in joints]
    swapped = _swapped(matches, moved, summed)
    if swapped:
        text = ", ".join(f"{view.names[j]} moves as the velocity of {view.names[k]} says" for j, k in swapped.items())
        yield view.finding("velocity_order", "error", text, "joint_vel", swapped, score=0.85)
    matches = [m for m in matches if m.joint not in swapped]
    turned = [m for m in matches if m.correlation < -RELATED]
    if turned:
        how = f"correlation {turned[0].correlation:.2f} with the position's derivative"
        yield _report(view, "velocity_sign", "error", turned, f"velocity falls where position rises: {how}", 0.9)
    strange = [m for m in matches if abs(m.correlation) <= RELATED]
    if strange:
        text = (
            f"correlation {strange[0].correlation:.2f} between velocity and the position's derivative at the best shift"
        )
        yield _report(view, "velocity_unrelated", "warning", strange, text, 0.6)
    yield from _scale(view, matches)
    late = [m for m in matches if _is_late(view, m)]
    if late:
        rows, size = float(np.median([m.late_rows for m in late])), np.median([m.ratio for m in late])
        text = (
            f"velocity comes {rows:+.1f} rows ({1e3 * rows * view.dt:+.0f} ms) after the derivative of the position, "
            f"at {size:.2f} of its size"
        )
        yield _report(view, "velocity_lag", "warning", late, text, 0.5)


def _match(j: int, moved: FloatArray, summed: FloatArray, dt: float) -> Match:
    reach = int(min(max(3, round(0.15 / dt)), len(moved) // 4))
    half = max(1, round(0.05 / dt))
    shifts = np.arange(-reach, reach + 1)
    scores = sliding_correlation(moved[reach : len(moved) - reach], summed)
    here, k = float(scores[reach]), int(np.argmax(scores))
    # half a period of shift would mend a sign and must not count; nor does a shift that hardly improves anything
    if here < -RELATED or 1 - here < max(0.01, 2 * (1 - float(scores[k]))):
        return Match(j, here, _size(moved, summed, half), 0.0, here)
    late = float(shifts[k])
    if 0 < k < len(scores) - 1:
        left, mid, right = (float(x) for x in scores[k - 1 : k + 2])
        bend = left - 2 * mid + right
        late += 0.5 * (left - right) / bend if bend < 0 else 0.0
    return Match(j, float(scores[k]), _size(moved, summed, half), late, here)


def _size(moved: FloatArray, summed: FloatArray, half: int) -> float:
    """How many times larger the velocity is than the derivative of the position, in slow motion.

    A swing of a few rows is sampled too coarsely for its area to be right.
    """
    slow = smooth(np.stack([moved, summed], axis=1), half)
    return float(np.std(slow[:, 1])) / max(float(np.std(slow[:, 0])), 1e-12)


def _swapped(matches: list[Match], moved: FloatArray, summed: FloatArray) -> dict[int, int]:
    """Joints whose velocity is found, unshifted and in size, in another joint's column and not in their own."""
    poor = {m.joint: m.here for m in matches if m.here < 0.9}
    out: dict[int, int] = {}
    for j, own in poor.items():
        scores = [(correlation(moved[:, j], summed[:, k]), k) for k in range(summed.shape[1]) if k != j]
        best, k = max(scores, default=(0.0, -1))
        if k < 0 or k not in poor or not 1 / SCALE < _size(moved[:, j], summed[:, k], 1) < SCALE:
            continue
        if best > max(0.9, abs(own) + 0.02) and 1 - best < 0.3 * (1 - own):
            out[j] = k
    return out if len(out) > 1 and len(set(out.values())) == len(out) else {}


def _far(m: Match) -> float:
    """How far the size is from the derivative's, as a logarithm."""
    return abs(float(np.log(max(m.ratio, 1e-9))))


def _report(view: LogView, code: str, level: Level, matches: list[Match], text: str, score: float) -> Finding:
    worst = max(matches, key=_far if code == "velocity_scale" else lambda m: abs(m.late_rows))
    numbers = {"correlation": worst.correlation, "ratio": worst.ratio, "late_s": worst.late_rows * view.dt}
    return view.finding(code, level, text, "joint_vel", [m.joint for m in matches], score=score, **numbers)


def _scale(view: LogView, matches: list[Match]) -> Iterator[Finding]:
    # a late, filtered velocity is also smaller; that is reported once, as lag
    related = [m for m in matches if m.correlation > 0.85 and not (m.ratio < 1 and _is_late(view, m))]
    bad = [m for m in related if not 1 / SCALE < m.ratio < SCALE]
    stroke = [m for m in bad if _is_stroke(view, m)]
    for m in stroke:
        low, high = float(view.pos[:, m.joint].min()), float(view.pos[:, m.joint].max())
        text = (
            f"{view.names[m.joint]} stays between {low:.3g} and {high:.3g} "
            f"while its velocity is {m.ratio:.2f} times the derivative: a stroke of 0..1 for about {m.ratio:.2f} rad"
        )
        yield view.finding("unit_normalised", "warning", text, "joint_pos", [m.joint], score=0.5, stroke_rad=m.ratio)
    wrong = [m for m in bad if m not in stroke]
    if wrong:
        worst = max(wrong, key=_far)
        units = [name for name, factor in UNITS.items() if 1 / 1.15 < worst.ratio / factor < 1.15]
        times = f"{worst.ratio:.3g} times{f' (it may be in {units[0]})' if units else ''}"
        text = f"velocity is {times} the derivative of the position in {view.names[worst.joint]}"
        yield _report(view, "velocity_scale", "warning" if 0.5 < worst.ratio < 2 else "error", wrong, text, 0.7)
    # a little too large in nearly all joints: no filter makes velocities larger, a wrong scale or clock does
    clear = [m for m in matches if m.correlation > 0.95 and not _is_late(view, m)]
    large = [m for m in clear if LARGE < m.ratio < SCALE]
    if not bad and len(large) >= max(FEWEST_LARGE, 0.75 * len(clear)):
        low, high = min(m.ratio for m in large), max(m.ratio for m in large)
        text = (
            f"velocity is {low:.2f} to {high:.2f} times the derivative of the position in {len(large)} of {len(clear)} "
            "joints, in slow motion too: it reads high, or the rows are farther apart in time than they say"
        )
        yield _report(view, "velocity_scale", "warning", large, text, 0.6)


def _is_stroke(view: LogView, m: Match) -> bool:
    """Whether the position looks like a gripper's 0..1: inside that range, and named like one."""
    pos = view.pos[:, m.joint]
    named = any(word in view.names[m.joint].lower() for word in STROKE_NAMES)
    return named and m.ratio > 1 and float(pos.min()) > -0.05 and float(pos.max()) < 1.05


def _is_late(view: LogView, m: Match) -> bool:
    return abs(m.late_rows) > max(LATE_ROWS, LATE_S / view.dt) and m.correlation > RELATED
