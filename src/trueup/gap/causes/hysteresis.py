"""Friction with memory of the last hundredths of a radian: Dahl's model, dz/dt = v/s (1 - sign(v) z), tau = -T z."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trueup.core.arrays import FloatArray
from trueup.world.actuators.substep import SubstepModel, SubstepState
from trueup.world.batch import BatchSim

BEND_RAD = 0.05  # in which the torque turns round


class DahlFriction(SubstepModel):
    """Torque (nsim, njoint) N m that opposes motion, built up over BEND_RAD; z is -1 to 1."""

    def __init__(self, torque: FloatArray, bend_rad: float = BEND_RAD) -> None:
        self._torque, self._bend = torque, bend_rad
        self._z = np.zeros_like(torque)

    def reset(self, sim: BatchSim, ids: NDArray[np.intp] | None) -> None:
        """Begin fully bent in the direction of motion, as after a longer way that way."""
        rows = slice(None) if ids is None else ids
        self._z[rows] = np.tanh(sim.joint_vel[rows] / 0.2)

    def step(self, sim: BatchSim, state: SubstepState) -> FloatArray:
        """Advance z by one physics step, exactly for a constant speed."""
        way = state.joint_vel * sim.physics_dt / self._bend
        end = np.sign(way)
        self._z[:] = end + (self._z - end) * np.exp(-np.abs(way))
        return -self._torque * self._z

    def memory(self) -> dict[str, NDArray[np.generic]]:
        """The bend, live."""
        return {"z": self._z}
