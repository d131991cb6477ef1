"""What a robot would report: encoder bias, noise and latency on joint and base signals.

The orientation of gravity in the IMU frame stands for an orientation estimate. Signals are sampled once per control
step; a reading with latency L is the linear interpolation between the samples around t - L.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from trueup.core.errors import TrueupError
from trueup.core.rows import RowRandom

if TYPE_CHECKING:
    from trueup.sim.batch import BatchSim

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class SensorCfg:
    """Standard deviations of noise, and the range that each simulation draws its latency from at reset."""

    joint_pos_rad: float = 0.0
    joint_vel_rad_s: float = 0.0
    gyro_rad_s: float = 0.0
    gravity: float = 0.0
    latency_s: tuple[float, float] = (0.0, 0.0)

    def __post_init__(self) -> None:
        low, high = self.latency_s
        if not 0.0 <= low <= high < math.inf:
            raise TrueupError(f"sensor latency must be 0 <= low <= high, found {self.latency_s}")
        if min(self.joint_pos_rad, self.joint_vel_rad_s, self.gyro_rad_s, self.gravity) < 0:
            raise TrueupError("sensor noise must not be negative")


@dataclass(frozen=True, kw_only=True)
class Observation:
    """One reading, (nsim, ...) each; gyro and gravity are in the IMU frame (absent on a held base)."""

    joint_pos: FloatArray
    joint_vel: FloatArray
    gyro: FloatArray | None
    gravity: FloatArray | None


class Sensors:
    """The sensors of one BatchSim: a short history of noisy samples and a latency per simulation."""

    def __init__(self, sim: BatchSim, cfg: SensorCfg) -> None:
        self._sim, self._cfg = sim, cfg
        n = sim.robot.spec.njoint
        base = [cfg.gyro_rad_s] * 3 + [cfg.gravity] * 3 if sim.free_base else []
        self._sigma = np.array([cfg.joint_pos_rad] * n + [cfg.joint_vel_rad_s] * n + base)
        self._noisy = bool(self._sigma.any())
        self._noise = RowRandom(sim.cfg.seed, "sensor noise", sim.nsim, sim.cfg.first_row)
        self._latency_draw = RowRandom(sim.cfg.seed, "sensor latency", sim.nsim, sim.cfg.first_row)
        self.latency_s = np.zeros(sim.nsim)
        depth = math.ceil(cfg.latency_s[1] / sim.control_dt - 1e-9) + 1
        self._ring = np.zeros((depth, sim.nsim, len(self._sigma)))
        self._newest = 0
        self._imu = _imu_rotation(sim)

    def reset(self, ids: NDArray[np.intp] | None) -> None:
        """Draw latencies and fill the history with the present."""
        rows = slice(None) if ids is None else ids
        low, high = self._cfg.latency_s
        self.latency_s[rows] = low + (high - low) * self._latency_draw.uniform(1, ids)[:, 0]
        self._ring[:, rows] = self._measure(ids)

    def sample(self) -> None:
        """Take one sample of every simulation."""
        self._newest = (self._newest + 1) % len(self._ring)
        self._ring[self._newest] = self._measure(None)

    def read(self) -> Observation:
        """The newest sample, or the one `latency_s` ago."""
        values = self._delayed() if len(self._ring) > 1 else self._ring[self._newest].copy()
        n = self._sim.robot.spec.njoint
        has_base = self._sim.free_base
        return Observation(
            joint_pos=values[:, :n],
            joint_vel=values[:, n : 2 * n],
            gyro=values[:, 2 * n : 2 * n + 3] if has_base else None,
            gravity=values[:, 2 * n + 3 :] if has_base else None,
        )

    def state(self) -> dict[str, NDArray[np.generic]]:
        """Arrays for a checkpoint."""
        return {
            "ring": np.roll(self._ring, -self._newest, axis=0),
            "latency_s": self.latency_s.copy(),
            "noise": self._noise.counter.copy(),
            "draw": self._latency_draw.counter.copy(),
        }

    def restore(self, state: Mapping[str, NDArray[np.generic]]) -> None:
        """Continue from `state`."""
        self._ring[:], self._newest = state["ring"], 0
        self.latency_s[:] = state["latency_s"]
        self._noise.counter[:] = state["noise"]
        self._latency_draw.counter[:] = state["draw"]

    def _delayed(self) -> FloatArray:
        steps = self.latency_s / self._sim.control_dt
        whole = np.minimum(np.floor(steps).astype(np.intp), len(self._ring) - 1)
        fraction = (steps - whole)[:, None]
        rows = np.arange(self._sim.nsim)
        later = self._ring[(self._newest - whole) % len(self._ring), rows]
        earlier = self._ring[
            (self._newest - np.minimum(whole + 1, len(self._ring) - 1)) % len(self._ring), rows
        ]
        return later + fraction * (earlier - later)

    def _measure(self, ids: NDArray[np.intp] | None) -> FloatArray:
        sim = self._sim
        rows = slice(None) if ids is None else ids
        parts = [sim.joint_pos[rows] + sim.encoder_bias[rows], sim.joint_vel[rows]]
        if sim.free_base:
            spin = sim.qvel[rows, sim.base_dof + 3 : sim.base_dof + 6]
            down = gravity_in_base(sim.qpos[rows, sim.base_qpos + 3 : sim.base_qpos + 7])
            parts += [_rotate(self._imu, spin), _rotate(self._imu, down)]
        values: FloatArray = np.concatenate(parts, axis=1)
        if self._noisy:
            values += self._sigma * self._noise.normal(len(self._sigma), ids)
        return values


def gravity_in_base(quat: FloatArray) -> FloatArray:
    """Direction of gravity in the base frame, (n, 3), from world_from_base quaternions (n, 4) w x y z."""
    w, x, y, z = np.ascontiguousarray(quat.T)
    return np.stack([-2 * (x * z - w * y), -2 * (y * z + w * x), -(1 - 2 * (x * x + y * y))], axis=1)


def _imu_rotation(sim: BatchSim) -> FloatArray | None:
    """imu_from_base as a matrix; None where the IMU is aligned with the base."""
    name = sim.robot.spec.imu
    if name is None:
        return None
    import mujoco

    if mujoco.mj_name2id(sim.model, mujoco.mjtObj.mjOBJ_SITE, name) < 0:
        raise TrueupError(
            f"the model has no site {name!r} for the IMU", file=sim.robot.model_path, place="imu"
        )
    matrix = np.zeros(9)
    mujoco.mju_quat2Mat(matrix, sim.model.site(name).quat)
    base_from_imu = matrix.reshape(3, 3)
    return None if np.array_equal(base_from_imu, np.eye(3)) else base_from_imu.T


def _rotate(matrix: FloatArray | None, vectors: FloatArray) -> FloatArray:
    """Rotate (n, 3) vectors without a BLAS call, whose rounding may depend on n."""
    if matrix is None:
        return vectors
    return (vectors[:, None, :] * matrix).sum(axis=2)
