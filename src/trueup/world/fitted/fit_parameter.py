"""One parameter of a fit as data: what it is, its bounds and prior, and its scaled coordinate x.

A fit works in x, the distance from the prior in prior widths: t = log(value + offset) or value, x = (t - t_prior) /
width. There the prior is a unit normal, a step of one is a plausible change for every parameter, and zero friction can
be reached although friction is scaled by its logarithm.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
Scale = Literal["log", "linear"]
Mode = Literal["set", "times"]
NEEDS_MOUNT = frozenset({"mount_stiffness", "mount_damping"})


class FitParameter(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One number that a fit may move.

    name    as in `world.parameters.params`
    of      joints or bodies that share it; () for the whole robot
    axis    component of a vector parameter (centre of mass: x, y, z)
    mode    "set": the value itself; "times": a factor on the nominal or logged value
    prior, width   in scaled units t (see the module)
    """

    name: str
    of: tuple[str, ...]
    unit: str
    low: float
    high: float
    scale: Scale
    offset: float
    prior: float
    width: float
    mode: Mode = "set"
    axis: int | None = None
    label: str = ""

    def to_x(self, value: float) -> float:
        t = math.log(value + self.offset) if self.scale == "log" else value
        return (t - self.prior) / self.width

    def to_value(self, x: FloatArray) -> FloatArray:
        t = self.prior + self.width * np.asarray(x, np.float64)
        value = np.exp(t) - self.offset if self.scale == "log" else t
        return np.clip(value, self.low, self.high)

    def slope(self, value: float) -> float:
        """d value / d x: turns a standard error in x into one in the parameter's unit."""
        return self.width * (value + self.offset if self.scale == "log" else 1.0)

    @property
    def x_bounds(self) -> tuple[float, float]:
        return self.to_x(self.low), self.to_x(self.high)


def belongs_to_stand(entry: FitParameter, parameters: Sequence[FitParameter]) -> bool:
    """Whether a parameter says how the robot was held while it was recorded: the stand, and the tilt on it."""
    on_stand = any(other.name in NEEDS_MOUNT for other in parameters)
    return entry.name in NEEDS_MOUNT or (entry.name == "tilt" and on_stand)
