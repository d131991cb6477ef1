"""Hypotheses about the robot's state estimate: a tilted or drifting orientation, wrong odometry.

The angle between the IMU's vertical and its own accelerometer is a straight line in time (a constant for a crooked
mounting, a slope for a drift). Whether that explains the mismatch is tested in simulation, with the log corrected.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product

import numpy as np
from scipy.spatial.transform import Rotation

from trueup.core.arrays import FloatArray
from trueup.data.log import Log
from trueup.gap.causes.search import Tested
from trueup.gap.mismatch import Model, losses
from trueup.gap.windows import LogWindows, has_odometry, is_acceleration
from trueup.policy.reading import gravity_in_body

_MATTERS_RAD = 0.04
_GUESSES = (-0.2, -0.1, 0.1, 0.2)  # rad, without an accelerometer
Tilt = tuple[float, float]


def try_state_estimate(
    model: Model, logs: Sequence[Log], cut: Callable[[Sequence[Log]], LogWindows], before: FloatArray
) -> Tested | None:
    """The best of: orientation corrected by a constant, by a drift, by both; odometry replaced by leg odometry."""
    tried: list[tuple[str, float, list[Log]]] = []
    if all("imu_quat" in log for log in logs):
        for constant, drift in _tilts(logs):
            angle = float(np.hypot(*constant) + np.hypot(*drift))
            words = f"the IMU's down is {_degrees(constant)} off at the begin and drifts by {_degrees(drift)}"
            tried.append((words, angle, [turned_back(log, constant, drift) for log in logs]))
    if all(has_odometry(log) for log in logs):
        tried.append(("odometry of the base is off: legs and IMU tell more", 1.0, [_without(log) for log in logs]))
    if not tried:
        return None
    found = []
    for words, angle, changed in tried:
        windows = cut(changed)
        found.append((words, angle, losses(model, windows, [{}])[0].sum(axis=1), windows.held))
    words, angle, after, _ = min(found, key=lambda one: float(one[2][~one[3]].sum()))
    return Tested(
        cause="state estimate", joints=(), size=angle, unit="rad", before=before, after=after,
        matters=angle > _MATTERS_RAD, evidence=words, numbers=2,
    )  # fmt: skip


def turned_back(log: Log, constant: Tilt, drift: Tilt) -> Log:
    """The log with its orientation corrected for a tilt of the IMU about its x and y axes."""
    done = (log.time - log.time[0]) / max(log.time[-1] - log.time[0], 1e-9)
    angle = np.zeros((len(log), 3))
    angle[:, :2] = np.array(constant) + done[:, None] * np.array(drift)
    quat = Rotation.from_quat(log["imu_quat"], scalar_first=True) * Rotation.from_rotvec(angle).inv()
    return replace(log, signals={**log.signals, "imu_quat": quat.as_quat(scalar_first=True)})


def tilt_by_acceleration(log: Log) -> tuple[Tilt, Tilt]:
    """Tilt at the begin and drift over the log, rad about x and y: accelerometer against orientation, on average."""
    up = log["imu_acc"] / np.median(np.linalg.norm(log["imu_acc"], axis=1))
    off = up + gravity_in_body(log["imu_quat"])
    done = (log.time - log.time[0]) / max(log.time[-1] - log.time[0], 1e-9)
    slope, begin = np.polyfit(done, np.column_stack([-off[:, 1], off[:, 0]]), 1)
    return (float(begin[0]), float(begin[1])), (float(slope[0]), float(slope[1]))


def _tilts(logs: Sequence[Log]) -> list[tuple[Tilt, Tilt]]:
    """Constant and drift to try."""
    none = (0.0, 0.0)
    if len(logs) > 1 or "imu_acc" not in logs[0] or not is_acceleration(logs[0]["imu_acc"]):
        axes = product(_GUESSES, (0, 1), (False, True))
        sides = [((size, 0.0) if axis == 0 else (0.0, size), drifts) for size, axis, drifts in axes]
        return [(none, one) if drifts else (one, none) for one, drifts in sides]
    begin, drift = tilt_by_acceleration(logs[0])
    middle = (begin[0] + 0.5 * drift[0], begin[1] + 0.5 * drift[1])
    whole = (begin[0] + drift[0], begin[1] + drift[1])
    return [(begin, drift), (middle, none), (none, whole)]


def _without(log: Log) -> Log:
    return replace(log, signals={name: v for name, v in log.signals.items() if name not in ("base_pos", "base_vel")})


def _degrees(tilt: Tilt) -> str:
    return f"{np.degrees(np.hypot(*tilt)):.1f} deg"
