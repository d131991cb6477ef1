"""The past of a replay as a learned servo saw it: measured motion and commands, at the net's own steps."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trueup.world.actuators.net_actuator import NetActuator
from trueup.world.batch import BatchSim

FloatArray = NDArray[np.float64]
Rows = NDArray[np.intp]


class NetHistory(NamedTuple):
    """What was measured and commanded at `rate_hz`, (T, njoint) each; target_vel None: always zero.

    start  (nsim,) row at which each simulation begins
    first  (nsim,) row before which nothing is known: everything was as in it
    """

    rate_hz: float
    position: FloatArray
    velocity: FloatArray
    target: FloatArray
    target_vel: FloatArray | None
    start: Rows
    first: Rows


def prime_from(sim: BatchSim, actuator: NetActuator, past: NetHistory) -> None:
    """Fill the history of the batch's net with what came before."""
    spec, rate, first = actuator.net.spec, past.rate_hz, past.first
    ages = actuator.every * sim.physics_dt * np.arange(spec.depth, 0, -1)
    rows = past.start[:, None] - ages * rate  # (nsim, depth), fractions of a row
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
