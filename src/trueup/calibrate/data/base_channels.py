"""The floating base in a fit: where it starts, what of it is compared, and with which noise."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from trueup.calibrate.data.noise import position_noise
from trueup.core.errors import TrueupError
from trueup.data.log import Log

FloatArray = NDArray[np.float64]
_Part = dict[str, "FloatArray | NDArray[np.bool_]"]
BASE_CHANNELS = 12  # position, rotation vector, velocity, turning rate; three each
_SIGNALS = ("base_pos", "base_quat", "base_vel", "imu_gyro")


def need_base(logs: Sequence[Log]) -> None:
    """Refuse logs without the state of their base."""
    for log in logs:
        for name in _SIGNALS:
            if name not in log:
                raise TrueupError(
                    f"a free base needs {', '.join(_SIGNALS)} in the log, {name!r} is missing; record with odometry "
                    "(or motion capture), or hold the base in the air and fit with base fixed",
                    place=name,
                )


def base_part(
    part: _Part, log: Log, start: NDArray[np.intp], rows: NDArray[np.intp], keep: NDArray[np.bool_]
) -> _Part:
    """Add start state and channels of the base to a log's windows."""
    after = rows + 1
    moving = [log[name][after] for name in ("base_pos", "base_vel", "imu_gyro")]
    measured = [moving[0], np.zeros_like(moving[0]), *moving[1:]]
    turn = np.full(3, 2.0 * position_noise(log["base_quat"]).max())
    noise = [position_noise(log[name]) for name in ("base_pos", "base_vel", "imu_gyro")]
    part["base_pos"] = np.concatenate([log["base_pos"], log["base_quat"]], axis=1)[start]
    part["base_vel"] = np.concatenate([log["base_vel"], log["imu_gyro"]], axis=1)[start]
    part["base_quat"] = log["base_quat"][after]
    part["measured"] = np.concatenate([part["measured"], *measured], axis=-1)
    part["judged"] = np.concatenate(
        [part["judged"], np.repeat(keep[:, :, None], BASE_CHANNELS, axis=2)], axis=-1
    )
    part["sigma"] = np.concatenate([part["sigma"], noise[0], turn, noise[1], noise[2]])
    return part


def base_seen(qpos: FloatArray, qvel: FloatArray, measured_quat: FloatArray) -> FloatArray:
    """(..., 12) channels of a simulated base: qpos (..., 7), qvel (..., 6), against measured (..., 4)."""
    turn = rotation_between(measured_quat, qpos[..., 3:7])
    return np.concatenate([qpos[..., :3], turn, qvel], axis=-1)


def rotation_between(a: FloatArray, b: FloatArray) -> FloatArray:
    """Rotation vector (..., 3) that takes orientation a to b (w x y z), in a's frame."""
    aw, av = a[..., :1], -a[..., 1:]
    bw, bv = b[..., :1], b[..., 1:]
    w = aw * bw - (av * bv).sum(axis=-1, keepdims=True)
    v = aw * bv + bw * av + np.cross(av, bv)
    v, w = np.where(w < 0, -v, v), np.abs(w)
    size = np.linalg.norm(v, axis=-1, keepdims=True)
    angle = 2.0 * np.arctan2(size, w)
    scale: FloatArray = np.where(size > 1e-9, angle / np.maximum(size, 1e-12), 2.0)
    return scale * v
