"""Configs of `trueup robot list|inspect|init`; `export` is calibrate's."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import tyro

from trueup.core.files import OutFolder


@dataclass(frozen=True, kw_only=True)
class ListVerb:
    """List the built-in robots.

    In: nothing. Out: name, joints, rates and options of each.
    """

    json: bool = False  # Print one JSON object instead of a table.


@dataclass(frozen=True, kw_only=True)
class InspectVerb:
    """Print a robot's joints, limits and masses, and problems with them.

    In: a robot (built in, or your MJCF, URDF, spec or folder). Out: tables and a verdict; exit code 1 if not usable.
    """

    robot: tyro.conf.Positional[str]  # Built-in name, or a folder, spec, MJCF or URDF of your own.
    root: Path | None = None
    """Folder that meshes of an MJCF or URDF may be read from (default: the folder of the file, and its ROS package)."""
    json: bool = False  # Print one JSON object instead of tables.


@dataclass(frozen=True, kw_only=True)
class InitVerb:
    """Turn an MJCF or URDF into a robot folder with a spec to edit.

    In: a model file. Out: a folder with model, assets and spec.toml, used like a built-in robot from then on.
    """

    model: tyro.conf.Positional[Path]  # MJCF (.xml) or URDF (.urdf).
    out: OutFolder  # Folder to write.
    root: Path | None = None
    """Folder that meshes may be read from (default: the folder of the file, and its ROS package)."""
    force: bool = False  # Write into a folder that already holds files.
