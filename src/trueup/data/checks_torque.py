"""Checks of the torque column against the servo that made it: a lost sign, a wrong sign."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trueup.data.finding import Finding, make_finding
from trueup.data.view import FloatArray, LogView, smooth

FEWEST_ROWS, MOST_ROWS = 60, 3000


def check_torque_magnitude(view: LogView) -> list[Finding]:
    """Report torque that has lost its sign."""
    if view.torque is None:
        return []
    alive = [j for j in view.fair if np.ptp(view.torque[:, j]) > 0]
    movers = [j for j in alive if view.moving[j]]
    up = [j for j in alive if view.torque[:, j].min() >= -1e-9]
    # gravity can load one joint one way; three or more, standing and moving ones, only when the sign is lost
    if movers and len(up) == len(alive) and (len(alive) >= 3 or all(_folded(view, j) for j in movers)):
        high = float(view.torque[:, alive].max())
        text = (
            f"torque is never negative and reaches {high:.3g} N m in all {len(alive)} joint(s) that have any, "
            f"although they move both ways: a magnitude"
        )
        who = [view.names[j] for j in alive]
        return [
            make_finding(
                "torque_unsigned",
                "warning",
                text,
                signal="joint_torque",
                joints=who,
                score=0.7,
                numbers={"high": high},
            )
        ]
    return []


class Pull(NamedTuple):
    """Torque fitted as gain * error + damping * speed + rest: shares explained by a servo, and by one turned round."""

    servo: float
    turned: float
    gain: float


def _pull(view: LogView, j: int, torque: FloatArray) -> Pull:
    """Fit a joint's torque at lags of up to a control step and two rows, and keep the best of either sign."""
    assert view.target is not None
    speed = np.gradient(smooth(view.pos[:, j : j + 1], max(1, round(0.005 / view.dt)))[:, 0]) / view.dt
    lags = sorted({0, 1, 2, 3, view.hold, view.hold + 2})
    rows = np.arange(lags[-1], view.rows, max(1, view.rows // MOST_ROWS))
    answer = torque[rows] - torque[rows].mean()
    best = {True: (0.0, 0.0), False: (0.0, 0.0)}
    for lag in lags:
        states = np.stack([view.target[rows - lag, j] - view.pos[rows, j], speed[rows]], axis=1)
        states -= states.mean(axis=0)
        gains = np.linalg.lstsq(states, answer, rcond=None)[0]
        explained = 1 - float(np.var(answer - states @ gains)) / max(float(np.var(answer)), 1e-12)
        turned = bool(gains[0] < 0)
        best[turned] = max(best[turned], (explained, float(gains[0])))
    return Pull(best[False][0], best[True][0], best[True][1])


def _folded(view: LogView, j: int) -> bool:
    """Whether a one-sided torque becomes a servo's torque once it gets the sign of the servo's error."""
    assert view.torque is not None
    if view.target is None or view.rows < FEWEST_ROWS or np.ptp(view.target[:, j]) <= 0:
        return False
    size = np.abs(view.torque[:, j])
    near_zero = float(np.mean(size < 0.05 * np.percentile(size, 99)))
    folded = max(_pull(view, j, size)[:2])
    restored = max(
        _pull(view, j, size * np.sign(np.roll(view.target[:, j], lag) - view.pos[:, j])).servo
        for lag in (0, 1, 2)
    )
    return near_zero > 0.005 and restored > max(0.5, folded + 0.15)


def check_torque_sign(view: LogView) -> list[Finding]:
    """Report torque that points away from the command."""
    if view.target is None or view.torque is None or view.rows < FEWEST_ROWS:
        return []
    bad = {}
    for j in view.fair:
        two_sided = view.torque[:, j].min() < 0 < view.torque[:, j].max()
        if not (view.moving[j] and two_sided and np.ptp(view.target[:, j]) > 0):
            continue
        pull = _pull(view, j, view.torque[:, j])
        if pull.turned > max(0.6, pull.servo + 0.15):
            bad[j] = pull
    if not bad:
        return []
    j, worst = max(bad.items(), key=lambda item: item[1].turned)
    text = (
        f"torque of {view.names[j]} follows the servo's error with a gain of {worst.gain:.3g} N m/rad "
        f"({worst.turned:.0%} explained): it points away from the command"
    )
    who = [view.names[k] for k in sorted(bad)]
    numbers = {"gain": worst.gain, "explained": worst.turned}
    return [
        make_finding(
            "torque_sign", "warning", text, signal="joint_torque", joints=who, score=0.6, numbers=numbers
        )
    ]
