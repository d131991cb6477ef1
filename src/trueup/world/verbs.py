"""Config of `trueup sim`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from trueup.core.outputs import OutFile


@dataclass(frozen=True, kw_only=True)
class SimVerb:
    """Drop a robot in simulation, hold its default pose, and film it; or replay logs with a saved fit.

    In: a robot (and, with --params, a calibration of it). Out: a film (--film), a page of traces (--page), and how it
    ended on the screen.
    In: logs, --robot and --params. Out: the errors of the fit and of the nominal model on these logs, open loop and in
    windows of 0.5 s, per joint and per log, and a page (--page); nothing is fitted.
    """

    what: tyro.conf.Positional[tuple[str, ...]]
    """A robot to drop (built-in name, or a folder, spec, MJCF or URDF of your own), or logs to replay."""
    robot: str | None = None
    """Whose logs they are."""
    mapping: str | None = None
    """For logs in CSV, NPZ, Parquet, HDF5: a shipped mapping's name or your own TOML."""
    seconds: float = 5.0
    """Simulated time."""
    film: OutFile | None = None
    """Write a film here (.mp4 or .gif)."""
    page: OutFile | None = None
    """Write a self-contained HTML page with zoomable traces here."""
    nsim: Annotated[int, tyro.conf.arg(aliases=["-n"])] = 1
    """How many simulations to step side by side."""
    randomize: bool = False
    """Give every simulation its own masses, friction, gains, delays and encoder biases."""
    params: Path | None = None
    """Folder or params.json of a calibration: scored on the logs; or a robot with its estimate, with --nsim N draws."""
    base: Annotated[str | None, tyro.conf.arg(metavar="{free,fixed}")] = None
    """Let the base go (free) or hold it in the air (fixed); default: as the robot's spec says."""
    drop_height: float = 0.10
    """Metres above standing height to drop a floating robot from."""
    seed: int = 0
    """Of everything random."""
    threads: int = 0
    """Physics threads; 0 takes every core."""
