"""Checks by causality whether commands are paired with the states that they caused.

A negative lag is a response before its command: the commands were recorded late. A long positive lag is a long
delay, or commands recorded early. A lag in between cannot be distinguished from the robot's delay: one row of
shift in a log with a new command every row stays unseen when the robot's own delay is longer than a row.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from trueup.data.check.finding import Finding, make_finding
from trueup.data.check.view import LogView
from trueup.data.lag import FEWEST_CHANGES, FEWEST_ROWS, REGULAR_SHARE, SLOWEST_DYNAMICS_S, Lag

AGREEMENT = 0.75  # share of the votes
LONG_ROWS, LONG_S = 3.2, 0.021  # more than a transport delay usually takes


def check_pairing(view: LogView, lag: Lag | None) -> Iterator[Finding]:
    """Report commands whose response comes before them or suspiciously late; or that the log does not show it."""
    if lag is None:
        if view.target is not None:
            text = f"no verdict on pairing is possible because {_why(view)}"
            yield make_finding("pairing_unknown", "note", text, "target_pos", score=0.4)
        return
    numbers = {
        "lag_rows": lag.rows,
        "lag_s": lag.rows * view.dt,
        "standard_error_rows": lag.error,
        "hold_rows": view.hold,
        "votes": lag.votes,
    }
    seen = (
        f"fitted on {lag.source}, the answer comes {lag.rows:+.2f} rows ({1e3 * lag.rows * view.dt:+.1f} ms) after its "
        f"command (standard error {lag.error:.2f} rows, {lag.votes} votes; a command lasts "
        f"{view.hold} rows)"
    )
    # friction and coupling between joints pass for a little braking less, so bias the lag by a part of it; torque
    # knows neither. Measured on simulated robots with known delay
    if lag.source == "torque":
        least = max(0.4, 0.0015 / view.dt)
    else:
        least = max(1.3 if lag.stiff else 0.8, 0.0035 / view.dt, 0.12 * lag.brake_s / view.dt)
    if lag.rows + 2 * lag.error < -least and lag.before >= AGREEMENT:
        steps = max(1, round(-lag.rows / view.hold + 0.3))
        text = f"{seen}: {lag.before:.0%} of the votes put it before the command, about {steps} control step(s) late"
        yield make_finding("command_late", "error", text, "target_pos", score=lag.before, **numbers)
    elif lag.rows - 2 * lag.error > max(1.05 * view.hold, LONG_ROWS, LONG_S / view.dt):
        text = f"{seen}: more than one control step"
        yield make_finding("command_early", "warning", text, "target_pos", score=0.6, **numbers)


def _why(view: LogView) -> str:
    """The reason why a log does not show the lag of its commands."""
    assert view.target is not None
    movers = [j for j in view.fair if view.moving[j]]
    if view.dt > SLOWEST_DYNAMICS_S:
        return f"rows are {1e3 * view.dt:.3g} ms apart and a servo answers within one of them"
    if view.rows < FEWEST_ROWS:
        return f"{view.rows} rows are too few"
    if np.mean(view.regular) < REGULAR_SHARE:
        return "rows do not come at regular times"
    if not movers:
        return "no joint with trustworthy columns moves visibly"
    if not any(np.count_nonzero(np.diff(view.target[:, j])) >= FEWEST_CHANGES for j in movers):
        return "the commands of the joints that move do not change"
    torque = "" if view.torque is not None else " and no torque is logged"
    return f"the motion of {len(movers)} moving joint(s) fits several lags alike{torque}"
