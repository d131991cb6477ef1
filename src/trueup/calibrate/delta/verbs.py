"""`trueup calibrate delta`."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import tyro

from trueup.calibrate.delta.config import DeltaCfg
from trueup.core.files import OutFolder


@dataclass(frozen=True, kw_only=True)
class DeltaVerb:
    """Learn a delta action (ASAP): the correction of a policy's targets that aligns the simulator with the robot.

    In: logs of a policy (or an excitation) on the robot with commands, encoders and, of a robot on its feet, the IMU;
    base pose from motion capture or odometry is used where a log has it. Out: DIR/delta.json and DIR/delta.safetensors,
    DIR/result.json with errors after 0.25, 0.5 and 1 s on the held-out ends of the logs, with and without it. Then:
    `trueup train TASK --from RUN --delta DIR` fine-tunes under it; the policy is deployed without it.
    """

    logs: tyro.conf.Positional[tuple[Path, ...]]  # Logs (MCAP, rosbag2, or tables with --mapping).
    robot: str  # Built-in name, or your robot's folder or spec.
    out: OutFolder  # Folder for the result.
    params: Path | None = None  # Calibration of the simulator that is corrected (default: the robot as it is).
    holdout: tuple[Path, ...] = ()  # Logs to score on (default: the ends of the logs).
    baselines: bool = False
    """Fit and score other methods on the same logs: noise, randomisation, identification, delta dynamics, UAN, and the
    delta action by both its methods."""
    page: bool = True  # Write DIR/index.html.
    mapping: str | None = None  # For CSV, NPZ, Parquet, HDF5: a shipped mapping's name or your own TOML.
    cfg: DeltaCfg = field(default_factory=DeltaCfg)
