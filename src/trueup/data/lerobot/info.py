"""meta/info.json of a LeRobot dataset: version, frame rate, features and the names of their columns.

Everything here is foreign text: sizes are limited, types checked, unknown keys ignored.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from trueup.core.documents import read_json
from trueup.core.errors import TrueupError, did_you_mean

VERSIONS = ("v2.0", "v2.1", "v3.0")
STATE, ACTION = "observation.state", "action"
MAX_TEXT_BYTES = 16 << 20  # of a JSON file
_MAX_COLUMNS = 1024
_SKIP = "-"


class Feature(msgspec.Struct, frozen=True):
    """One feature: type, shape, and names of its columns (a list, or a dictionary that holds one)."""

    dtype: str
    shape: tuple[int, ...]
    names: Any = None


class Info(msgspec.Struct, frozen=True):
    """The used part of meta/info.json."""

    codebase_version: str
    fps: float
    features: dict[str, Feature]
    robot_type: str | None = None
    total_episodes: int = 0
    total_frames: int = 0

    @property
    def cameras(self) -> tuple[str, ...]:
        """Features that are pictures or films."""
        return tuple(name for name, feature in self.features.items() if feature.dtype in ("video", "image"))


def is_dataset(path: str | Path) -> bool:
    """Whether a path is the folder of a LeRobot dataset."""
    return (Path(path) / "meta" / "info.json").is_file()


def read_info(root: Path) -> Info:
    """Read and check meta/info.json."""
    file = root / "meta" / "info.json"
    info = read_json(file, Info, "LeRobot dataset's meta/info.json", most_bytes=MAX_TEXT_BYTES)
    if info.codebase_version not in VERSIONS:
        known = ", ".join(VERSIONS)
        hint = f"this version reads {known}; LeRobot's own tools convert older ones"
        raise TrueupError(f"is a dataset of format {info.codebase_version[:20]!r}; {hint}", file=file)
    if not (math.isfinite(info.fps) and 0.1 <= info.fps <= 10_000.0):
        raise TrueupError(f"fps lies between 0.1 and 10000, found {info.fps}", file=file, place="fps")
    if STATE not in info.features:
        near = did_you_mean(STATE, list(info.features)[:100])
        raise TrueupError(f"has no feature {STATE!r}{near}: there are no joint positions", file=file)
    return info


def names_of(feature: Feature) -> tuple[str, ...] | None:
    """Names of a feature's columns, None when it does not name them all."""
    names = feature.names
    if isinstance(names, dict) and len(names) == 1:  # such as {"motors": [...]}
        names = next(iter(names.values()))
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        return None
    return tuple(names) if feature.shape == (len(names),) and len(names) <= _MAX_COLUMNS else None


def columns_of_joints(
    info: Info, feature_name: str, joint_names: tuple[str, ...], given: Sequence[str], file: Path
) -> tuple[int, ...]:
    """Which column of a feature is which joint, in the robot's order; () when no column is one of its joints.

    `given` names the columns where the dataset does not ("-": none of ours). LeRobot writes `shoulder_pan.pos`; before
    2025-06 `main_shoulder_pan`.
    """
    feature, place = info.features[feature_name], f"feature {feature_name!r}"
    names = tuple(given) or names_of(feature)
    if names is None:
        hint = "name its columns in order: --joints shoulder_pan shoulder_lift ... (- for one that is no joint)"
        raise TrueupError(f"does not name its {feature.shape} columns; {hint}", file=file, place=place)
    if given and feature.shape != (len(given),):
        raise TrueupError(f"--joints names {len(given)} columns, found shape {feature.shape}", file=file, place=place)
    found: dict[str, int] = {}
    for column, name in enumerate(names):
        joint = joint_of(name)
        if joint in joint_names and name != _SKIP:
            if joint in found:
                raise TrueupError(f"has two columns for joint {joint!r}", file=file, place=place)
            found[joint] = column
    if not found:
        return ()
    absent = [joint for joint in joint_names if joint not in found]
    if absent:
        others = [name for name in names if joint_of(name) not in joint_names]
        text = f"has {len(found)} of {len(joint_names)} joints: {', '.join(absent)} missing"
        raise TrueupError(f"{text}{did_you_mean(absent[0], others)}; --joints names columns", file=file, place=place)
    return tuple(found[joint] for joint in joint_names)


def joint_of(name: str) -> str:
    """The joint of a column's name: `shoulder_pan.pos` and `main_shoulder_pan` are shoulder_pan."""
    return name.removesuffix(".pos").removeprefix("main_")
