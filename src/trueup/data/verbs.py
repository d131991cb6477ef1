"""Configs of `trueup data check|import|convert|recover`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import tyro

from trueup.core.files import OutEither, OutFile


@dataclass(frozen=True, kw_only=True)
class CheckVerb:
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
class ImportVerb:
    """Import tables (CSV, NPZ, Parquet, HDF5) as a log.

    In: files or a folder, and a mapping that says which column is which. Out: an MCAP log (a folder of them for a
    folder of recordings).
    """

    files: tyro.conf.Positional[tuple[Path, ...]]  # Files of one recording, or a folder of recordings.
    mapping: str  # A shipped mapping's name (go2_air, so101) or your own TOML.
    out: OutEither  # File to write (.mcap, .parquet, .csv, .npz), or a folder for several recordings.


@dataclass(frozen=True, kw_only=True)
class ConvertVerb:
    """Convert a log between MCAP, Parquet, CSV and NPZ without loss.

    In: a log. Out: the same log in the format that the suffix says.
    """

    source: tyro.conf.Positional[Path]  # Log to read.
    out: tyro.conf.Positional[OutFile]  # File to write.


@dataclass(frozen=True, kw_only=True)
class RecoverVerb:
    """Save what can be read of a cut or damaged MCAP log.

    In: a damaged file. Out: a clean, indexed copy, and how much was lost.
    """

    log: tyro.conf.Positional[Path]  # Damaged file; it is left as it is.
    out: OutFile | None = None  # Copy to write (default: beside it).
