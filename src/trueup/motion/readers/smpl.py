"""SMPL joint positions: (T, 22 or more, 3) in an npy or npz, as body models and text-to-motion tools give them.

Positions are all that is read: no body model, no shapes. Y up becomes z up by itself, since people stand more than they
lie. HumanML3D's `new_joints` are npy files at 20 Hz.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueup.core.arrays import FloatArray
from trueup.core.errors import TrueupError
from trueup.motion.motion import Motion

JOINTS = (
    "pelvis", "left_hip", "right_hip", "spine1", "left_knee", "right_knee", "spine2", "left_ankle", "right_ankle",
    "spine3", "left_foot", "right_foot", "neck", "left_collar", "right_collar", "head", "left_shoulder",
    "right_shoulder", "left_elbow", "right_elbow", "left_wrist", "right_wrist",
)  # fmt: skip
KEYS = ("joints", "smpl_joints", "joint_positions", "positions", "Jtr", "keypoints3d", "new_joints")
_RATES = ("fps", "mocap_framerate", "mocap_frame_rate", "frequency", "rate_hz")
_HEAD, _ANKLES = JOINTS.index("head"), (JOINTS.index("left_ankle"), JOINTS.index("right_ankle"))
MOST_BYTES = 500_000_000


def is_smpl(arrays: dict[str, NDArray[Any]]) -> bool:
    """Whether the arrays of an npz hold joint positions."""
    return any(key in arrays and arrays[key].ndim == 3 for key in KEYS) and "schema" not in arrays


def read_npy(path: Path, rate_hz: float | None) -> Motion:
    """Positions alone."""
    if path.stat().st_size > MOST_BYTES:
        raise TrueupError("is larger than 500 MB", file=path)
    try:
        found = np.load(path, allow_pickle=False)
    except Exception as error:  # the parser of array headers raises many kinds
        raise TrueupError(f"is no npy of numbers: {str(error)[:200]}", file=path) from None
    return smpl_motion({"joints": found}, path, rate_hz)


def smpl_motion(arrays: dict[str, NDArray[Any]], path: Path, rate_hz: float | None) -> Motion:
    """A skeleton's motion of an npz's arrays."""
    key = next(key for key in KEYS if key in arrays)
    found = np.asarray(arrays[key])
    if found.ndim != 3 or found.shape[1] < len(JOINTS) or found.shape[2] != 3 or found.dtype.kind not in "fiu":
        raise TrueupError(f"needs joint positions (T, {len(JOINTS)} or more, 3), found {found.shape}", file=path)
    rate = rate_hz or next((float(arrays[name]) for name in _RATES if name in arrays), None)
    if rate is None:
        raise TrueupError("does not say its rate: give --rate (HumanML3D: 20)", file=path)
    pos = _upright(np.asarray(found[:, : len(JOINTS)], np.float64))
    return Motion(
        rate_hz=rate,
        root_pos=pos[:, 0].copy(),
        root_quat=np.tile([1.0, 0, 0, 0], (len(pos), 1)),
        body_names=JOINTS,
        body_pos=pos,
        body_quat=np.tile([1.0, 0, 0, 0], (*pos.shape[:2], 1)),
        source=path.name,
    )


def _upright(pos: FloatArray) -> FloatArray:
    """With z up: y and z change places where heads are above ankles along y."""
    along = (pos[:, _HEAD] - pos[:, _ANKLES].mean(axis=1)).mean(axis=0)
    if np.isfinite(along).all() and abs(along[1]) > abs(along[2]):
        return np.stack([pos[..., 0], -pos[..., 2], pos[..., 1]], axis=-1)
    return pos
