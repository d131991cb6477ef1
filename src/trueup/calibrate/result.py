"""The result of a calibration: estimates with intervals and verdicts, to be read by people and by later stages.

`params.json` holds everything that is needed to set a simulator, to draw from the posterior and to know where the
numbers came from. It is written whole or not at all and read strictly.
"""

from __future__ import annotations

import math
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from trueup.calibrate.parameters import FitParameter, carry_over
from trueup.calibrate.score import Score
from trueup.calibrate.verdict import Word
from trueup.core.errors import TrueupError
from trueup.core.files import write_atomic
from trueup.sim.batch import BatchSim

FloatArray = NDArray[np.float64]
SCHEMA = 1
PARAMS_FILE = "params.json"
_MAX_BYTES = 50_000_000


class _Entry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Immutable, keyword-only, unknown keys refused."""


class Estimate(_Entry, frozen=True, kw_only=True):
    """One parameter after the fit; standard_error and the 95 % interval in its unit."""

    parameter: FitParameter
    value: float
    standard_error: float
    interval: tuple[float, float]
    verdict: Word
    ratio: float  # standard error over prior width
    partner: str
    correlation: float
    on_bound: bool
    advice: str


class Misfit(_Entry, frozen=True, kw_only=True):
    """What the fit left over on its own data, per joint.

    noise   of the position sensor, rad
    left    root mean square position residual, rad
    memory  integrated autocorrelation time of that residual, s
    """

    noise: list[float]
    left: list[float]
    memory_s: list[float]

    @property
    def structured(self) -> bool:
        """Whether the model lacks something: much more is left than noise."""
        return bool(np.median(np.array(self.left) / np.array(self.noise)) > 2.0)


class Effort(_Entry, frozen=True, kw_only=True):
    """What the fit cost; `rollouts` counts simulated windows."""

    seconds: float
    rollouts: int
    simulated_s: float
    iterations: int
    converged: bool
    interrupted: bool


class Calibration(_Entry, frozen=True, kw_only=True):
    """Content of params.json. `x` and `covariance` are in prior widths (see `parameters`)."""

    schema: int
    robot: str
    joint_names: tuple[str, ...]
    estimates: tuple[Estimate, ...]
    x: list[float]
    covariance: list[list[float]]
    misfit: Misfit
    effort: Effort
    fit_nominal: Score
    fit_calibrated: Score
    holdout_nominal: Score | None
    holdout_calibrated: Score | None
    provenance: dict[str, object]
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        count = len(self.estimates)
        if self.schema != SCHEMA:
            raise ValueError(f"schema {self.schema} is not known to this version (it reads schema {SCHEMA})")
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

    def apply(self, sim: BatchSim, values: FloatArray | None = None) -> None:
        """Set the estimates, or `values` (nsim, nparameter) such as `sample` draws, on every simulation.

        Factors ("times") multiply the gains and limits that are set now.
        """
        new = self.values if values is None else values
        if new.shape not in ((len(self.estimates),), (sim.nsim, len(self.estimates))):
            raise TrueupError(
                f"values must have shape ({sim.nsim}, {len(self.estimates)}), found {new.shape}"
            )
        if self.joint_names != sim.robot.spec.joint_names:
            raise TrueupError(
                f"this calibration is of {self.robot!r} with other joints than {sim.robot.spec.name!r}"
            )
        carry_over(sim, self.parameters, np.broadcast_to(new, (sim.nsim, len(self.estimates))))

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


def write_calibration(result: Calibration, folder: str | Path) -> Path:
    """Write DIR/params.json."""
    content = msgspec.json.format(msgspec.json.encode(result), indent=1)
    return write_atomic(Path(folder) / PARAMS_FILE, content)


def read_calibration(path: str | Path) -> Calibration:
    """Read params.json, or the folder that holds it."""
    file = Path(path)
    file = file / PARAMS_FILE if file.is_dir() else file
    try:
        if file.stat().st_size > _MAX_BYTES:
            raise TrueupError(f"is larger than {_MAX_BYTES} bytes: not a calibration", file=file)
        return msgspec.json.decode(file.read_bytes(), type=Calibration)
    except OSError as error:
        raise TrueupError(f"the calibration cannot be read: {error.strerror}", file=file) from None
    except msgspec.MsgspecError as error:
        raise TrueupError(f"is not a calibration: {error}", file=file) from None
