"""Configs of `trueup calibrate`, `calibrate actuator`, `calibrate load` and `trueup robot export`; flags beside files.

What is fitted and how is in `calibrate.config` and `actuator.config`. No numerics are imported here, so that the
command line can show the flags at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar

import tyro

from trueup.calibrate.actuator.config import LadderCfg
from trueup.calibrate.config import CalibrateCfg
from trueup.core.errors import TrueupError
from trueup.core.files import OutFolder

R = TypeVar("R")


@dataclass(frozen=True, kw_only=True)
class _FitVerb:
    """Logs, robot and output of a fit."""

    logs: tyro.conf.Positional[tuple[Path, ...]]  # Logs to fit (MCAP, rosbag2, or tables with --mapping).
    robot: str  # Built-in name, or your robot's folder or spec.
    out: OutFolder  # Folder for the result.
    holdout: tuple[Path, ...] = ()  # Logs to score on (default: a share of the logs is held out).
    mapping: str | None = None  # For CSV, NPZ, Parquet, HDF5: a shipped mapping's name or your own TOML.
    resume: bool = False
    """Continue with the same --out: a stopped or killed fit, or a ladder whose first rungs are done."""
    page: bool = True  # Write DIR/index.html.


@dataclass(frozen=True, kw_only=True)
class CalibrateVerb(_FitVerb):
    """Fit a robot's simulator to logs, with intervals and a verdict per parameter.

    In: logs of the robot (base held in the air, or an arm) with commands and encoder positions. Out: DIR/params.json
    (estimates, standard errors, covariance, verdicts, scores on held-out data) and DIR/index.html. Ctrl-C keeps the
    best so far; --resume continues a killed fit. Then: `trueup record --excitation active
    --for DIR` for weak parameters, `trueup robot export DIR` for other simulators, `trueup calibrate actuator`
    for a choice of actuator models.
    """

    start: Path | None = None  # Begin from an earlier params.json.
    refit: Path | None = None
    """Also fit the parameters that a diagnosis suspects: refit.json of `trueup gap`, or its folder."""
    verbose: bool = False  # Print every parameter, note and advice instead of like joints together.
    cfg: CalibrateCfg = field(default_factory=CalibrateCfg)


@dataclass(frozen=True, kw_only=True)
class ActuatorVerb(_FitVerb):
    """Fit actuator models from ideal PD to an unsupervised net, score all alike, recommend the simplest good one.

    In: logs of the robot (base held in the air, or an arm) with commands and encoder positions; torque if there is any.
    Out: DIR/ladder.json (scores on held-out motion, recommendation), DIR/rungs/NAME/ (params.json or the net's files)
    and
    DIR/index.html. By default a recommendation in five minutes; --thorough compares all. After Ctrl-C, --resume
    continues.
    """

    cfg: LadderCfg = field(default_factory=LadderCfg)


def run(verb: CalibrateVerb | ActuatorVerb, fit: Callable[..., R], **more: Any) -> R:
    """Call `calibrate` or `run_ladder` with the verb's options."""
    if not verb.logs:
        raise TrueupError("no log was named: give LOG... --robot ROBOT --out DIR")
    files = {"holdout": verb.holdout, "mapping": verb.mapping, "folder": verb.out}
    return fit(verb.robot, verb.logs, verb.cfg, **files, resume=verb.resume, **more)


@dataclass(frozen=True, kw_only=True)
class LoadVerb:
    """Estimate the payload of a legged robot from squats and add it to a calibration.

    In: logs of squats on flat ground (`trueup record ROBOT --excitation squat`) and a calibration of the robot in the
    air. Out: DIR/params.json, the calibration with mass and centre of mass of the trunk if the squats show a load.
    """

    logs: tyro.conf.Positional[tuple[Path, ...]]  # Logs of squats.
    robot: str  # Built-in name, or your robot's folder or spec.
    fit: Path  # Folder or params.json of a calibration.
    out: OutFolder  # Folder for the result; may be that of the calibration.
    mapping: str | None = None  # For CSV, NPZ, Parquet, HDF5: a shipped mapping's name or your own TOML.


@dataclass(frozen=True, kw_only=True)
class ExportVerb:
    """Write a calibrated robot, or a robot as it is, for a simulator.

    In: a calibration (DIR of `trueup calibrate`). Out: mjcf: a robot folder, used like a built-in robot from then on;
    urdf, isaaclab, mjlab: a table of joint parameters under their names. What a format cannot express is printed and
    in LOSSES.md. In: a robot (name, folder or model file) with --to urdf. Out: the whole robot, DIR/NAME.urdf.
    """

    what: tyro.conf.Positional[str]  # Folder or params.json of a calibration; or a robot.
    to: Literal["mjcf", "urdf", "isaaclab", "mjlab"] = "mjcf"  # Format to write.
    out: OutFolder  # Folder to write.
    robot: str | None = None  # The robot that was calibrated (default: the built-in one of that name).
    physics: float | None = None
    """Physics steps per second of the simulator that will read it, for delays in steps (default: the spec's)."""
