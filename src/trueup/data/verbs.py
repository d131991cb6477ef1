"""Configs of `trueup data check|import|convert|recover`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import tyro

from trueup.core.files import OutEither, OutFile


@dataclass(frozen=True, kw_only=True)
class CheckLogVerb:
    """Check a log: clock, units, joint order, command pairing, sensors, limits, excitation.

    In: a log (MCAP, rosbag2, or a table with its mapping). Out: findings, worst first, each with evidence, consequence
    and fix; exit code 1 if the log is not usable.
    """

    log: tyro.conf.Positional[Path]  # Log file.
    robot: str | None = None  # Compare with this robot too: joint order, sign, limits.
    mapping: str | None = None  # For CSV, NPZ, Parquet, HDF5: a shipped mapping's name or your own TOML.
    page: OutFile | None = None  # Also write a self-contained HTML page with traces and findings.
    json: bool = False  # Print one JSON object.


@dataclass(frozen=True, kw_only=True)
class ImportLogVerb:
    """Import tables (CSV, NPZ, Parquet, HDF5) or a LeRobot dataset as logs.

    In: files or a folder, and a mapping that says which column is which; or the folder of a LeRobot dataset (v2.0, v2.1
    or v3.0), its robot and its units. Out: an MCAP log (a folder of them for several recordings or episodes).
    """

    files: tyro.conf.Positional[tuple[Path, ...]]  # Files of one recording, a folder of recordings, or a dataset.
    out: OutEither  # File to write (.mcap, .parquet, .csv, .npz), or a folder for several recordings.
    mapping: str | None = None  # A shipped mapping's name (go2_air, so101) or your own TOML; tables need one.
    robot: str | None = None  # LeRobot dataset: the robot that it was recorded on (so101).
    units: Literal["degrees", "normalised", "radians"] | None = None
    """LeRobot dataset: degrees (use_degrees=true), normalised (-100..100), or radians; the dataset does not say."""
    joints: tuple[str, ...] = ()
    """LeRobot dataset: names of its columns in order, if it has none (- for a column that is no joint)."""
    calibration: Path | None = None  # LeRobot dataset: the arm's calibration file, for normalised units.
    episodes: tuple[int, ...] = ()  # LeRobot dataset: which episodes; all if none is named.


@dataclass(frozen=True, kw_only=True)
class ConvertVerb:
    """Convert a log between MCAP, Parquet, CSV and NPZ without loss, or what `trueup deploy` recorded into MCAP.

    In: a log; or policy.rows (or the folder of a run). Out: the same log in the format that the suffix says; or an MCAP
    file of everything that the policy saw and computed, and of the guard's events, for PlotJuggler and Foxglove.
    """

    source: tyro.conf.Positional[Path]  # Log to read; policy.rows, or the folder of a run of `trueup deploy`.
    out: tyro.conf.Positional[OutFile]  # File to write.


@dataclass(frozen=True, kw_only=True)
class RecoverVerb:
    """Save what can be read of a cut or damaged MCAP log.

    In: a damaged file. Out: a clean, indexed copy, and how much was lost.
    """

    log: tyro.conf.Positional[Path]  # Damaged file; it is left as it is.
    out: OutFile | None = None  # Copy to write (default: beside it).
