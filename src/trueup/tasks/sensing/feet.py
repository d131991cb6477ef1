"""Feet: each foot's way through the air, how long and how high."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from trueup.world.engines.simulation import Simulation

if TYPE_CHECKING:
    from trueup.tasks.sensing.frame import Frame


class Feet:
    """Tracks the swing of each foot between touchdowns. Positions and contacts of now: `Simulation.feet`.

    What is followed is shown in a frame: touchdown, air_time, swing_peak, duty.
    """

    def __init__(self, sim: Simulation, frame: Frame) -> None:
        self._count = len(sim.robot.spec.feet) if sim.free_base else 0
        shape = (sim.nsim, self._count)
        self._floating = np.zeros(shape, np.bool_)  # in the air at the step before
        self._touchdown = frame.touchdown = np.zeros(shape, np.bool_)
        self._air_time = frame.air_time = np.zeros(shape, np.float32)
        self._swing_peak = frame.swing_peak = np.zeros(shape, np.float32)
        self._duty = frame.duty = np.ones(shape, np.float32)

    # --- through the air ---
    @property
    def memory(self) -> dict[str, NDArray[np.generic]]:
        """Live arrays for a checkpoint."""
        followed = {"air_time": self._air_time, "swing_peak": self._swing_peak, "duty": self._duty}
        return {**followed, "floating": self._floating}

    def follow(self, frame: Frame) -> None:
        """Follow the feet through the air: how long, and how high.

        A step ends when a foot that was in the air touches; its length and height stay readable in that frame.
        """
        if not self._count:
            return
        contact, dt = frame.foot_contact, np.float32(frame.dt)
        np.logical_and(contact, self._floating, out=self._touchdown)
        swings = self._floating | ~contact  # feet that touched before too have no step
        self._air_time += dt
        self._air_time *= swings
        np.maximum(self._swing_peak, frame.foot_height, out=self._swing_peak)
        self._swing_peak *= swings
        self._duty += dt * (contact - self._duty)  # forgets within a second
        np.logical_not(contact, out=self._floating)

    def reset(self, ids: NDArray[np.intp]) -> None:
        """Episodes of rows `ids` begin."""
        for followed in (self._air_time, self._swing_peak, self._floating, self._touchdown):
            followed[ids] = 0
        self._duty[ids] = 1.0
