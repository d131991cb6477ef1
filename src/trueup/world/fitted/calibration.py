"""The file of a calibration: what a simulator needs, and what people want to know about the fit.

`params.json` holds everything that is needed to set a simulator, to draw from the posterior and to know where the
numbers came from. It is written whole or not at all and read strictly. The stage that makes it is `calibrate`.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np

from trueup.core.errors import TrueupError
from trueup.core.files import write_atomic
from trueup.world.fitted.sim_params import SCHEMA, Entry, SimParams, Word

PARAMS_FILE = "params.json"
_MAX_BYTES = 50_000_000


class Score(Entry, frozen=True, kw_only=True):
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


class Misfit(Entry, frozen=True, kw_only=True):
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


class Effort(Entry, frozen=True, kw_only=True):
    """What the fit cost; `rollouts` counts simulated windows."""

    seconds: float
    rollouts: int
    simulated_s: float
    iterations: int
    converged: bool
    interrupted: bool


class Ratio(Entry, frozen=True, kw_only=True):
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


class Predictive(Entry, frozen=True, kw_only=True):
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

    alarms  what a user must know before anything else
    ratios  of parameters that only show together
    """

    misfit: Misfit
    effort: Effort
    fit_nominal: Score
    fit_calibrated: Score
    holdout_nominal: Score | None
    holdout_calibrated: Score | None
    provenance: dict[str, object]
    notes: tuple[str, ...] = ()
    alarms: tuple[str, ...] = ()
    ratios: tuple[Ratio, ...] = ()
    predictive: Predictive | None = None


class _Version(msgspec.Struct):
    schema: int


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
        content = file.read_bytes()
        found = msgspec.json.decode(content, type=_Version).schema
        if found != SCHEMA:
            raise TrueupError(
                f"this calibration is of schema {found} and this version reads schema {SCHEMA}: calibrate again",
                file=file,
            )
        return msgspec.json.decode(content, type=Calibration)
    except OSError as error:
        raise TrueupError(f"the calibration cannot be read: {error.strerror}", file=file) from None
    except msgspec.MsgspecError as error:
        raise TrueupError(f"is not a calibration: {error}", file=file) from None
