"""Fitted parameters of a robot's simulator: estimates, their joint distribution, and how they enter a simulation."""

from __future__ import annotations

import math
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from trueup.core.errors import TrueupError
from trueup.world.batch import BatchSim
from trueup.world.fitted.fit_parameter import FitParameter, ParamWriter, belongs_to_stand

FloatArray = NDArray[np.float64]
SCHEMA = 2
Word = Literal["identified", "bounded", "weak", "not visible"]


class Entry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Immutable, keyword-only, unknown keys refused."""


class Estimate(Entry, frozen=True, kw_only=True):
    """One parameter after the fit; standard_error and the 95 % interval in its unit.

    ratio             standard error over prior width
    nominal           value that stands without the fit
    nominal_excluded  whether the data exclude that value
    nominal_cost      relative rise of the cost at that value, the others refitted
    """

    parameter: FitParameter
    value: float
    standard_error: float
    interval: tuple[float, float]
    verdict: Word
    ratio: float
    partner: str
    correlation: float
    on_bound: bool
    advice: str
    nominal: float | None = None
    nominal_excluded: bool = False
    nominal_cost: float | None = None


class SimParams(Entry, frozen=True, kw_only=True):
    """The joint distribution of everything that was fitted.

    x, covariance   mean and covariance of a normal distribution in prior widths (see `fit_parameter`); a direction that
                    the data do not show has its prior width there
    """

    schema: int
    robot: str
    joint_names: tuple[str, ...]
    estimates: tuple[Estimate, ...]
    x: list[float]
    covariance: list[list[float]]

    def __post_init__(self) -> None:
        count = len(self.estimates)
        if self.schema != SCHEMA:
            raise ValueError(
                f"it is of schema {self.schema} and this version reads schema {SCHEMA}: calibrate again"
            )
        if len(self.x) != count or [len(row) for row in self.covariance] != [count] * count:
            raise ValueError(f"x and covariance must have the size of the {count} estimates")
        if not all(math.isfinite(v) for row in (self.x, *self.covariance) for v in row):
            raise ValueError("x and covariance must be finite")

    @property
    def parameters(self) -> tuple[FitParameter, ...]:
        return tuple(estimate.parameter for estimate in self.estimates)

    @property
    def values(self) -> FloatArray:
        return np.array([estimate.value for estimate in self.estimates])

    def check_robot(self, sim: BatchSim) -> None:
        """Refuse a simulation of a robot with other joints."""
        if self.joint_names != sim.robot.spec.joint_names:
            raise TrueupError(
                f"this calibration is of {self.robot!r} with other joints than {sim.robot.spec.name!r}"
            )

    def apply(self, sim: BatchSim, values: FloatArray | None = None) -> None:
        """Set the estimates, or `values` (nsim, nparameter) such as `sample` draws, on every simulation.

        Factors ("times") multiply the gains and limits that are set now. How the robot was held while it was recorded
        (its stand, the tilt on it) is left behind where there is no stand.
        """
        new, count = self.values if values is None else values, len(self.estimates)
        if new.shape not in ((count,), (sim.nsim, count)):
            raise TrueupError(f"values must have shape ({sim.nsim}, {count}), found {new.shape}")
        self.check_robot(sim)
        keep = self.applicable(sim)
        writer = ParamWriter(sim, [self.parameters[k] for k in keep])
        writer.write(np.broadcast_to(new, (sim.nsim, count))[:, keep], writer.base())

    def applicable(self, sim: BatchSim) -> list[int]:
        """Numbers of the parameters that a simulation takes: all, but the stand's where there is no stand."""
        given, on_stand = self.parameters, sim.cfg.model.base == "mount"
        return [k for k, one in enumerate(given) if on_stand or not belongs_to_stand(one, given)]

    def sample(self, rng: np.random.Generator, count: int) -> FloatArray:
        """Draw (count, nparameter) values from the posterior, inside the bounds."""
        covariance = np.array(self.covariance)
        draws = rng.multivariate_normal(np.array(self.x), covariance, count, method="eigh")
        low, high = np.array([entry.x_bounds for entry in self.parameters]).T
        inside = np.clip(draws, low, high)
        return np.stack([entry.to_value(inside[:, k]) for k, entry in enumerate(self.parameters)], axis=1)

    def find(self, name: str, of: str | None = None) -> Estimate:
        """The estimate of a parameter, of a joint or body."""
        for estimate in self.estimates:
            if estimate.parameter.name == name and (of is None or of in estimate.parameter.of):
                return estimate
        raise TrueupError(f"this calibration has no {name!r}" + (f" of {of!r}" if of else ""))
