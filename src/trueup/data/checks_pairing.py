"""Are commands paired with the states they caused? Causality tells.

Row t holds the state at t and the command in force from t on, so the robot answers to a command after its row. Each
joint is fitted with a servo that hears its command late by a lag d (in rows, fractions allowed),

    ddq = a q*(t - d) - k q - b dq - c tanh(dq / v) + e        or, where torque is logged,
    tau = a q*(t - d) - k q - b dq + e,

and the d with the smallest residual is its lag. Both sides of the first form pass the same low-pass, which leaves d
unchanged and keeps encoder noise out of the second difference. A negative lag is an answer before the question: the
commands were written down late. Joints and parts of the log vote, and their agreement is the confidence.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from trueup.data.finding import Finding, make_finding
from trueup.data.view import FloatArray, LogView, smooth

PARTS = (4, 2, 1)  # of the log, each votes for itself; fewer when a part is too short or narrow to tell
FEWEST_VOTES, FEWEST_SHARE = 3, 0.4  # when most joints cannot tell, those that can are often misled
MAX_PART_ROWS = 8000
ENOUGH_ROWS = 1200  # of a part enter the fit, evenly spread
STEP = 0.25  # rows between the lags tried
WIDTHS = (0, 1, 2, 4, 8, 16, 32)
GOOD, ENOUGH = 0.9, 0.7  # share of the answer's variance that stops the search, and that a vote needs
WIDEST_S = 0.04  # a wider low-pass leaves only the slow motion, where friction passes for a lag
CONTRAST = 1.5  # residual elsewhere against the best
# friction and sensor lag bias the estimate by up to a quarter of a row, or a millisecond at high rates
ACAUSAL_ROWS, ACAUSAL_S = 0.4, 0.0015
LONG_ROWS, LONG_S = 3.2, 0.021
REACH_S = 0.045  # lags tried either way, at least
CLEAR_S = 0.010  # "elsewhere" begins this far from the best lag


class Fit(NamedTuple):
    """Lag of one joint in one part: rows, share of the answer's variance explained, whether it stands alone."""

    lag: float
    quality: float
    alone: bool


@dataclass(frozen=True)
class Lag:
    """How many rows after its command the robot answers, over all votes.

    rows     median lag; negative is acausal
    error    standard error of the median from the spread of the votes
    before   share of votes for an answer clearly before the command
    votes    number of (joint, part) estimates
    source   "torque" or "acceleration"
    """

    rows: float
    error: float
    before: float
    votes: int
    source: str


def command_lag(view: LogView) -> Lag | None:
    """Estimate the lag between command and answer, None when the log does not tell."""
    by_torque = _vote(view, "torque") if view.torque is not None else None
    return by_torque or _vote(view, "acceleration")


def _vote(view: LogView, source: str) -> Lag | None:
    if view.target is None or view.rows < 60:
        return None
    for parts in PARTS:
        asked, votes = _votes(view, source, parts)
        if len(votes) >= max(FEWEST_VOTES, FEWEST_SHARE * asked):
            median = float(np.median(votes))
            error = 1.4826 * float(np.median(np.abs(votes - median))) / float(np.sqrt(len(votes)))
            before = float(np.mean(votes < -0.2))
            return Lag(median, max(error, STEP / 4), before, len(votes), source)
    return None


def _votes(view: LogView, source: str, parts: int) -> tuple[int, FloatArray]:
    """How many (joint, part) pairs were asked, and the lags of those that could tell."""
    edges = np.linspace(0, view.rows, parts + 1).astype(int)
    votes: list[float | None] = []
    for start, end in zip(edges[:-1], edges[1:], strict=True):
        stop = min(end, start + MAX_PART_ROWS)
        if np.mean(view.regular[start : stop - 1]) < 0.9:
            continue
        joints = [j for j in view.fair if view.moving[j]]
        votes += [_joint_lag(view, j, slice(start, stop), source) for j in joints]
    return len(votes), np.array([vote for vote in votes if vote is not None], np.float64)


def _joint_lag(view: LogView, j: int, part: slice, source: str) -> float | None:
    """Best lag of one joint in one part, None when the fit is too poor or too flat to tell."""
    assert view.target is not None
    command = view.target[part, j]
    if np.ptp(command) < max(0.02, 10 * view.noise[j]) or np.count_nonzero(np.diff(command)) < 3:
        return None
    best: Fit | None = None
    # the narrowest low-pass that lets the servo model explain the answer; torque needs none
    for half in WIDTHS if source == "acceleration" else (0,):
        if half * view.dt > WIDEST_S:
            break
        fit = _fit(view, j, part, half, source)
        if fit is not None and (best is None or fit.quality > best.quality):
            best = fit
        if best is not None and best.quality > GOOD:
            break
    if best is None or best.quality < ENOUGH or not best.alone:
        return None
    return best.lag


