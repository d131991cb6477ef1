"""Is the velocity column the derivative of the position column?

Position differences over m rows are compared with the velocity integrated over the same rows. Integration, unlike
differentiation, keeps encoder noise small; m grows until the motion stands well above it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trueup.data.check.finding import Finding, Level
from trueup.data.check.view import FloatArray, LogView, correlation, sliding_correlation, smooth

RELATED = 0.6  # correlation below which the columns have nothing to do with each other
SCALE = 1.35  # ratio of sizes that is still filtering, not a wrong unit
LARGE, FEWEST_LARGE = 1.06, 3  # a ratio that filtering cannot give, in so many joints alike
LATE_ROWS, LATE_S = 1.2, 0.025
FEWEST_ROWS = 100
STROKE_NAMES = ("grip", "jaw", "finger", "claw", "hand")


class Match(NamedTuple):
    """Velocity against position: correlation and size ratio at the best shift, that shift, and correlation without."""

    joint: int
    correlation: float
    ratio: float
    late_rows: float
    here: float


def check_velocity(view: LogView) -> list[Finding]:
    """Report velocity columns of a wrong sign, scale, delay or joint."""
    if view.vel is None or view.rows < FEWEST_ROWS:
        return []
    span = _span(view)
    moved = _differences(view.pos, span)
    area = np.cumsum((view.vel[1:] + view.vel[:-1]) / 2 * view.dt, axis=0)
    summed = _differences(np.concatenate([np.zeros((1, area.shape[1])), area]), span)
    joints = [j for j in view.fair if _tells(view, moved[:, j], j)]
    matches = [_match(j, moved[:, j], summed[:, j], view.dt) for j in joints]
    swapped = _swapped(matches, moved, summed)
    matches = [m for m in matches if m.joint not in swapped]
    return (
        _order(view, swapped)
        + _sign(view, matches)
        + _unrelated(view, matches)
        + (_scale(view, matches) or _all_large(view, matches))
        + _late(view, matches)
    )


def _span(view: LogView) -> int:
    """Rows to integrate over: about 60 ms, at least two rows."""
    return int(min(max(2, round(0.06 / view.dt)), max(2, view.rows // 8)))


def _differences(values: FloatArray, span: int) -> FloatArray:
    return values[span:] - values[:-span]


def _tells(view: LogView, moved: FloatArray, j: int) -> bool:
    """Whether the joint moves enough between two rows of the span to judge its velocity."""
    floor = np.hypot(view.noise[j], view.quantum[j])
    return len(moved) >= 40 and float(np.std(moved)) > 6 * floor and float(np.std(moved)) > 0.002


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


def _order(view: LogView, swapped: dict[int, int]) -> list[Finding]:
    if not swapped:
        return []
    pairs = ", ".join(f"{view.names[j]} moves as the velocity of {view.names[k]} says" for j, k in swapped.items())
    return [view.finding("velocity_order", "error", pairs, "joint_vel", swapped, score=0.85)]


def _report(
    view: LogView, code: str, matches: list[Match], text: str, score: float, severe: bool = True
) -> list[Finding]:
    worst = max(
        matches, key=lambda m: abs(np.log(max(m.ratio, 1e-9))) if code == "velocity_scale" else abs(m.late_rows)
    )
    numbers = {"correlation": worst.correlation, "ratio": worst.ratio, "late_s": worst.late_rows * view.dt}
    level: Level = "error" if severe else "warning"
    return [view.finding(code, level, text, "joint_vel", [m.joint for m in matches], score=score, numbers=numbers)]


def _sign(view: LogView, matches: list[Match]) -> list[Finding]:
    bad = [m for m in matches if m.correlation < -RELATED]
    if not bad:
        return []
    text = f"velocity falls where position rises: correlation {bad[0].correlation:.2f} with the position's derivative"
    return _report(view, "velocity_sign", bad, text, 0.9)


def _unrelated(view: LogView, matches: list[Match]) -> list[Finding]:
    bad = [m for m in matches if abs(m.correlation) <= RELATED]
    if not bad:
        return []
    text = f"correlation {bad[0].correlation:.2f} between velocity and the position's derivative at the best shift"
    return _report(view, "velocity_unrelated", bad, text, 0.6, severe=False)


def _scale(view: LogView, matches: list[Match]) -> list[Finding]:
    related = [m for m in matches if m.correlation > 0.85]
    bad = [m for m in related if not 1 / SCALE < m.ratio < SCALE]
    # a late, filtered velocity is also smaller; that is told once, as lag
    bad = [m for m in bad if not (m.ratio < 1 and _is_late(view, m))]
    stroke = [m for m in bad if _is_stroke(view, m)]
    found = []
    for m in stroke:
        low, high = float(view.pos[:, m.joint].min()), float(view.pos[:, m.joint].max())
        text = (
            f"{view.names[m.joint]} stays between {low:.3g} and {high:.3g} "
            f"while its velocity is {m.ratio:.2f} times the derivative: a stroke of 0..1 for about {m.ratio:.2f} rad"
        )
        numbers = {"stroke_rad": m.ratio}
        found.append(
            view.finding("unit_normalised", "warning", text, "joint_pos", [m.joint], score=0.5, numbers=numbers)
        )
    bad = [m for m in bad if m not in stroke]
    if bad:
        worst = max(bad, key=lambda m: abs(np.log(max(m.ratio, 1e-9))))
        times = f"{worst.ratio:.3g} times{_guess(worst.ratio)}"
        text = f"velocity is {times} the derivative of the position in {view.names[worst.joint]}"
        found += _report(view, "velocity_scale", bad, text, 0.7, severe=not 0.5 < worst.ratio < 2)
    return found


def _all_large(view: LogView, matches: list[Match]) -> list[Finding]:
    """Velocities a little too large in nearly all joints: no filter makes them larger, a wrong scale or clock does."""
    clear = [m for m in matches if m.correlation > 0.95 and not _is_late(view, m)]
    large = [m for m in clear if LARGE < m.ratio < SCALE]
    if len(large) < FEWEST_LARGE or len(large) < 0.75 * len(clear):
        return []
    low, high = min(m.ratio for m in large), max(m.ratio for m in large)
    text = (
        f"velocity is {low:.2f} to {high:.2f} times the derivative of the position in {len(large)} of {len(clear)} "
        "joints, in slow motion too: it reads high, or the rows are farther apart in time than they say"
    )
    return _report(view, "velocity_scale", large, text, 0.6, severe=False)


def _is_stroke(view: LogView, m: Match) -> bool:
    """Whether the position looks like a gripper's 0..1: inside that range, and named like one."""
    pos = view.pos[:, m.joint]
    named = any(word in view.names[m.joint].lower() for word in STROKE_NAMES)
    return named and m.ratio > 1 and float(pos.min()) > -0.05 and float(pos.max()) < 1.05


def _guess(ratio: float) -> str:
    known = {"deg/s": 57.2958, "rpm": 9.5493, "turns/s": 1 / (2 * np.pi)}
    for name, factor in known.items():
        if 1 / 1.15 < ratio / factor < 1.15:
            return f" (it may be in {name})"
    return ""


def _is_late(view: LogView, m: Match) -> bool:
    return abs(m.late_rows) > max(LATE_ROWS, LATE_S / view.dt) and m.correlation > RELATED


def _late(view: LogView, matches: list[Match]) -> list[Finding]:
    bad = [m for m in matches if _is_late(view, m)]
    if not bad:
        return []
    late = float(np.median([m.late_rows for m in bad]))
    text = (
        f"velocity comes {late:+.1f} rows ({1e3 * late * view.dt:+.0f} ms) after the derivative of the position, "
        f"at {np.median([m.ratio for m in bad]):.2f} of its size"
    )
    return _report(view, "velocity_lag", bad, text, 0.5, severe=False)
