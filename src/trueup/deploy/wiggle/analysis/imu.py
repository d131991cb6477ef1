"""IMU of a robot that is held still: do accelerometer, orientation and mounting agree about where down is?"""

from __future__ import annotations

import numpy as np

from trueup.core.arrays import FloatArray
from trueup.deploy.wiggle.analysis.finding import WiringFinding
from trueup.deploy.wiggle.analysis.limb_model import LimbModel, rotation
from trueup.deploy.wiggle.cfg import WiggleCfg
from trueup.deploy.wiggle.motion.trace import Trace

GRAVITY = 9.81
_AGREE_RAD = 0.1  # between accelerometer and orientation
_MAGNITUDE = 0.08  # relative error of the accelerometer


def gravity_in_base(trace: Trace, limbs: LimbModel | None) -> FloatArray:
    """Gravity (3,) in the base frame as the accelerometer has it; straight down where there is none."""
    mean = _mean_acc(trace)
    if limbs is None or mean is None or np.linalg.norm(mean) < 1.0:
        return np.array([0.0, 0.0, -GRAVITY])
    down: FloatArray = -GRAVITY * (limbs.base_from_imu @ mean) / np.linalg.norm(mean)
    return down


def imu_findings(trace: Trace, limbs: LimbModel | None, cfg: WiggleCfg) -> list[WiringFinding]:
    """What is wrong with the IMU, in words."""
    mean = _mean_acc(trace)
    if mean is None:
        return []
    found, size = [], float(np.linalg.norm(mean))
    quats = np.array([quat for quat, _ in trace.imu])
    if not np.isfinite(mean).all() or not np.isfinite(quats).all():
        return [_finding("the IMU reports numbers that are not finite")]
    if np.abs(np.linalg.norm(quats, axis=1) - 1.0).max() > 0.01:
        norm = float(np.linalg.norm(quats, axis=1).min())
        return [
            _finding(f"the IMU's quaternion has length {norm:.3f} instead of 1: is it w x y z, and does it arrive?")
        ]
    if abs(size / GRAVITY - 1.0) > _MAGNITUDE:
        found.append(
            _finding(f"the accelerometer reads {size:.2f} m/s^2 on a robot held still: unit or scale is wrong")
        )
    up = np.mean([rotation(quat).T[:, 2] for quat in quats], axis=0)
    away = _angle(mean, up)
    if away > _AGREE_RAD:
        found.append(
            _finding(
                f"orientation and accelerometer disagree about where up is by {away:.2f} rad: is the quaternion "
                "w x y z and world_from_imu, and is the IMU's frame the one of the spec?"
            )
        )
    mount = np.eye(3) if limbs is None else limbs.base_from_imu
    tilt = _angle(mount @ mean, np.array([0.0, 0.0, 1.0]))
    if tilt > cfg.tilt_rad:
        found.append(
            _finding(
                f"gravity lies {tilt:.2f} rad from the base's vertical (allowed: {cfg.tilt_rad:g}): hold the robot "
                "level, or the IMU is mounted otherwise than the model says"
            )
        )
    return found


def _mean_acc(trace: Trace) -> FloatArray | None:
    if not trace.imu:
        return None
    mean: FloatArray = np.mean([acc for _, acc in trace.imu], axis=0)
    return mean


def _angle(a: FloatArray, b: FloatArray) -> float:
    size = float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(np.arccos(np.clip(a @ b / max(size, 1e-12), -1.0, 1.0)))


def _finding(text: str) -> WiringFinding:
    return WiringFinding(kind="imu", joints=(), text=text)
