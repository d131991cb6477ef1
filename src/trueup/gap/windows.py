"""A log cut into short windows that start in measured states, half to estimate causes on, half held out.

A floating base is taken from odometry where the log has it. Without, orientation and spin are the IMU's; height and
velocity come from the legs: the lowest feet touch the ground and stand still, so v = -R (w x p + dp/dt) of each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from trueup.core.arrays import FloatArray
from trueup.core.errors import TrueupError
from trueup.data.log import Log
from trueup.data.resample import rate_of
from trueup.policy.reading import gravity_in_body
from trueup.robot.load import Robot
from trueup.robot.model import ModelCfg
from trueup.world.batch import BatchSim, SimCfg
from trueup.world.replay.playback import Recorded
from trueup.world.replay.tracks import Tracks, lay_tracks

Rows = NDArray[np.intp]
_SOFT_M = 0.006  # feet within this height of the lowest count as standing
PAST_S = 0.06


@dataclass(frozen=True, kw_only=True)
class Windows:
    """Stretches of a log: commands from measured states, and what the sensors reported after each command.

    measured  (W, L, njoint) rad; gyro (W, L, 3) rad/s and gravity (W, L, 3) in the IMU's frame, None: not compared
    late      (W,) 0 at the begin of the log, 1 at its end; warm (W, njoint) share of the highest temperature rise
    held      (W,) windows that causes are judged on
    """

    rate_hz: float
    recorded: Recorded
    measured: FloatArray
    gyro: FloatArray | None
    gravity: FloatArray | None
    late: FloatArray
    warm: FloatArray
    held: NDArray[np.bool_]

    @property
    def count(self) -> int:
        return len(self.measured)


def joined(parts: Sequence[Windows]) -> Windows:
    """Windows of several logs of one rate and length; those of logs whose gains change step by step fill all."""
    if len(parts) == 1:
        return parts[0]
    length = parts[0].measured.shape[1]

    def whole(values: Sequence[FloatArray | None]) -> FloatArray | None:
        known = [one for one in values if one is not None]
        if len(known) < len(values):
            return None
        if len({one.ndim for one in known}) > 1:  # gains: some constant, some not
            known = [one if one.ndim == 3 else np.repeat(one[:, None], length, axis=1) for one in known]
        return np.concatenate(known)

    names = [one.name for one in fields(Recorded) if one.name != "history"]
    given = {name: [getattr(part.recorded, name) for part in parts] for name in names}
    for name in ("target_vel", "torque"):
        if any(one is not None for one in given[name]):
            shapes = [part.recorded.target.shape for part in parts]
            given[name] = [np.zeros(s) if v is None else v for v, s in zip(given[name], shapes, strict=True)]
    more = {name: whole([getattr(part, name) for part in parts]) for name in ("gyro", "gravity")}
    same = {name: np.concatenate([getattr(part, name) for part in parts]) for name in ("measured", "late", "warm")}
    return Windows(
        rate_hz=parts[0].rate_hz,
        recorded=Recorded(**{name: whole(values) for name, values in given.items()}),  # type: ignore[arg-type]
        held=np.concatenate([part.held for part in parts]),
        **same,
        **more,
    )


def some(windows: Windows, at: Rows) -> Windows:
    """A few of the windows."""
    arrays = {one.name: getattr(windows.recorded, one.name) for one in fields(Recorded) if one.name != "history"}
    chosen = {name: values[at] for name, values in arrays.items() if values is not None}
    names = ("measured", "gyro", "gravity", "late", "warm", "held")
    own = {name: getattr(windows, name)[at] for name in names if getattr(windows, name) is not None}
    return replace(windows, recorded=replace(windows.recorded, **chosen), **own)


def is_walking(robot: Robot, log: Log) -> bool:
    """Whether the base moved freely: its IMU turned, or odometry says that it moved."""
    if not robot.spec.base.floating:
        return False
    if "imu_gyro" in log and float(np.sqrt(np.mean(np.square(log["imu_gyro"])))) > 0.05:
        return True
    return "base_pos" in log and float(np.ptp(log["base_pos"], axis=0).max()) > 0.05


def cut(robot: Robot, log: Log, *, walking: bool, window_s: float, most: int) -> Windows:
    """Cut one log, in the spec's joint order and on an even clock; windows go in pairs to both halves."""
    rate = rate_of(log)
    length = max(2, round(window_s * rate))
    tracks = lay_tracks(robot, [log], start="measured" if walking and "joint_vel" in log else "smoothed")
    margin = max(2, round(PAST_S * rate))
    last = len(log) - length - 2
    if last <= margin:
        raise TrueupError(f"a log of {len(log) / rate:.2f} s is too short for windows of {window_s} s")
    at = np.unique(np.linspace(margin, last, min(most, max(2, (last - margin) // length * 2))).astype(np.intp))
    rows = at[:, None] + 1 + np.arange(length)
    recorded = tracks.recorded(at, length, past=margin)
    gyro = gravity = None
    if walking:
        place, speed = _base(robot, log, tracks, at)
        recorded = replace(recorded, base_pos=place, base_vel=speed)
        gyro = log["imu_gyro"][rows] if "imu_gyro" in log else None
        quat = _quat(log)
        gravity = gravity_in_body(quat[rows].reshape(-1, 4)).reshape(*rows.shape, 3)
    late = (at - at[0]) / max(1, at[-1] - at[0])
    return Windows(
        rate_hz=rate,
        recorded=replace(recorded, history=None),
        measured=log["joint_pos"][rows],
        gyro=gyro,
        gravity=gravity,
        late=late,
        warm=_warmth(log, at, late),
        held=np.arange(len(at)) // 2 % 2 == 1,
    )


def _quat(log: Log) -> FloatArray:
    for name in ("imu_quat", "base_quat"):
        if name in log:
            return log[name]
    raise TrueupError("a log of a robot on the ground needs the IMU's orientation (imu_quat) or odometry (base_quat)")


def _warmth(log: Log, at: Rows, late: FloatArray) -> FloatArray:
    """Temperature rise of each joint over the highest; time where no temperature was logged or none rose."""
    njoint = len(log.joint_names)
    if "joint_temperature" in log and np.isfinite(log["joint_temperature"]).all():
        rise = log["joint_temperature"][at] - log["joint_temperature"].min(axis=0)
        if rise.max() > 2.0:
            return rise / rise.max()
    return np.repeat(late[:, None], njoint, axis=1)


def _base(robot: Robot, log: Log, tracks: Tracks, at: Rows) -> tuple[FloatArray, FloatArray]:
    """Pose (n, 7) and velocity (n, 6) of the base at rows."""
    quat = _quat(log)[at]
    spin = log["imu_gyro"][at] if "imu_gyro" in log else np.zeros((len(at), 3))
    if all(name in log for name in ("base_pos", "base_vel")):
        place, velocity = log["base_pos"][at], log["base_vel"][at]
    else:
        place, velocity = leg_odometry(robot, quat, spin, tracks.pos, tracks.vel, at)
    return np.hstack([place, quat]), np.hstack([velocity, spin])


def leg_odometry(
    robot: Robot, quat: FloatArray, spin: FloatArray, pos: FloatArray, vel: FloatArray, at: Rows
) -> tuple[FloatArray, FloatArray]:
    """Position (n, 3) above flat ground and world velocity (n, 3) of the base, from legs that stand."""
    step, n = 1e-3, len(at)
    feet = _feet_in_base(robot, np.concatenate([pos[at], pos[at] + step * vel[at]]))
    now, then = feet[:n], feet[n:]
    world_from_base = Rotation.from_quat(quat, scalar_first=True).as_matrix()
    height = np.einsum("nij,nfj->nfi", world_from_base, now)[..., 2] - _radii(robot)
    weight = np.exp(-(height - height.min(axis=1, keepdims=True)) / _SOFT_M)
    weight /= weight.sum(axis=1, keepdims=True)
    slide = (then - now) / step + np.cross(spin[:, None], now)
    velocity = -np.einsum("nij,nfj,nf->ni", world_from_base, slide, weight)
    place = np.zeros((n, 3))
    place[:, 2] = -height.min(axis=1)
    return place, velocity


def _feet_in_base(robot: Robot, pos: FloatArray) -> FloatArray:
    """Feet (n, nfeet, 3) in the base frame at joint positions (n, njoint)."""
    sim = BatchSim(robot, SimCfg(nsim=len(pos), threads=1, model=ModelCfg(base="free")))
    qpos = np.broadcast_to(sim.default_qpos, (len(pos), sim.model.nq)).copy()
    qpos[:, sim.base_qpos : sim.base_qpos + 7] = (0.0, 0.0, 5.0, 1.0, 0.0, 0.0, 0.0)
    qpos[:, sim.index.qpos] = pos
    where = sim.batch.bind("geom_xpos")
    sim.reset(qpos=qpos)
    ids = [sim.model.geom(name).id for name in robot.spec.feet]
    return np.array(where.reshape(len(pos), -1, 3)[:, ids]) - (0.0, 0.0, 5.0)


def _radii(robot: Robot) -> FloatArray:
    model = BatchSim(robot, SimCfg(threads=1, model=ModelCfg(base="free"))).model
    return np.array([model.geom(name).size[0] for name in robot.spec.feet])
