"""Motions in pickles: ASAP's and PHC's dictionaries of motions, and those of general retargeting tools."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from trueup.core.arrays import FloatArray
from trueup.core.errors import TrueupError, did_you_mean
from trueup.motion.motion import Motion
from trueup.motion.readers.safe_pickle import read_pickle
from trueup.robot.spec import RobotSpec

# names that the tools give: root position, root quaternion x y z w, joints, rate
_POSITION = ("root_trans_offset", "root_pos", "root_trans")
_ROTATION = ("root_rot", "root_quat")
_JOINTS = ("dof", "dof_pos", "joint_pos")
_RATE = ("fps", "frequency", "rate_hz", "mocap_framerate")


def read_pickled(path: Path, spec: RobotSpec, rate_hz: float | None = None, name: str | None = None) -> Motion:
    """One motion of a pickle, `name` where it holds several; joints are in the robot's order."""
    content = read_pickle(path)
    if not isinstance(content, dict):
        raise TrueupError(f"holds a {type(content).__name__}, not a dictionary of motions", file=path)
    label, found = _chosen(content, name, path)
    joints = _array(found, _JOINTS, path)
    joints = joints.reshape(len(joints), -1)
    names = tuple(str(one) for one in found.get("joint_names", spec.joint_names))
    if joints.shape[1] != len(names):
        raise TrueupError(
            f"motion {label!r} has {joints.shape[1]} joints, robot {spec.name!r} {len(names)}: name the robot it was "
            "made for (g1_23 has no wrists)",
            file=path,
        )
    rate = rate_hz or next((float(found[key]) for key in _RATE if key in found), None)
    if rate is None:
        raise TrueupError(f"motion {label!r} does not say its rate: give --rate", file=path)
    return Motion(
        rate_hz=rate,
        root_pos=_array(found, _POSITION, path).reshape(-1, 3),
        root_quat=_array(found, _ROTATION, path).reshape(-1, 4)[:, [3, 0, 1, 2]],
        joint_names=names,
        joint_pos=joints,
        source=f"{path.name}:{label}",
    )


def _chosen(content: dict[Any, Any], name: str | None, path: Path) -> tuple[str, dict[str, Any]]:
    if any(key in content for key in _JOINTS):
        return path.stem, content
    motions = {str(key): value for key, value in content.items() if isinstance(value, dict)}
    if name is None and len(motions) == 1:
        name = next(iter(motions))
    if name not in motions:
        known = ", ".join(list(motions)[:8])
        asked = "name one with --name" if name is None else f"no motion {name!r}{did_you_mean(name, motions)}"
        raise TrueupError(f"holds {len(motions)} motions ({known}): {asked}", file=path)
    return name, motions[name]


def _array(found: dict[str, Any], names: tuple[str, ...], path: Path) -> FloatArray:
    for name in names:
        if name in found:
            return np.asarray(found[name], float)
    raise TrueupError(f"has none of {', '.join(names)}; it has {', '.join(map(str, found))}", file=path)
