"""Lag between a command and the robot's response.

Row t holds the state at t and the command in force from t on, so the robot answers to a command after its row. Each
joint is fitted with a servo that hears its command late by a lag d (in rows, fractions allowed),

    ddq = a q*(t - d) - k q - b dq - c tanh(dq / v) + e        or, where torque is logged,
    tau = a q*(t - d) - k q - b dq + e,

and the d with the smallest residual is its lag. Both sides pass the same low-pass, which leaves d unchanged, and are
projected on past and coming commands (two-stage least squares with the commands as instruments): encoder noise, which
would bias a plain fit towards negative lags, is not caused by commands and drops out. Each joint votes; the agreement
of the votes is the confidence.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trueup.core.arrays import FloatArray
from trueup.data.check.view import LogView, smooth

SLOWEST_DYNAMICS_S = 0.03  # slower rows alias what a servo does; derivatives say nothing
FEWEST_ROWS, FEWEST_CHANGES, REGULAR_SHARE = 60, 2, 0.8
FEWEST_VOTES, FEWEST_PARTS = 3, 2
FEWEST_SHARE = {
    "torque": 0.4,
    "acceleration": 0.6,
}  # with fewer estimates, those are often wrong
ENOUGH_ROWS = 6000  # enter the fit, evenly spread
STEP = 0.25  # rows between the lags tried
# half-widths of the low-pass in rows; differences over rows need two at least, torque is read at an instant
WIDTHS = {"torque": (0, 1, 2, 4, 8, 16), "acceleration": (2, 4, 8, 16, 32)}
GOOD, ENOUGH = 0.998, 0.8  # share of the answer's variance that stops the search, and that a vote needs
WIDEST_S = 0.04  # a wider low-pass leaves only the slow motion, where friction passes for a lag
SLACK = {"torque": 1.2, "acceleration": 2.0}  # gravity and neighbours stiffen a joint, not its servo's torque
CONTRAST = 1.5  # residual elsewhere against the best
SURE = 16.0  # and by how many variances of the noise it is larger: four standard deviations
FASTEST_SERVO = 0.7  # natural frequency times row time: nine rows a swing
CONTRAST_ACAUSAL = 1.25  # residual of the best causal lag against an acausal best, for a vote that counts
REACH_S = 0.045  # lags tried either way, at least
MEMORY_S, MOST_CAUSES = 0.3, 12  # commands up to this old explain a state; so many of them are enough
CLEAR_S = 0.010  # "elsewhere" begins this far from the best lag


class LagFit(NamedTuple):
    """Lag of one joint in one part.

    lag      rows
    quality  share explained of what the commands caused
    alone    whether no lag far from it explains nearly as much
    acausal  residual of the best lag that is not negative, in residuals of this one
    brake_s  damping over stiffness of the fitted servo: how far it trails a ramp
    stiff    whether the servo swings within a few rows: differences over rows then blur the lag by about a row
    """

    lag: float
    quality: float
    alone: bool
    acausal: float
    brake_s: float
    stiff: bool


class Lag(NamedTuple):
    """Lag of the response in rows, over all votes.

    rows     median lag; negative is acausal
    error    standard error of the median from the spread of the votes
    before   share of votes that no lag of zero or more explains nearly as well
    votes    number of joints (and halves of the log) with an estimate
    source   "torque" or "acceleration"
    brake_s  median over the votes
    stiff    whether votes of stiff servos had to be counted
    """

    rows: float
    error: float
    before: float
    votes: int
    source: str
    brake_s: float
    stiff: bool


def command_lag(view: LogView) -> Lag | None:
    """Estimate the lag between command and response, None when the log does not show it."""
    by_torque = _vote(view, "torque") if view.torque is not None else None
    return by_torque or _vote(view, "acceleration")


def _vote(view: LogView, source: str) -> Lag | None:
    """One vote a joint on the whole log; a robot of few joints also votes on halves and thirds."""
    joints = [j for j in view.fair if view.moving[j]]
    if view.target is None or view.rows < FEWEST_ROWS or not joints or np.mean(view.regular) < REGULAR_SHARE:
        return None
    parts = [slice(0, view.rows)]
    if len(joints) < FEWEST_VOTES:
        parts += [slice(k * view.rows // n, (k + 1) * view.rows // n) for n in (2, 3) for k in range(n)]
    fits = [_joint_lag(view, j, part, source) for j in joints for part in parts]
    every = [fit for fit in fits if fit is not None]
    sharp = [fit for fit in every if not fit.stiff]
    needed = max(FEWEST_VOTES, FEWEST_SHARE[source] * len(fits))
    if len(parts) > 1 and any(fit is not None for fit in fits[:: len(parts)]):
        needed = FEWEST_PARTS  # short parts need no vote when the whole log has one
    votes = sharp if len(sharp) >= needed else every
    if len(votes) < needed:
        return None
    lags = np.array([fit.lag for fit in votes])
    before = float(np.mean([fit.lag < 0 and fit.acausal > CONTRAST_ACAUSAL for fit in votes]))
    median = float(np.median(lags))
    error = 1.4826 * float(np.median(np.abs(lags - median))) / float(np.sqrt(len(lags)))
    brake_s = float(np.median([fit.brake_s for fit in votes]))
    return Lag(median, max(error, STEP / 4), before, len(votes), source, brake_s, votes is every)


def _joint_lag(view: LogView, j: int, part: slice, source: str) -> LagFit | None:
    """Best lag of one joint in one part, None when the fit is too poor or too flat."""
    assert view.target is not None
    command = view.target[part, j]
    if np.ptp(command) < max(0.02, 10 * view.noise[j]) or np.count_nonzero(np.diff(command)) < FEWEST_CHANGES:
        return None
    best: LagFit | None = None
    # the low-pass behind which the servo explains most: narrower ones let noise in, wider ones only leave friction
    for half in WIDTHS[source]:
        if (half > 2 and half * view.dt > WIDEST_S) or (best is not None and best.alone and best.quality > GOOD):
            break
        fit = _fit(view, j, part, half, source)
        if fit is not None and (best is None or (fit.alone, fit.quality) > (best.alone, best.quality + 0.002)):
            best = fit
    return best if best is not None and best.quality >= ENOUGH and best.alone else None


def _fit(view: LogView, j: int, part: slice, half: int, source: str) -> LagFit | None:
    """Fit one joint in one part behind a low-pass of half-width `half` rows."""
    assert view.target is not None
    is_torque = source == "torque"
    pos, u = (smooth(x[part, j : j + 1], half)[:, 0] for x in (view.pos, view.target))
    reach = round(REACH_S / view.dt)
    early, late = max(2 * view.hold + 8, reach), max(2 * view.hold + 8, 20, reach)
    memory = late + min(round(MEMORY_S / view.dt), len(pos) // 6)
    keep = np.arange(memory + half + 3, len(pos) - early - half - 3, max(1, len(pos) // ENOUGH_ROWS))
    if is_torque and view.reference is not None and view.torque is not None:
        # at its limit a drive no longer follows the command
        keep = keep[np.abs(view.torque[part, j][keep]) < 0.9 * view.reference.torque_limit[j]]
    if len(keep) < 40:
        return None
    shifts = np.arange(-early - 2, late + 3)
    lags = np.arange(-early, late + 0.01, 1.0 if is_torque else STEP)
    rows = shifts[:, None].astype(np.float64)
    weights = (rows == lags).astype(np.float64) if is_torque else _triangle(rows, lags)
    commands = _centred(u[keep[:, None] - shifts])
    answer, states = (_centred(x[keep]) for x in _equation(view, j, part, pos, half, source))
    causes = np.unique(np.linspace(-early, memory, min(MOST_CAUSES, len(keep) // 5)).round().astype(int))
    basis, _ = np.linalg.qr(_centred(u[keep[:, None] - causes]))
    # seen through the commands: what the commands cannot have caused, encoder noise first of all, drops out
    solved = _solve(basis.T @ answer, basis.T @ states, (basis.T @ commands) @ weights, SLACK[source])
    if solved is None or (is_torque and not view.is_gain(j, solved.gain, 2.0)):
        return None
    k, residual = solved.best, solved.residual
    rest = answer - states @ solved.others - commands @ weights[:, k] * solved.gain
    # the low-pass correlates neighbours: the effective number of rows is smaller
    noise = float(np.mean(rest**2)) * (1.0 + half)
    least, causal = max(float(residual[k]), 1e-300), float(residual[lags >= 0].min())
    away = float(residual[np.abs(lags - lags[k]) >= max(3.0, CLEAR_S / view.dt)].min(initial=np.inf))
    stiffness, damping = -float(solved.others[0]), -float(solved.others[1])
    return LagFit(
        lag=float(lags[k]),
        quality=1.0 - least / solved.around,
        # far away every residual is larger, visibly and beyond the noise, else a periodic command fools the fit
        alone=away > max(CONTRAST * least, least + SURE * noise) and 0 < k < len(lags) - 1,
        acausal=causal / least if causal > least + SURE * noise else 1.0,
        brake_s=damping / stiffness,
        stiff=not is_torque and float(np.sqrt(stiffness)) * view.dt > FASTEST_SERVO,
    )


def _centred(values: FloatArray) -> FloatArray:
    return np.asarray(values - values.mean(axis=0), np.float64)


def _equation(
    view: LogView, j: int, part: slice, pos: FloatArray, half: int, source: str
) -> tuple[FloatArray, FloatArray]:
    """Left side and the regressors other than the command; row t belongs to time t."""
    speed = np.gradient(pos) / view.dt
    others = [pos, speed]
    if source == "torque":
        assert view.torque is not None
        # what the servo damps with, if logged: a difference over two rows is too slow for a stiff one
        if view.vel is not None:
            others[1] = smooth(view.vel[part, j : j + 1], half)[:, 0]
        return smooth(view.torque[part, j : j + 1], half)[:, 0], np.stack(others, axis=1)
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


class Solved(NamedTuple):
    """The best physical lag of a fit.

    best      index of the lag
    gain      of the command
    others    of the states
    residual  (nlag,) sum of squares left
    around    sum of squares before
    """

    best: int
    gain: float
    others: FloatArray
    residual: FloatArray
    around: float


def _solve(answer: FloatArray, states: FloatArray, heard: FloatArray, slack: float) -> Solved | None:
    """Fit every lag (a column of `heard`) at once and keep the best one that is physical.

    The states are projected out once, so that a lag costs two dot products. Physical: the servo pulls towards its
    command (a > 0), as hard as the position pulls back (k within a factor `slack` of a), and brakes (b > 0).
    """
    scale = np.maximum(np.linalg.norm(states, axis=0), 1e-12)
    basis, upper = np.linalg.qr(states / scale)
    if np.abs(np.diag(upper)).min() < 1e-6:
        return None
    along_y, along_x = basis.T @ answer, basis.T @ heard
    y, x = answer - basis @ along_y, heard - basis @ along_x
    power = np.sum(x**2, axis=0)
    gain = (x.T @ y) / np.maximum(power, 1e-9 * power.max() + 1e-300)
    others = np.linalg.solve(upper, along_y[:, None] - along_x * gain) / scale[:, None]
    stiffness, damping = -others[0], -others[1]
    physical = (gain > 0) & (stiffness > gain / slack) & (stiffness < gain * slack) & (damping > 0)
    residual = float(y @ y) - gain**2 * power
    around = float(np.sum(answer**2))
    if not physical.any() or around <= 0:
        return None
    k = int(np.argmin(np.where(physical, residual, np.inf)))
    return Solved(k, float(gain[k]), others[:, k], residual, around)
