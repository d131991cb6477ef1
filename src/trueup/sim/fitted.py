"""What a calibration knows: identified parameters as a posterior to draw from.

Reads `params.json` as data; the stage that writes it is not needed here.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from trueup.core.errors import TrueupError
from trueup.sim.batch import BatchSim
from trueup.sim.parameter_table import GEAR_FRICTION
from trueup.sim.params import PARAMETERS

FloatArray = NDArray[np.float64]
_OF_THE_STAND = frozenset({"tilt", "mount_stiffness", "mount_damping"})
_MOTOR = frozenset({"stall_torque", "no_load_speed"})
_FILE, _MAX_BYTES = "params.json", 50_000_000


class _Parameter(msgspec.Struct, kw_only=True):
    """The part of a fitted parameter that is needed to set it (see `calibrate.parameters`)."""

    name: str
    of: tuple[str, ...]
    low: float
    high: float
    scale: Literal["log", "linear"]
    offset: float
    prior: float
    width: float
    mode: Literal["set", "times"] = "set"
    axis: int | None = None

    def value(self, x: FloatArray) -> FloatArray:
        t = self.prior + self.width * x
        return np.clip(np.exp(t) - self.offset if self.scale == "log" else t, self.low, self.high)


class _Estimate(msgspec.Struct, kw_only=True):
    parameter: _Parameter
    verdict: str


class _File(msgspec.Struct, kw_only=True):
    robot: str
    joint_names: tuple[str, ...]
    estimates: tuple[_Estimate, ...]
    x: list[float]
    covariance: list[list[float]]

    def __post_init__(self) -> None:
        count = len(self.estimates)
        if len(self.x) != count or [len(row) for row in self.covariance] != [count] * count:
            raise ValueError(f"x and covariance must have the size of the {count} estimates")
        if not all(np.isfinite(v) for row in (self.x, *self.covariance) for v in row):
            raise ValueError("x and covariance must be finite")


class Fitted:
    """The identified parameters of a calibration, for one simulation's robot.

    What belongs to the stand that the robot hung on, or to a friction or motor model that the simulation does not have,
    is left out and named in `left_out`.
    """

    def __init__(self, content: _File, sim: BatchSim) -> None:
        if content.joint_names != sim.robot.spec.joint_names:
            raise TrueupError(
                f"this calibration is of {content.robot!r} with other joints than {sim.robot.spec.name!r}"
            )
        known = [k for k, one in enumerate(content.estimates) if one.verdict == "identified"]
        strange = _OF_THE_STAND | (_MOTOR if sim.cfg.actuator.kind == "pd" else frozenset())
        if sim.gear_friction is None:
            strange |= set(GEAR_FRICTION)
        keep = [k for k in known if content.estimates[k].parameter.name not in strange]
        out = [content.estimates[k].parameter.name for k in known if k not in keep]
        self.left_out = tuple(dict.fromkeys(out))
        if not keep:
            raise TrueupError("this calibration identified nothing: there is nothing to draw from")
        self._parameters = [content.estimates[k].parameter for k in keep]
        self._x = np.array(content.x)[keep]
        covariance = np.array(content.covariance)[np.ix_(keep, keep)]
        values, axes = np.linalg.eigh(0.5 * (covariance + covariance.T))
        self._root = axes * np.sqrt(np.maximum(values, 0.0))
        self._at = [_columns(sim, one) for one in self._parameters]
        self.count = len(keep)
        self.names = tuple(dict.fromkeys(one.name for one in self._parameters))

    def bodies(self, name: str) -> tuple[str, ...]:
        """Bodies of a body parameter that the posterior sets."""
        return tuple(item for one in self._parameters if one.name == name for item in one.of)

    def place(self, name: str, value: FloatArray, nominal: FloatArray, draws: FloatArray) -> None:
        """Write the identified columns of a parameter (rows, ...) from standard normal draws (rows, count)."""
        for k, (one, at) in enumerate(zip(self._parameters, self._at, strict=True)):
            if one.name != name:
                continue
            # summed row by row: a BLAS call may round differently in another batch
            x = self._x[k] + (draws * self._root[k]).sum(axis=1)
            new = one.value(x)
            index = (slice(None), *at)
            if len(at) == 0:
                value[:] = new * nominal if one.mode == "times" else new
            else:
                part = value[index]
                wide = new.reshape(-1, *(1,) * (part.ndim - 1))
                value[index] = wide * nominal[at] if one.mode == "times" else wide + 0.0 * part


def read_fitted(path: str | Path, sim: BatchSim) -> Fitted:
    """Read DIR/params.json or the file itself."""
    file = Path(path)
    file = file / _FILE if file.is_dir() else file
    try:
        if file.stat().st_size > _MAX_BYTES:
            raise TrueupError(f"is larger than {_MAX_BYTES} bytes: not a calibration", file=file)
        content = msgspec.json.decode(file.read_bytes(), type=_File)
    except OSError as error:
        raise TrueupError(f"the calibration cannot be read: {error.strerror}", file=file) from None
    except msgspec.MsgspecError as error:
        raise TrueupError(f"is not a calibration: {error}", file=file) from None
    return Fitted(content, sim)


def _columns(sim: BatchSim, one: _Parameter) -> tuple[NDArray[np.intp] | int, ...]:
    """Index of a parameter's columns behind the row axis."""
    if one.name not in PARAMETERS:
        raise TrueupError(f"this calibration has a parameter {one.name!r} that the simulator does not know")
    scope = PARAMETERS[one.name].scope
    axis: tuple[int, ...] = () if one.axis is None else (one.axis,)
    if scope == "robot":
        return axis
    known = sim.robot.spec.joint_names if scope == "joint" else sim.params.body_names
    missing = [item for item in one.of if item not in known]
    if missing:
        raise TrueupError(f"this calibration has a {scope} {missing[0]!r} that the robot does not have")
    return (np.array([known.index(item) for item in one.of], np.intp), *axis)
