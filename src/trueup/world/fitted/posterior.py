"""Draws from a calibration's posterior, for one simulation: everything that was fitted, with its correlations.

A parameter that is not visible in the data is drawn with its prior width around the estimate, as in its
covariance; setting it to the nominal value would break its match with the parameters that were fitted beside it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trueup.core.arrays import FloatArray
from trueup.core.errors import TrueupError
from trueup.world.actuators.net_actuator import NetActuator
from trueup.world.batch import BatchSim
from trueup.world.config import SimCfg
from trueup.world.fitted.calibration import Estimate, SimParams
from trueup.world.fitted.fit_parameter import ParamWriter, belongs_to_stand
from trueup.world.parameters.able_to_set import NEEDS_MOTOR, able_to_set
from trueup.world.parameters.table import GEAR_FRICTION

_IN_A_TORQUE_NET = frozenset({"kp", "kd", "delay"})


class LeftOut(NamedTuple):
    """A fitted parameter that a simulation cannot apply, and the reason."""

    estimate: Estimate
    reason: str


class Fitted:
    """The joint distribution of a calibration's parameters that act in one simulation.

    estimates  of the parameters that are set
    left_out   what belongs to the stand that the robot was held by, acts on a model that the simulation does not have
               (`sim_for_fit` gives it one), or is an encoder bias that is not identified
    count      standard normal numbers that a draw takes; 0 with `posterior` False: then every row has the estimate
    """

    def __init__(self, params: SimParams, sim: BatchSim, *, posterior: bool = True) -> None:
        params.check_robot(sim)
        reasons = [_reason(estimate, params, sim) for estimate in params.estimates]
        keep = [k for k, reason in enumerate(reasons) if not reason]
        self.estimates = tuple(params.estimates[k] for k in keep)
        self.left_out = tuple(LeftOut(params.estimates[k], why) for k, why in enumerate(reasons) if why)
        if not keep:
            out = ", ".join(dict.fromkeys(left_out.estimate.parameter.name for left_out in self.left_out)) or "none"
            raise TrueupError(f"this calibration has no parameter that acts in this simulation (left out: {out})")
        self._writer = ParamWriter(sim, [estimate.parameter for estimate in self.estimates])
        self._x = np.array(params.x)[keep]
        self._root = _root(np.array(params.covariance)[np.ix_(keep, keep)])[:, : None if posterior else 0]
        self.count = self._root.shape[1]
        self.names = self._writer.names
        self.bodies = self._writer.bodies
        own = BatchSim(sim.scene, sim.cfg.alone()).params  # not `sim`: a learned actuator has set its own there
        factors = dict.fromkeys(
            estimate.parameter.name for estimate in self.estimates if estimate.parameter.mode == "times"
        )
        self._own = {name: own.get(name) for name in factors}

    def values(self, draws: FloatArray) -> FloatArray:
        """Parameter values (rows, nparameter) of standard normal draws (rows, count)."""
        out = np.empty((len(draws), len(self.estimates)))
        for k, estimate in enumerate(self.estimates):
            # summed row by row: a BLAS call may round differently in another batch
            out[:, k] = estimate.parameter.to_value(self._x[k] + (draws * self._root[k]).sum(axis=1))
        return out

    def place(self, name: str, into: FloatArray, values: FloatArray) -> None:
        """Write the fitted columns of a parameter (rows, ...) from `values`; factors multiply the robot's own."""
        self._writer.place(name, into, self._own.get(name, into), values)


def sim_for_fit(cfg: SimCfg, params: SimParams) -> SimCfg:
    """A simulation with the friction and motor models that the fitted parameters act on, and without the stand."""
    given = params.parameters
    return able_to_set(cfg, [parameter.name for parameter in given if not belongs_to_stand(parameter, given)])


def _root(covariance: FloatArray) -> FloatArray:
    """R with R R^T = covariance, from eigenvalues, so that a direction without any width is no trouble."""
    values, axes = np.linalg.eigh(0.5 * (covariance + covariance.T))
    root: FloatArray = axes * np.sqrt(np.maximum(values, 0.0))
    return root


def _reason(estimate: Estimate, params: SimParams, sim: BatchSim) -> str:
    """The reason why a simulation cannot apply a parameter; empty if it can."""
    parameter = estimate.parameter
    if sim.cfg.model.base != "mount" and belongs_to_stand(parameter, params.parameters):
        return "belongs to the stand"
    if parameter.name == "tilt" and sim.free_base:
        return "belongs to the recording: how the robot was held or how its ground lay"
    if parameter.name == "encoder_bias" and estimate.verdict != "identified":
        return "is not identified: what the model gets wrong about gravity ends in it"
    if parameter.name in NEEDS_MOTOR and sim.cfg.actuator.kind != "dcmotor":
        return "the simulation has no motor envelope"
    if parameter.name in GEAR_FRICTION and not (sim.gear_friction and sim.gear_friction.has(parameter.name)):
        return "the simulation has no such friction model"
    net = sim.substep_model.net.spec if isinstance(sim.substep_model, NetActuator) else None
    if net is not None and net.kind == "torque" and parameter.name in _IN_A_TORQUE_NET:
        return "is part of the learned actuator"
    return ""
