"""The past of a replay as a learned servo saw it: measured motion and commands, at the net's own steps."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trueup.data.log import Log
from trueup.sim.batch import BatchSim
from trueup.sim.net_actuator import NetActuator

FloatArray = NDArray[np.float64]
Rows = NDArray[np.intp]


class Past(NamedTuple):
    """What was measured and commanded at `rate_hz`, (T, njoint) each; target_vel None: always zero."""

    rate_hz: float
    position: FloatArray
    velocity: FloatArray
    target: FloatArray
    target_vel: FloatArray | None


def prime_history(sim: BatchSim, log: Log, velocity: FloatArray, start: Rows) -> None:
    """Fill the history of the batch's net, if it has one, with what came before rows `start` of a log.

    velocity  (T, njoint) measured. Before the log's first row everything was as in that row.
    """
    if isinstance(sim.substep_model, NetActuator):
        rate = (len(log) - 1) / (log.time[-1] - log.time[0])
        asked = log.signals.get("target_vel")
        past = Past(rate, log["joint_pos"], velocity, log["target_pos"], asked)
        prime_from(sim, sim.substep_model, past, start, np.zeros_like(start))


def prime_from(sim: BatchSim, actuator: NetActuator, past: Past, start: Rows, first: Rows) -> None:
    """The same for rows of any arrays; `first` (nsim,) is the row before which nothing is known."""
    spec, rate = actuator.net.spec, past.rate_hz
    ages = actuator.every * sim.physics_dt * np.arange(spec.depth, 0, -1)
    rows = start[:, None] - ages * rate  # (nsim, depth), fractions of a row
    # a command that is on its way for the delay arrives in the middle of a physics step on average
    sent = rows[:, :, None] + (0.5 * sim.physics_dt - sim.delay[:, None, :]) * rate
    sent_rows = np.maximum(np.floor(sent + 1e-9).astype(np.intp), first[:, None, None])
    rows, joints = np.maximum(rows, first[:, None]), np.arange(spec.njoint)
    actuator.prime(
        sim,
        past.target[sent_rows, joints],
        _between(past.position, rows),
        _between(past.velocity, rows),
        None if past.target_vel is None else past.target_vel[sent_rows, joints],
    )


def _between(values: FloatArray, rows: FloatArray) -> FloatArray:
    """Values (T, n) at fractional rows (nsim, k), linear in between."""
    low = np.minimum(np.floor(rows).astype(np.intp), max(0, len(values) - 2))
    share = (rows - low)[..., None]
    out: FloatArray = (1 - share) * values[low] + share * values[np.minimum(low + 1, len(values) - 1)]
    return out
