"""Configs of `trueup gap` and `trueup predictions`; flags that are settings of the method are in `gap.config`."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path

import tyro

from trueup.core.files import OutFolder
from trueup.gap.config import GapCfg


@dataclass(frozen=True, kw_only=True)
class GapVerb:
    """Diagnose where simulator and robot differ, why, and which command fixes it.

    In: logs of the robot (in the air or walking) with commands and encoder positions, IMU on the ground; without
    commands, but with the policy that ran, distributions are compared. Out: ranked causes with the share each explains
    on
    parts of the log that it was not estimated on; DIR/result.json, DIR/index.html, and DIR/refit.json, which
    `trueup calibrate --refit` takes. Exit code 0: no cause found, 1: a cause was found.
    """

    logs: tyro.conf.Positional[tuple[Path, ...]]
    """Logs (MCAP, rosbag2, or tables with --mapping), robot.mcap of `trueup deploy`."""
    robot: str | None = None  # Built-in name, or your robot's folder or spec (default: what log or bundle name).
    bundle: Path | None = None  # Policy that ran; needed for a log without commands.
    params: Path | None = None  # Calibration that is diagnosed (default: the robot's nominal model).
    out: OutFolder | None = None  # Folder for result, page and refit request.
    mapping: str | None = None  # For CSV, NPZ, Parquet, HDF5: a shipped mapping's name or your own TOML.
    cfg: GapCfg = field(default_factory=GapCfg)


@dataclass(frozen=True)
class PredictionsVerb:
    """Score the predictions of `verify` against the robot's runs: falls, velocity error, power.

    In: a workspace of `trueup loop`, or any folder with certificates and recordings of `trueup deploy`. Out: a table of
    every run on the last rung with the predicted interval, the measured value and whether it lies inside; and
    over all of them the share inside and the score of the predicted falls (Brier).
    """

    workspace: tyro.conf.Positional[Path]  # The folder.
    _: KW_ONLY
    robot: str | None = None  # Name or folder; default: the one that recordings name.
    json: bool = False  # Print one JSON object instead of tables.
