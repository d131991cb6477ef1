"""loco-mujoco's npz: qpos of all joints with their names and kinds; objects in the file are never read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueup.core.documents import read_npz
from trueup.core.errors import TrueupError
from trueup.motion.motion import Motion, motion_of
from trueup.motion.readers.smpl import is_smpl, smpl_motion

_FREE, _BALL = 0, 1  # kinds of joints, as the engine numbers them


def read_motion_npz(path: Path, episode: int = 0, rate_hz: float | None = None) -> Motion:
    """Our own npz, SMPL joint positions, or one episode of loco-mujoco's."""
    arrays = read_npz(path, "motion", skip_objects=True)  # absent metadata, pickled observations
    if is_smpl(arrays):
        return smpl_motion(arrays, path, rate_hz)
    if "qpos" not in arrays:
        return motion_of(arrays, path)
    return _from_loco(arrays, path, episode)


def _from_loco(arrays: dict[str, NDArray[Any]], path: Path, episode: int) -> Motion:
    missing = [name for name in ("joint_names", "jnt_type", "frequency") if name not in arrays]
    if missing:
        raise TrueupError(f"has qpos but no {missing[0]!r}: no trajectory of loco-mujoco", file=path)
    kinds, names = arrays["jnt_type"].astype(int).tolist(), [str(name) for name in arrays["joint_names"].tolist()]
    if _BALL in kinds or kinds.count(_FREE) != 1 or kinds[0] != _FREE:
        raise TrueupError("needs one free joint, the first, and joints of one angle each", file=path, place="jnt_type")
    qpos = np.asarray(arrays["qpos"], float)
    ends = arrays.get("split_points", np.array([0, len(qpos)])).astype(int)
    if not 0 <= episode < len(ends) - 1:
        raise TrueupError(f"has {len(ends) - 1} episodes, asked for number {episode}", file=path)
    qpos = qpos[ends[episode] : ends[episode + 1]]
    if qpos.ndim != 2 or qpos.shape[1] != 7 + len(names) - 1:
        raise TrueupError(f"qpos {qpos.shape} does not fit {len(names)} joints", file=path, place="qpos")
    return Motion(
        rate_hz=float(arrays["frequency"]),
        root_pos=qpos[:, :3],
        root_quat=qpos[:, 3:7],
        joint_names=tuple(names[1:]),
        joint_pos=qpos[:, 7:],
        source=path.name,
    )
