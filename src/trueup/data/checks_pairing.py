"""Are commands paired with the states they caused? Causality tells.

A negative lag is an answer before the question: the commands were written down late. A long positive lag is a long
delay, or commands that were written down early. What lies between cannot be told from a delay of the robot: one row of
shift in a log with a new command every row stays unseen when the robot's own delay is longer than a row.
"""

from __future__ import annotations

from trueup.data.finding import Finding, make_finding
from trueup.data.lag import Lag
from trueup.data.view import LogView

AGREEMENT = 0.75  # share of the votes
LONG_ROWS, LONG_S = 3.2, 0.021  # more than a transport delay usually takes


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
        f"command (standard error {lag.error:.2f} rows, {lag.votes} votes; a command lasts "
        f"{view.hold} rows)"
    )
    # friction and coupling between joints pass for a little braking less, so bias the lag by a part of it; torque
    # knows neither. Measured on simulated robots with known delay
    if lag.source == "torque":
        least = max(0.4, 0.0015 / view.dt)
    else:
        least = max(0.8, 0.0035 / view.dt, 0.12 * lag.brake_s / view.dt)
    if lag.rows + 2 * lag.error < -least and lag.before >= AGREEMENT:
        steps = max(1, round(-lag.rows / view.hold + 0.3))
        text = f"{seen}: {lag.before:.0%} of the votes put it before the command, about {steps} control step(s) late"
        return [
            make_finding(
                "command_late", "error", text, signal="target_pos", score=lag.before, numbers=numbers
            )
        ]
    bound = max(1.05 * view.hold, LONG_ROWS, LONG_S / view.dt)
    if lag.rows - 2 * lag.error > bound:
        text = f"{seen}: more than one control step"
        return [
            make_finding("command_early", "warning", text, signal="target_pos", score=0.6, numbers=numbers)
        ]
    return []
