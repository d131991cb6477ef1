"""Simulated sensors: encoder bias, noise and latency on joint and base signals.

The orientation of gravity in the IMU frame stands for an orientation estimate. Signals are sampled once per control
step; a reading with latency L is the linear interpolation between the samples around t - L.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import mujoco
import numpy as np
from numpy.typing import NDArray

from trueup.core.arrays import FloatArray
from trueup.core.errors import TrueupError
from trueup.core.rows import RowRandom
from trueup.policy.reading import Reading

if TYPE_CHECKING:
    from trueup.world.engines.simulation import Simulation

_BLOCK = 4  # samples whose noise is drawn together


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


class Sensors:
    """The sensors of one simulation: a short history of noisy samples and a latency per simulation.

    noise_scale  (nsim, 1) times the config's noise; None: one for all
    """

    noise_scale: FloatArray | None = None

    def __init__(self, sim: Simulation, cfg: SensorCfg) -> None:
        self._sim, self._cfg = sim, cfg
        n = sim.robot.spec.njoint
        base = [cfg.gyro_rad_s] * 3 + [cfg.gravity] * 3 if sim.free_base else []
        self._sigma = np.array([cfg.joint_pos_rad] * n + [cfg.joint_vel_rad_s] * n + base)
        self._noisy = bool(self._sigma.any())
        streams = ("sensor noise", "sensor noise at reset", "sensor latency")
        randoms = (RowRandom(sim.cfg.seed, stream, sim.nsim, sim.cfg.first_row) for stream in streams)
        self._noise, self._first_noise, self._latency_draw = randoms
        self._block = np.zeros((sim.nsim, _BLOCK, len(self._sigma)), np.float32)  # noise of samples to come
        self._at = np.array([0, _BLOCK])  # place of the newest sample in the ring, samples of the block that were taken
        self.latency_s = np.zeros(sim.nsim)
        depth = math.ceil(cfg.latency_s[1] / sim.control_dt - 1e-9) + 1
        self._ring = np.zeros((depth, sim.nsim, len(self._sigma)))
        self._imu = _imu_rotation(sim)

    def reset(self, ids: NDArray[np.intp] | None) -> None:
        """Draw latencies and fill the history with the present and noise."""
        rows = np.arange(self._sim.nsim) if ids is None else ids
        low, high = self._cfg.latency_s
        drawn = self._latency_draw.uniform(1, ids)[:, 0] if high > low else 0.0
        self.latency_s[rows] = low + (high - low) * drawn
        samples = np.empty((len(rows), len(self._sigma)))
        self._measure(ids, samples)
        if self._noisy:
            noise = self._sigma * self._first_noise.normal(len(self._sigma), ids)
            samples = samples + (noise if self.noise_scale is None else self.noise_scale[rows] * noise)
        self._ring[:, rows] = samples

    def sample(self) -> None:
        """Take one sample of every simulation."""
        newest, used = (self._at[0] + 1) % len(self._ring), self._at[1]
        sample = self._ring[newest]
        self._measure(None, sample)
        if self._noisy:
            if used == _BLOCK:  # noise of several samples at a time costs half as much as one by one
                drawn = self._noise.normal(_BLOCK * len(self._sigma)).reshape(self._block.shape)
                np.multiply(drawn, self._sigma, out=self._block, casting="same_kind")
                used = 0
            sample += self._block[:, used] if self.noise_scale is None else self.noise_scale * self._block[:, used]
            used += 1
        self._at[:] = newest, used

    def read(self) -> Reading:
        """The newest sample, or the one `latency_s` ago, of every simulation; arrays of the caller's own."""
        return self.peek(np.arange(self._sim.nsim))

    def peek(self, ids: NDArray[np.intp] | None = None) -> Reading:
        """What `read` returns, of rows `ids` (None: all); valid until the next sample or reset."""
        values = self._delayed() if len(self._ring) > 1 else self._ring[0]
        values = values if ids is None else values[ids]
        n, has_base = self._sim.robot.spec.njoint, self._sim.free_base
        return Reading(
            joint_pos=values[:, :n],
            joint_vel=values[:, n : 2 * n],
            gyro=values[:, 2 * n : 2 * n + 3] if has_base else None,
            gravity=values[:, 2 * n + 3 :] if has_base else None,
        )

    def memory(self) -> dict[str, NDArray[np.generic]]:
        """Live arrays for a checkpoint."""
        counters = {
            "noise": self._noise.counter,
            "first_noise": self._first_noise.counter,
            "draw": self._latency_draw.counter,
        }
        return {"ring": self._ring, "latency_s": self.latency_s, "block": self._block, "at": self._at, **counters}

    def _delayed(self) -> FloatArray:
        steps = self.latency_s / self._sim.control_dt
        whole = np.minimum(np.floor(steps).astype(np.intp), len(self._ring) - 1)
        fraction = (steps - whole)[:, None]
        rows = np.arange(self._sim.nsim)
        later = self._ring[(self._at[0] - whole) % len(self._ring), rows]
        earlier = self._ring[(self._at[0] - np.minimum(whole + 1, len(self._ring) - 1)) % len(self._ring), rows]
        return later + fraction * (earlier - later)

    def _measure(self, ids: NDArray[np.intp] | None, out: FloatArray) -> None:
        """Write a sample of rows `ids` (None: all), (rows, n), without noise."""
        sim, n = self._sim, self._sim.robot.spec.njoint
        rows = slice(None) if ids is None else ids
        motion = sim.motion.of(ids, again=True)
        np.add(motion.joint_pos, sim.encoder_bias[rows], out=out[:, :n])
        out[:, n : 2 * n] = motion.joint_vel
        if motion.base_vel is not None:
            out[:, 2 * n : 2 * n + 3] = _rotate(self._imu, motion.base_vel[:, 3:])
            out[:, 2 * n + 3 :] = _rotate(self._imu, motion.gravity)


def _imu_rotation(sim: Simulation) -> FloatArray | None:
    """imu_from_base as a matrix; None where the IMU is aligned with the base."""
    name = sim.robot.spec.imu
    if name is None:
        return None
    if mujoco.mj_name2id(sim.model, mujoco.mjtObj.mjOBJ_SITE, name) < 0:
        raise TrueupError(f"the model has no site {name!r} for the IMU", file=sim.robot.model_path, place="imu")
    matrix = np.zeros(9)
    mujoco.mju_quat2Mat(matrix, sim.model.site(name).quat)
    base_from_imu = matrix.reshape(3, 3)
    return None if np.array_equal(base_from_imu, np.eye(3)) else base_from_imu.T


def _rotate(matrix: FloatArray | None, vectors: FloatArray) -> FloatArray:
    """Rotate (n, 3) vectors without a BLAS call, whose rounding may depend on n."""
    if matrix is None:
        return vectors
    return (vectors[:, None, :] * matrix).sum(axis=2)
