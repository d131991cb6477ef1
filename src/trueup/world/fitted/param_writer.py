"""Writes fitted values, one per simulation and parameter, into a simulation.

The fit's rollouts, a calibration's estimate, draws from its posterior and the settings of a learned actuator all go
through here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from trueup.core.errors import TrueupError
from trueup.world.fitted.fit_parameter import Mode
from trueup.world.parameters.table import PARAMETERS

if TYPE_CHECKING:
    from trueup.world.batch import BatchSim

FloatArray = NDArray[np.float64]
_Index = tuple[NDArray[np.intp] | int, ...]


class Place(Protocol):
    """Where a value goes: the parts of a `FitParameter` that matter here."""

    @property
    def name(self) -> str: ...
    @property
    def of(self) -> tuple[str, ...]: ...
    @property
    def axis(self) -> int | None: ...
    @property
    def mode(self) -> Mode: ...


class ParamWriter:
    """Writes values (rows, nparameter) of `parameters` into one simulation's arrays.

    names  parameters of the simulation that are touched, in the order of their first appearance
    """

    def __init__(self, sim: BatchSim, parameters: Sequence[Place]) -> None:
        self.parameters = tuple(parameters)
        self._sim = sim
        self._at = [_columns(sim, one) for one in self.parameters]
        self.names = tuple(dict.fromkeys(one.name for one in self.parameters))
        self._of_name = {
            name: [k for k, one in enumerate(self.parameters) if one.name == name] for name in self.names
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


def _columns(sim: BatchSim, one: Place) -> _Index:
    """Index of a parameter's columns behind the row axis; of no joint or body by name: all of them."""
    if one.name not in PARAMETERS:
        raise TrueupError(f"the simulator does not know the fitted parameter {one.name!r}")
    scope = PARAMETERS[one.name].scope
    axis: tuple[int, ...] = () if one.axis is None else (one.axis,)
    if scope == "robot":
        return axis
    known = sim.params.names_of(scope)
    missing = [item for item in one.of if item not in known]
    if missing:
        raise TrueupError(
            f"a fitted parameter belongs to the {scope} {missing[0]!r} that the robot does not have"
        )
    return (np.array([known.index(item) for item in one.of or known], np.intp), *axis)
