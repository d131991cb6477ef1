"""Pushes: random horizontal forces on the base of the first robot, each held for a short time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trueup.core.arrays import Ids
from trueup.core.errors import TrueupError
from trueup.core.rows import RowRandom
from trueup.world.engines.simulation import Simulation


@dataclass(frozen=True, kw_only=True)
class PushCfg:
    """Forces up to `newton` in any direction, held for `seconds`, with a pause drawn from `every_s` in between."""

    newton: float = 80.0
    seconds: float = 0.2
    every_s: tuple[float, float] = (4.0, 8.0)

    def __post_init__(self) -> None:
        if self.newton < 0 or self.seconds <= 0 or not 0 < self.every_s[0] <= self.every_s[1]:
            raise TrueupError("a push needs newton >= 0, seconds > 0 and 0 < every_s[0] <= every_s[1]")


class Pushes:
    """Writes pushes into a simulation's external forces; call `reset` and `advance` with the episodes."""

    def __init__(self, sim: Simulation, cfg: PushCfg) -> None:
        self.cfg = cfg
        self.share = 1.0  # of the force
        self._dt = sim.control_dt
        self._force = sim.base_force[:, :2]
        self._random = RowRandom(sim.cfg.seed, "push", sim.nsim, sim.cfg.first_row)
        self._wait = np.zeros(sim.nsim, np.int64)  # control steps until the next push begins
        self._hold = round(cfg.seconds / sim.control_dt)

    def reset(self, ids: Ids) -> None:
        """Start an episode: no force, and a pause before the first push."""
        self._force[ids] = 0.0
        short, long = self.cfg.every_s
        pause = short + (long - short) * self._random.uniform(1, ids)[:, 0]
        self._wait[ids] = np.maximum(np.round(pause / self._dt), 1)

    def advance(self) -> None:
        """After a control step: begin and end pushes."""
        self._wait -= 1
        begin = np.flatnonzero(self._wait == 0)
        if len(begin):
            size, angle = self._random.uniform(2, begin).T
            force, angle = self.share * self.cfg.newton * size, 2.0 * np.pi * angle
            self._force[begin] = np.stack([force * np.cos(angle), force * np.sin(angle)], axis=1)
        end = np.flatnonzero(self._wait == -self._hold)
        if len(end):
            self.reset(end)

    def memory(self) -> dict[str, NDArray[np.generic]]:
        """Live arrays for a checkpoint; the force itself is part of the simulation's state."""
        return {"wait": self._wait, "counter": self._random.counter}
