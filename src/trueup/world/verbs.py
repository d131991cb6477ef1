"""Configs of `tu.drop` and of `trueup sim`, which drops a robot or replays logs."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from trueup.core.errors import TrueupError
from trueup.core.files import OutFile

if TYPE_CHECKING:  # Python takes objects where the command line takes their files
    from trueup.robot.model import Base
    from trueup.world.fitted.calibration import Calibration
    from trueup.world.sensors import SensorCfg

    FitLike = str | Path | Calibration
else:
    Base, FitLike, SensorCfg = str, Path, Any


@dataclass(frozen=True, kw_only=True)
class DropCfg:
    """Duration, drop height, number of simulations and physics of a drop."""

    seconds: float = 5.0  # Simulated time.
    nsim: Annotated[int, tyro.conf.arg(aliases=["-n"])] = 1  # How many simulations to step side by side.
    randomize: bool = False  # Every simulation draws masses, friction, gains, delays, encoder biases.
    params: FitLike | None = None
    """Folder or params.json of a calibration: scored on the logs; or a robot with its estimate, with --nsim N draws."""
    base: Annotated[Base | None, tyro.conf.arg(metavar="{free,fixed}")] = None
    """free: a floating base; fixed: held in the air; default: the robot's spec."""
    height_m: Annotated[float, tyro.conf.arg(name="drop-height")] = 0.10
    """Drop height of a floating robot above its standing height, m."""
    seed: int = 0  # Of everything random.
    threads: int = 0  # Physics threads; 0 takes every core.
    sensors: tyro.conf.Suppress[tyro.conf.Fixed[SensorCfg | None]] = None
    """Noise of the encoders and the IMU; None: none."""

    def __post_init__(self) -> None:
        if not 0 < self.seconds <= 3600:
            raise TrueupError(f"seconds must lie between 0 and 3600, found {self.seconds:g}")
        if not 0 <= self.height_m <= 10:
            raise TrueupError(f"the height to drop from must lie between 0 and 10 m, found {self.height_m:g}")
        if self.base not in (None, "free", "fixed"):
            raise TrueupError(f"--base takes free or fixed, found {self.base!r}")


@dataclass(frozen=True, kw_only=True)
class SimVerb:
    """Drop a robot in simulation, hold its default pose, and film it; or replay logs with a saved fit.

    In: a robot (and, with --params, a calibration of it). Out: a film (--film), a page of traces (--page), and the
    final state on the screen.
    In: logs and --params. Out: the errors of the fit and of the nominal model on these logs, open loop and in
    windows of 0.5 s, per joint and per log, and a page (--page); nothing is fitted.
    """

    what: tyro.conf.Positional[tuple[str, ...]]
    """A robot to drop (built-in name, or a folder, spec, MJCF or URDF of your own), or logs to replay."""
    robot: str | None = None  # Whose logs they are (default: the built-in robot that --params is of).
    mapping: str | None = None  # For logs in CSV, NPZ, Parquet, HDF5: a shipped mapping's name or your own TOML.
    film: OutFile | None = None  # Write a film here (.mp4 or .gif).
    page: OutFile | None = None  # Write a self-contained HTML page with zoomable traces here.
    cfg: DropCfg = field(default_factory=DropCfg)
