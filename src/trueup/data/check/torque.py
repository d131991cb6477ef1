"""Checks of the torque column against the servo that made it: a lost sign, a wrong sign."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trueup.core.arrays import FloatArray
from trueup.data.check.finding import Finding
from trueup.data.check.view import LogView, smooth

FEWEST_ROWS, MOST_ROWS = 60, 3000
SIGN_ROUNDS = 5


def check_torque_magnitude(view: LogView) -> Iterator[Finding]:
    """Report torque that has lost its sign."""
    if view.torque is None:
        return
    alive = [j for j in view.fair if np.ptp(view.torque[:, j]) > 0]
    movers = [j for j in alive if view.moving[j]]
    is_positive = all(view.torque[:, j].min() >= -1e-9 for j in alive)
    # gravity can load one joint one way; three or more, standing and moving ones, only when the sign is lost
    if movers and is_positive and (len(alive) >= 3 or all(_folded(view, j) for j in movers)):
        high = float(view.torque[:, alive].max())
        text = (
            f"torque is never negative and reaches {high:.3g} N m in all {len(alive)} joint(s) that have any, "
            f"although they move both ways: a magnitude"
        )
        yield view.finding("torque_unsigned", "warning", text, "joint_torque", alive, score=0.7, high=high)


class Pull(NamedTuple):
    """Torque fitted as gain * error + damping * speed + offset: shares explained by a servo of either sign."""

    servo: float
    turned: float
    gain: float


def _servo_terms(view: LogView, j: int) -> Iterator[tuple[NDArray[np.intp], FloatArray]]:
    """Rows, and error, speed and one at these rows, for lags of up to a control step and two rows."""
    assert view.target is not None
    speed = np.gradient(smooth(view.pos[:, j : j + 1], max(1, round(0.005 / view.dt)))[:, 0]) / view.dt
    lags = sorted({0, 1, 2, 3, view.hold, view.hold + 2})
    rows = np.arange(lags[-1], view.rows, max(1, view.rows // MOST_ROWS))
    for lag in lags:
        error = view.target[rows - lag, j] - view.pos[rows, j]
        yield rows, np.stack([error, speed[rows], np.ones(len(rows))], axis=1)


def _explained(terms: FloatArray, torque: FloatArray) -> tuple[float, FloatArray]:
    """Share of the torque's variance that the terms explain, and their gains."""
    gains = np.linalg.lstsq(terms, torque, rcond=None)[0]
    rest = float(np.var(torque - terms @ gains))
    return 1 - rest / max(float(np.var(torque)), 1e-12), np.asarray(gains)


def _pull(view: LogView, j: int, torque: FloatArray) -> Pull:
    """Fit a joint's torque at several lags, and keep the best of either sign."""
    best = {True: (0.0, 0.0), False: (0.0, 0.0)}
    for rows, terms in _servo_terms(view, j):
        share, gains = _explained(terms, torque[rows])
        turned = bool(gains[0] < 0)
        best[turned] = max(best[turned], (share, float(gains[0])))
    return Pull(best[False][0], best[True][0], best[True][1])


def _better(first: float, other: float, rest: float) -> bool:
    """Whether one explanation is clearly better: by 0.15 of the whole, or by leaving only `rest` of its rest."""
    return first > other + 0.15 or 1 - first < rest * (1 - other)


def _folded(view: LogView, j: int) -> bool:
    """Whether a one-sided torque becomes a servo's torque once it gets the servo's sign."""
    assert view.torque is not None
    if view.target is None or view.rows < FEWEST_ROWS or np.ptp(view.target[:, j]) <= 0:
        return False
    size = np.abs(view.torque[:, j])
    near_zero = float(np.mean(size < 0.1 * np.percentile(size, 99)))
    folded, restored = max(_pull(view, j, size)[:2]), 0.0
    for rows, terms in _servo_terms(view, j):
        signed = terms[:, 0]
        for _ in range(SIGN_ROUNDS):  # the sign of the servo fitted last
            share, gains = _explained(terms, size[rows] * np.sign(signed))
            signed = terms @ gains
            restored = max(restored, share if gains[0] > 0 else 0.0)
    return near_zero > 0.005 and restored > 0.5 and _better(restored, folded, 0.6)


def check_torque_sign(view: LogView) -> Iterator[Finding]:
    """Report torque that points away from the command."""
    if view.target is None or view.torque is None or view.rows < FEWEST_ROWS:
        return
    bad: dict[int, Pull] = {}
    for j in view.fair:
        if view.moving[j] and np.ptp(view.torque[:, j]) > 0 and np.ptp(view.target[:, j]) > 0:
            pull = _pull(view, j, view.torque[:, j])
            if pull.turned > 0.6 and _better(pull.turned, pull.servo, 0.4) and view.is_gain(j, -pull.gain, 2.5):
                bad[j] = pull
    if bad:
        j, worst = max(bad.items(), key=lambda item: item[1].turned)
        text = (
            f"torque of {view.names[j]} follows the servo's error with a gain of {worst.gain:.3g} N m/rad "
            f"({worst.turned:.0%} explained): it points away from the command"
        )
        numbers = {"gain": worst.gain, "explained": worst.turned}
        yield view.finding("torque_sign", "warning", text, "joint_torque", sorted(bad), score=0.6, **numbers)
