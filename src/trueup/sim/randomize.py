"""Randomised parameters: which name, how it changes, from which range, drawn per simulation.

Every draw belongs to a row (`core.rows`), so simulation k has the same parameters in a batch of any size.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from trueup.core.errors import TrueupError
from trueup.core.rows import RowRandom
from trueup.sim.batch import BatchSim
from trueup.sim.params import PARAMETERS


@dataclass(frozen=True, kw_only=True)
class Uniform:
    """A range: `scale` multiplies the nominal value, `add` adds to it, `set` replaces it.

    each  draw one number per joint or body (and axis) instead of one per simulation
    of    joints or bodies concerned; None: all
    """

    operation: Literal["scale", "add", "set"]
    low: float
    high: float
    each: bool = True
    of: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low <= self.high):
            raise TrueupError(f"a range needs finite low <= high, found [{self.low}, {self.high}]")


Ranges = Mapping[str, Uniform]


class Randomizer:
    """Draws parameters for simulations and writes them."""

    def __init__(self, sim: BatchSim, ranges: Ranges) -> None:
        self._sim, self._ranges = sim, dict(ranges)
        self._nominal = {name: sim.params.nominal(name) for name in ranges}
        self._draw = {
            name: RowRandom(sim.cfg.seed, f"randomize {name}", sim.nsim, sim.cfg.first_row) for name in ranges
        }

    def apply(self, ids: NDArray[np.intp] | None = None) -> None:
        """Give simulations `ids` (None: all) fresh parameters."""
        for name, range_ in self._ranges.items():
            self._sim.params.set(name, self._values(name, range_, ids), of=range_.of, ids=ids)

    def _values(self, name: str, range_: Uniform, ids: NDArray[np.intp] | None) -> NDArray[np.float64]:
        nominal = self._nominal[name]
        if range_.of is not None:
            known = (
                self._sim.robot.spec.joint_names
                if PARAMETERS[name].scope == "joint"
                else self._sim.params.body_names
            )
            nominal = nominal[[known.index(item) for item in range_.of if item in known]]
        count = nominal.size if range_.each else 1
        unit = self._draw[name].uniform(count, ids)
        numbers = range_.low + (range_.high - range_.low) * unit
        shape = (len(unit), *(nominal.shape if range_.each else (1,) * nominal.ndim))
        drawn = numbers.reshape(shape)
        if range_.operation == "scale":
            return nominal * drawn
        return nominal + drawn if range_.operation == "add" else drawn + np.zeros_like(nominal)


def joint_ranges() -> dict[str, Uniform]:
    """Servo and joint ranges that any robot can take, around the model's own values."""
    return {
        "torque_limit": Uniform(operation="scale", low=0.9, high=1.1),
        "damping": Uniform(operation="scale", low=0.7, high=1.3),
        "friction": Uniform(operation="scale", low=0.5, high=1.5),
        "armature": Uniform(operation="scale", low=0.8, high=1.2),
        "kp": Uniform(operation="scale", low=0.8, high=1.2),
        "kd": Uniform(operation="scale", low=0.8, high=1.2),
        "delay": Uniform(operation="set", low=0.0, high=0.02, each=False),
        "encoder_bias": Uniform(operation="set", low=-0.05, high=0.05),
    }


def locomotion_ranges(base: str) -> dict[str, Uniform]:
    """The ranges users expect for a legged robot: joints, base mass and centre of mass, ground friction."""
    return {
        "mass_scale": Uniform(operation="set", low=0.85, high=1.15, of=(base,)),
        "com_offset": Uniform(operation="set", low=-0.03, high=0.03, of=(base,)),
        "contact_friction": Uniform(operation="set", low=0.3, high=2.0),
        **joint_ranges(),
    }
