"""The past of a replay as a learned servo saw it: measured motion and commands, at the net's own steps."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trueup.data.log import Log
from trueup.sim.batch import BatchSim
from trueup.sim.net_actuator import NetActuator

FloatArray = NDArray[np.float64]


def prime_history(sim: BatchSim, log: Log, velocity: FloatArray, start: NDArray[np.intp]) -> None:
    """Fill the history of the batch's net, if it has one, with what came before rows `start` of a log.

    velocity  (T, njoint) measured. Before the log's first row everything was as in that row.
    """
    actuator = sim.substep_model
    if not isinstance(actuator, NetActuator):
        return
    spec = actuator.net.spec
    dt = actuator.every * sim.physics_dt
    rate = (len(log) - 1) / (log.time[-1] - log.time[0])
    ages = dt * np.arange(spec.depth, 0, -1)
    rows = start[:, None] - ages * rate  # (nsim, depth), fractions of a row
    # a command that is on its way for the delay arrives in the middle of a physics step on average
    sent = rows[:, :, None] + (0.5 * sim.physics_dt - sim.delay[:, None, :]) * rate
    sent_rows = np.clip(np.floor(sent + 1e-9).astype(np.intp), 0, len(log) - 1)
    joints = np.arange(spec.njoint)
    actuator.prime(
        sim,
        log["target_pos"][sent_rows, joints],
        _between(log["joint_pos"], rows),
        _between(velocity, rows),
        log["target_vel"][sent_rows, joints] if "target_vel" in log else None,
    )


def _between(values: FloatArray, rows: FloatArray) -> FloatArray:
    """Values (T, n) at fractional rows (nsim, k), linear in between."""
    rows = np.clip(rows, 0, len(values) - 1)
    low = np.minimum(np.floor(rows).astype(np.intp), max(0, len(values) - 2))
    share = (rows - low)[..., None]
    out: FloatArray = (1 - share) * values[low] + share * values[np.minimum(low + 1, len(values) - 1)]
    return out
