"""Draws from a calibration's posterior, for one simulation: everything that was fitted, with its correlations.

A parameter that the data did not show is drawn with its prior width around the estimate, because that is what its
covariance says; setting it to the nominal value would break its match with the parameters that were fitted beside it.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from trueup.core.errors import TrueupError
from trueup.sim.able_to_set import NEEDS_MOTOR
from trueup.sim.batch import BatchSim
from trueup.sim.calibration import read_calibration
from trueup.sim.fit_parameter import FitParameter
from trueup.sim.param_writer import ParamWriter
from trueup.sim.parameter_table import GEAR_FRICTION
from trueup.sim.sim_params import Estimate, SimParams

FloatArray = NDArray[np.float64]


class Fitted:
    """The joint distribution of a calibration's parameters that act in one simulation.

    estimates  of the parameters that are drawn
    left_out   of those that are not: what belongs to the stand that the robot was held by, and what acts on a friction
               or motor model that the simulation does not have (`able_to_set` gives it one)
    """

    def __init__(self, params: SimParams, sim: BatchSim) -> None:
        params.check_robot(sim)
        keep = [k for k in params.applicable(sim) if _acts(params.parameters[k], sim)]
        self.estimates: tuple[Estimate, ...] = tuple(params.estimates[k] for k in keep)
        self.left_out = tuple(one for k, one in enumerate(params.estimates) if k not in keep)
        if not keep:
            raise TrueupError(
                f"this calibration of {params.robot!r} has no parameter that acts in this simulation"
                f" (left out: {', '.join(dict.fromkeys(e.parameter.name for e in self.left_out)) or 'none'})"
            )
        self._writer = ParamWriter(sim, [one.parameter for one in self.estimates])
        self._x = np.array(params.x)[keep]
        covariance = np.array(params.covariance)[np.ix_(keep, keep)]
        values, axes = np.linalg.eigh(0.5 * (covariance + covariance.T))
        self._root = axes * np.sqrt(np.maximum(values, 0.0))
        self.count = len(keep)
        self.names = self._writer.names
        self.bodies = self._writer.bodies
        own = BatchSim(
            sim.robot, sim.cfg.alone()
        ).params  # not `sim`: a learned actuator has set its own there
        factors = dict.fromkeys(one.parameter.name for one in self.estimates if one.parameter.mode == "times")
        self._own = {name: own.get(name) for name in factors}

    def values(self, draws: FloatArray) -> FloatArray:
        """Parameter values (rows, count) of standard normal draws (rows, count)."""
        out = np.empty_like(draws)
        for k, one in enumerate(self.estimates):
            # summed row by row: a BLAS call may round differently in another batch
            out[:, k] = one.parameter.to_value(self._x[k] + (draws * self._root[k]).sum(axis=1))
        return out

    def place(self, name: str, into: FloatArray, values: FloatArray) -> None:
        """Write the fitted columns of a parameter (rows, ...) from `values`; factors multiply the robot's own."""
        self._writer.place(name, into, self._own.get(name, into), values)


def read_fitted(path: str | Path, sim: BatchSim) -> Fitted:
    """Read DIR/params.json or the file itself."""
    return Fitted(read_calibration(path), sim)


def _acts(one: FitParameter, sim: BatchSim) -> bool:
    """Whether the simulation has the model that a parameter belongs to."""
    if one.name == "tilt" and sim.free_base:  # how it stood or hung on the day of the recording
        return False
    if one.name in NEEDS_MOTOR:
        return sim.cfg.actuator.for_robot(sim.robot).kind == "dcmotor"
    return one.name not in GEAR_FRICTION or sim.gear_friction is not None
