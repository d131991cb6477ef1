"""One parameter of a fit: its bounds, prior and scaled coordinate x; and the writer of fitted values into a simulation.

A fit works in x, the distance from the prior in prior widths: t = log(value + offset) or value, x = (t - t_prior) /
width. There the prior is a unit normal, a step of one is a plausible change for every parameter, and zero friction can
be reached although friction is scaled by its logarithm.

The fit's rollouts, a calibration's estimate, draws from its posterior and the settings of a learned actuator are all
written by `ParamWriter`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from trueup.core.arrays import FloatArray
from trueup.models.actuator_net import Setting
from trueup.world.parameters.table import PARAMETERS

if TYPE_CHECKING:
    from trueup.world.batch import BatchSim

Scale = Literal["log", "linear"]
Mode = Literal["set", "times"]
MOST = 1e6  # of priors and widths, and of distances in prior widths: beyond, numbers overflow
NEEDS_MOUNT = frozenset({"mount_stiffness", "mount_damping"})
_Index = tuple[NDArray[np.intp] | slice | int, ...]


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

    def __post_init__(self) -> None:
        if not (self.low <= self.high and 0.0 < self.width < MOST and abs(self.prior) < MOST):
            raise ValueError(f"{self.label or self.name}: bounds in order, a width above 0 and a prior below {MOST:g}")

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


class ParamWriter:
    """Writes values (rows, nparameter) of `parameters` into one simulation's arrays.

    names  parameters of the simulation that are touched, in the order of their first appearance
    """

    def __init__(self, sim: BatchSim, parameters: Sequence[FitParameter | Setting]) -> None:
        self.parameters = tuple(parameters)
        self._sim = sim
        self._at = [_columns(sim, parameter) for parameter in self.parameters]
        self.names = tuple(dict.fromkeys(parameter.name for parameter in self.parameters))
        self._of_name = {
            name: [k for k, parameter in enumerate(self.parameters) if parameter.name == name] for name in self.names
        }

    def base(self) -> dict[str, FloatArray]:
        """The present values of every name that is touched, (nsim, ...)."""
        return {name: self._sim.params.get(name) for name in self.names}

    def write(self, values: FloatArray, base: Mapping[str, FloatArray]) -> None:
        """Write (nsim, nparameter) values; `base` has the values that stand without the fit, by name.

        Every name is written whole, so that what an earlier call wrote does not remain.
        """
        for name in self.names:
            new = base[name].copy()
            self.place(name, new, base[name], values)
            self._sim.params.set(name, new)

    def place(self, name: str, into: FloatArray, base: FloatArray, values: FloatArray) -> None:
        """Write a parameter's fitted columns into an array (rows, ...); factors multiply `base`, (rows | 1, ...).

        Whatever stood in those columns is replaced, the other columns stay.
        """
        at = [(slice(None), *self._at[k]) for k in self._of_name.get(name, ())]
        for index in at:
            into[index] = base[index]
        for k, index in zip(self._of_name.get(name, ()), at, strict=True):
            part = into[index]
            new = values[:, k].reshape(-1, *(1,) * (part.ndim - 1))
            into[index] = part * new if self.parameters[k].mode == "times" else new

    def bodies(self, name: str) -> tuple[str, ...]:
        """Bodies of a body parameter that are written."""
        return tuple(item for k in self._of_name.get(name, ()) for item in self.parameters[k].of)


def _columns(sim: BatchSim, parameter: FitParameter | Setting) -> _Index:
    """Index of a parameter's columns behind the row axis; of no joint or body by name: all of them."""
    columns = sim.params.columns(parameter.name, parameter.of or None)
    axis: tuple[int, ...] = () if parameter.axis is None else (parameter.axis,)
    return axis if PARAMETERS[parameter.name].scope == "robot" else (columns, *axis)