def _fit(view: LogView, j: int, part: slice, half: int, source: str) -> Fit | None:
    """Fit one joint in one part behind a low-pass of half-width `half` rows."""
    assert view.target is not None
    reach = round(REACH_S / view.dt)
    early, late = max(2 * view.hold + 8, reach), max(2 * view.hold + 8, 20, reach)
    margin = late + half + 3
    pos, u = (smooth(x[part, j : j + 1], half)[:, 0] for x in (view.pos, view.target))
    if len(pos) < 2 * margin + 40:
        return None
    keep = np.arange(margin, len(pos) - margin, max(1, len(pos) // ENOUGH_ROWS))
    answer, states = _equation(view, j, part, pos, source)
    shifts = np.arange(-early - 2, late + 3)
    shifted = u[keep[:, None] - shifts]
    by_torque = source == "torque"
    lags = np.arange(-early, late + 0.01, 1.0 if by_torque else STEP)
    weights = (_nearest if by_torque else _triangle)(shifts[:, None], lags[None, :])
    clear = max(3.0, CLEAR_S / view.dt)
    return _best(answer[keep], states[keep], shifted, weights, lags, clear)


def _equation(view: LogView, j: int, part: slice, pos: FloatArray, source: str) -> tuple[FloatArray, FloatArray]:
    """Left side and the regressors other than the command; row t belongs to time t."""
    speed = np.gradient(pos) / view.dt
    others = [pos, speed, np.ones_like(pos)]
    if source == "torque":
        assert view.torque is not None
        return view.torque[part, j], np.stack(others, axis=1)
    others.append(np.tanh(speed / max(0.05, 0.05 * float(np.abs(speed).max()))))
    if view.target_vel is not None and np.ptp(view.target_vel[part, j]) > 0:
        others.append(view.target_vel[part, j])
    second = np.zeros_like(pos)
    second[1:-1] = (pos[2:] - 2 * pos[1:-1] + pos[:-2]) / view.dt**2
    return second, np.stack(others, axis=1)


def _triangle(shifts: FloatArray, lag: FloatArray) -> FloatArray:
    """Weights of u[t - s] in the mean of a held command around t, late by `lag`.

    A second difference is the mean of the acceleration over (t-1, t+1) with a triangular weight; the command of row
    s holds over [s, s+1). The weight is the integral of the triangle over that row, moved by the lag.
    """

    def area(x: FloatArray) -> FloatArray:  # integral of the unit triangle up to x
        x = np.clip(x, -1.0, 1.0)
        return np.where(x < 0, 0.5 * (x + 1) ** 2, 1 - 0.5 * (1 - x) ** 2)

    begin = -shifts + lag
    return np.asarray(area(begin + 1) - area(begin), np.float64)


def _nearest(shifts: FloatArray, lag: FloatArray) -> FloatArray:
    return np.asarray(shifts == lag, np.float64)


def _best(
    answer: FloatArray, states: FloatArray, shifted: FloatArray, weights: FloatArray, lags: FloatArray, clear: float
) -> Fit | None:
    """Fit every lag at once and keep the best one that is physical, good and alone.

    The states are projected out once, so that a lag costs two dot products. Physical: the servo pulls towards its
    command (a > 0), about as hard as the position pulls back (k within a factor of two of a), and brakes (b > 0).
    Alone: more than `clear` rows away every residual is visibly larger, else a periodic command fools the fit.
    """
    scale = np.maximum(np.linalg.norm(states, axis=0), 1e-12)
    basis, upper = np.linalg.qr(states / scale)
    if np.abs(np.diag(upper)).min() < 1e-6:
        return None
    along_y, along_x = basis.T @ answer, basis.T @ shifted
    y, x = answer - basis @ along_y, shifted - basis @ along_x
    power = np.sum(weights * ((x.T @ x) @ weights), axis=0)
    gain = (weights.T @ (x.T @ y)) / np.maximum(power, 1e-9 * power.max() + 1e-300)
    others = np.linalg.solve(upper, along_y[:, None] - (along_x @ weights) * gain) / scale[:, None]
    stiffness, damping = -others[0], -others[1]
    physical = (gain > 0) & (stiffness > 0.5 * gain) & (stiffness < 2.0 * gain) & (damping > 0)
    residual = float(y @ y) - gain**2 * power
    around = float(np.sum((answer - answer.mean()) ** 2))
    if not physical.any() or around <= 0:
        return None
    k = int(np.argmin(np.where(physical, residual, np.inf)))
    away = np.abs(lags - lags[k]) >= clear
    quality = 1.0 - residual[k] / around
    edge = k == 0 or k == len(lags) - 1
    alone = bool(residual[away].min(initial=np.inf) > CONTRAST * residual[k])
    return Fit(float(lags[k]), float(quality), alone and not edge)


def check_pairing(view: LogView, lag: Lag | None) -> list[Finding]:
    """Report commands that are answered before they are given, or suspiciously long after."""
    if lag is None:
        return []
    numbers = {
        "lag_rows": lag.rows,
        "lag_s": lag.rows * view.dt,
        "standard_error_rows": lag.error,
        "hold_rows": view.hold,
        "votes": lag.votes,
    }
    seen = (
        f"fitted on {lag.source}, the answer comes {lag.rows:+.2f} rows ({1e3 * lag.rows * view.dt:+.1f} ms) after its "
        f"command (standard error {lag.error:.2f} rows, {lag.votes} votes of joints and parts; a command lasts "
        f"{view.hold} rows)"
    )
    if lag.rows + 2 * lag.error < -max(ACAUSAL_ROWS, ACAUSAL_S / view.dt) and lag.before >= 0.75:
        steps = max(1, round(-lag.rows / view.hold + 0.3))
        text = f"{seen}: {lag.before:.0%} of the votes put it before the command, about {steps} control step(s) late"
        return [make_finding("command_late", "error", text, signal="target_pos", score=lag.before, numbers=numbers)]
    # more than a whole control step late, and more than a transport delay usually takes
    bound = max(1.05 * view.hold, LONG_ROWS, LONG_S / view.dt)
    if lag.rows - 2 * lag.error > bound:
        text = f"{seen}: more than one control step"
        return [make_finding("command_early", "warning", text, signal="target_pos", score=0.6, numbers=numbers)]
    return []
