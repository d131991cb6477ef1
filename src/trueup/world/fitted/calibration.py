"""Result of a calibration: SimParams, the joint distribution of fitted parameters, and params.json around it.

`params.json` holds everything that is needed to set a simulator, to draw from the posterior and to know where the
numbers came from. It is written whole or not at all and read strictly. The stage that makes it is `calibrate`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec
import numpy as np

from trueup.core.arrays import FloatArray
from trueup.core.documents import Strict, read_json, write_json
from trueup.core.errors import TrueupError, found_instead
from trueup.world.batch import BatchSim
from trueup.world.fitted.fit_parameter import MOST, FitParameter, ParamWriter, belongs_to_stand

SCHEMA = 2
Word = Literal["identified", "bounded", "weak", "not visible"]
PARAMS_FILE = "params.json"


class Estimate(Strict, frozen=True, kw_only=True):
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


class SimParams(Strict, frozen=True, kw_only=True):
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
        if len(self.x) != count or [len(row) for row in self.covariance] != [count] * count:
            raise ValueError(f"x and covariance must have the size of the {count} estimates")
        if not all(abs(v) < MOST for row in (self.x, *self.covariance) for v in row):
            raise ValueError(f"x and covariance are in prior widths: finite and below {MOST:g}")

    @property
    def parameters(self) -> tuple[FitParameter, ...]:
        return tuple(estimate.parameter for estimate in self.estimates)

    @property
    def values(self) -> FloatArray:
        return np.array([estimate.value for estimate in self.estimates])

    def check_robot(self, sim: BatchSim) -> None:
        """Refuse a simulation of a robot with other joints."""
        if self.joint_names != sim.robot.spec.joint_names:
            raise TrueupError(f"this calibration is of {self.robot!r} with other joints than {sim.robot.spec.name!r}")

    def apply(self, sim: BatchSim, values: FloatArray | None = None) -> None:
        """Set the estimates, or `values` (nsim, nparameter) such as `sample` draws, on every simulation.

        Factors ("times") multiply the gains and limits that are set now. How the robot was held while it was recorded
        (its stand, the tilt on it) is left behind where there is no stand.
        """
        new, count = self.values if values is None else values, len(self.estimates)
        if new.shape not in ((count,), (sim.nsim, count)):
            raise TrueupError(f"values must have shape ({sim.nsim}, {count}), found {new.shape}")
        self.check_robot(sim)
        given, on_stand = self.parameters, sim.cfg.model.base == "mount"
        keep = [k for k, parameter in enumerate(given) if on_stand or not belongs_to_stand(parameter, given)]
        writer = ParamWriter(sim, [given[k] for k in keep])
        writer.write(np.broadcast_to(new, (sim.nsim, count))[:, keep], writer.base())

    def sample(self, rng: np.random.Generator, count: int) -> FloatArray:
        """Draw (count, nparameter) values from the posterior, inside the bounds."""
        draws = rng.multivariate_normal(np.array(self.x), np.array(self.covariance), count, method="eigh")
        return np.stack([entry.to_value(draws[:, k]) for k, entry in enumerate(self.parameters)], axis=1)

    def find(self, name: str, of: str | None = None) -> Estimate:
        """The estimate of a parameter, of a joint or body."""
        for estimate in self.estimates:
            if estimate.parameter.name == name and (of is None or of in estimate.parameter.of):
                return estimate
        raise TrueupError(f"this calibration has no {name!r}" + (f" of {of!r}" if of else ""))


class FitScore(Strict, frozen=True, kw_only=True):
    """Position errors of one simulator on one set of logs, rad.

    open_loop   per joint, root mean square over whole logs
    window      per joint, over windows of 0.5 s from measured states
    spread      5 % and 95 % of the mean open-loop error over bootstrap draws of 1 s blocks
    joint_spread  the same per joint
    """

    open_loop: list[float]
    window: list[float]
    open_loop_mean: float
    window_mean: float
    spread: tuple[float, float]
    joint_spread: list[tuple[float, float]] = msgspec.field(default_factory=list)


class Misfit(Strict, frozen=True, kw_only=True):
    """Residuals of the fit on its own data, per joint.

    noise   of the position sensor, rad
    left    root mean square position residual, rad
    memory  integrated autocorrelation time of that residual, s
    """

    noise: list[float]
    left: list[float]
    memory_s: list[float]

    @property
    def structured(self) -> bool:
        """Whether residuals are much larger than noise: the model lacks something."""
        return bool(np.median(np.array(self.left) / np.array(self.noise)) > 2.0)


class Effort(Strict, frozen=True, kw_only=True):
    """Cost of a fit; `rollouts` counts simulated windows."""

    seconds: float
    rollouts: int
    simulated_s: float
    iterations: int
    converged: bool
    interrupted: bool


class Ratio(Strict, frozen=True, kw_only=True):
    """The ratio of two parameters that cannot be told apart alone, with its standard error and 95 % interval.

    members   labels of the parameters
    """

    label: str
    members: tuple[str, ...]
    value: float
    standard_error: float
    interval: tuple[float, float]
    unit: str
    verdict: Word


class Predictive(Strict, frozen=True, kw_only=True):
    """Posterior predictive check: how draws from the posterior replay held-out data.

    median_ratio, q95_ratio   error of the draws over that of the estimate: median and 95 % quantile
    estimate_error            open-loop error of the estimate, rad
    spread                    errors that the draws predict, 2.5 % and 97.5 %
    covered                   whether the measured error lies within the spread
    """

    draws: int
    median_ratio: float
    q95_ratio: float
    estimate_error: float
    spread: tuple[float, float]
    covered: bool


class Calibration(SimParams, frozen=True, kw_only=True):
    """Content of params.json.

    alarms  warnings about the result as a whole
    ratios  of parameters that are only identified together
    """

    misfit: Misfit
    effort: Effort
    fit_nominal: FitScore
    fit_calibrated: FitScore
    holdout_nominal: FitScore | None
    holdout_calibrated: FitScore | None
    provenance: dict[str, object]
    notes: tuple[str, ...] = ()
    alarms: tuple[str, ...] = ()
    ratios: tuple[Ratio, ...] = ()
    predictive: Predictive | None = None


def write_calibration(result: Calibration, folder: str | Path) -> Path:
    """Write DIR/params.json."""
    return write_json(Path(folder) / PARAMS_FILE, result)


def read_calibration(path: str | Path) -> Calibration:
    """Read params.json, or the folder that holds it."""
    found = found_instead(Path(path).parent if Path(path).name == PARAMS_FILE else path)
    absent = f"no calibration here: {found}; `trueup calibrate LOG --robot ROBOT --out DIR` makes one"
    return read_json(path, Calibration, "calibration", name=PARAMS_FILE, schema=SCHEMA, absent=absent)
