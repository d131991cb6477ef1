"""Base of a walking robot at chosen rows of a log, from encoders and IMU alone, on flat ground.

Standing feet do not move: v = -R (w x p + dp/dt) of each, weighted by how close it is to the lowest one, and the
lowest one gives the height. Feet also slip, land and press into the ground, so that this is off by a decimetre per
second at times; the accelerometer shows changes well and the mean velocity not at all. A Kalman smoother over half a
second around each row combines both:

    x = (v, z);  v' = R a - g, z' = v_z (process);  v and z by the legs (measurement)
"""

from __future__ import annotations

import mujoco
import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from trueup.core.arrays import FloatArray
from trueup.robot.load import Robot
from trueup.robot.model import ModelCfg
from trueup.world.batch import BatchSim, SimCfg

Rows = NDArray[np.intp]
_SOFT_M = 0.006  # feet within this height of the lowest one count as standing
_BEFORE_S, _AFTER_S = 0.4, 0.1
# standard deviations: of velocity and height by the legs (m/s, m), of the accelerometer, or of motion without it (m/s2)
_LEG, _LEG_UP, _HEIGHT, _ACC, _NO_ACC, _SETTLING = 0.1, 0.3, 0.005, 1.0, 8.0, 0.0005
_GRAVITY = np.array([0.0, 0.0, 9.81])
_STAND_S = 1.0
BASE_NOISE = (0.004, 0.03)  # m of height and m/s of velocity: left over on twins that walk


def base_at(
    robot: Robot, quat: FloatArray, spin: FloatArray, acc: FloatArray | None, pos: FloatArray, vel: FloatArray,
    at: Rows, rate_hz: float,
) -> tuple[FloatArray, FloatArray]:  # fmt: skip
    """Position (n, 3) above flat ground and world velocity (n, 3) of the base at rows of signals (T, ...)."""
    reach = np.arange(-round(_BEFORE_S * rate_hz), round(_AFTER_S * rate_hz) + 1)
    rows = np.clip(at[:, None] + reach, 0, len(pos) - 1)
    flat, used = rows.ravel(), np.unique(rows)
    velocity, spread, height = by_legs(robot, quat[used], spin[used], pos[used], vel[used])
    of = np.searchsorted(used, rows)
    measured = np.column_stack([velocity, height])[of]
    noise = np.tile(np.square([_LEG, _LEG, _LEG_UP, _HEIGHT]), (*rows.shape, 1))
    noise[..., :3] += np.square(spread)[of]
    pushed = np.zeros((*rows.shape, 3))
    if acc is not None:
        turned = Rotation.from_quat(quat[flat], scalar_first=True).apply(acc[flat]) - _GRAVITY
        pushed = turned.reshape(*rows.shape, 3)
    dt = np.diff(rows, axis=1) / rate_hz  # 0 beyond the log's ends
    found = _smoothed(measured, noise, pushed, dt, _NO_ACC if acc is None else _ACC, int(-reach[0]))
    place = np.zeros((len(at), 3))
    place[:, 2] = found[:, 3]
    return place, found[:, :3]


def by_legs(
    robot: Robot, quat: FloatArray, spin: FloatArray, pos: FloatArray, vel: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """World velocity (n, 3) of the base by its standing feet, how far they disagree (n, 3), and its height (n,)."""
    step, n = 1e-3, len(pos)
    feet = feet_in_base(robot, np.concatenate([pos, pos + step * vel]))
    now, then = feet[:n], feet[n:]
    world_from_base = Rotation.from_quat(quat, scalar_first=True).as_matrix()
    radii, sunk = _soles(robot)
    above = np.einsum("nij,nfj->nfi", world_from_base, now)[..., 2] - radii
    weight = np.exp(-(above - above.min(axis=1, keepdims=True)) / _SOFT_M)
    weight /= weight.sum(axis=1, keepdims=True)
    slide = (then - now) / step + np.cross(spin[:, None], now)
    each = -np.einsum("nij,nfj->nfi", world_from_base, slide)
    velocity = np.einsum("nfi,nf->ni", each, weight)
    spread = np.sqrt(np.einsum("nfi,nf->ni", np.square(each - velocity[:, None]), weight))
    bearing = 1.0 / np.square(weight).sum(axis=1)  # number of standing feet, 1 to all
    return velocity, spread, -above.min(axis=1) - sunk * weight.shape[1] / bearing


def feet_in_base(robot: Robot, pos: FloatArray) -> FloatArray:
    """Feet (n, nfeet, 3) in the base frame at joint positions (n, njoint): kinematics alone, row by row."""
    sim = BatchSim(robot, SimCfg(nsim=1, threads=1, model=ModelCfg(base="free")))
    model, data = sim.model, mujoco.MjData(sim.model)
    ids, columns = [model.geom(name).id for name in robot.spec.feet], sim.index.qpos
    data.qpos[:] = sim.default_qpos
    data.qpos[sim.base_qpos : sim.base_qpos + 7] = (0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0)
    out = np.empty((len(pos), len(ids), 3))
    for k, row in enumerate(pos):
        data.qpos[columns] = row
        mujoco.mj_kinematics(model, data)
        out[k] = data.geom_xpos[ids]
    return out


def _smoothed(
    measured: FloatArray, noise: FloatArray, pushed: FloatArray, dt: FloatArray, acc_noise: float, row: int
) -> FloatArray:
    """State (n, 4) at one row of every stretch, by a Kalman filter forwards and Rauch's smoother backwards.

    measured, noise  (n, L, 4) and their variances; pushed (n, L, 3) accelerations, dt (n, L - 1)
    """
    eye = np.eye(4)
    x, p = measured[:, 0], 4.0 * noise[:, 0, :, None] * eye
    states, predicted = [(x, p)], []
    for k in range(dt.shape[1]):
        f = np.tile(eye, (len(x), 1, 1))
        f[:, 3, 2] = dt[:, k]
        q = np.zeros_like(p)
        q[:, range(3), range(3)] = np.square(acc_noise * dt[:, k, None])
        q[:, 3, 3] = _SETTLING**2
        x = np.einsum("nij,nj->ni", f, x)
        x[:, :3] += 0.5 * (pushed[:, k] + pushed[:, k + 1]) * dt[:, k, None]
        p = f @ p @ f.transpose(0, 2, 1) + q
        predicted.append((x, p, f))
        gain = p @ np.linalg.inv(p + noise[:, k + 1, :, None] * eye)
        x = x + np.einsum("nij,nj->ni", gain, measured[:, k + 1] - x)
        p = (eye - gain) @ p
        states.append((x, p))
    out = states[-1][0]
    for k in range(len(states) - 2, row - 1, -1):
        before, spread = states[k]
        ahead, wider, f = predicted[k]
        back = spread @ f.transpose(0, 2, 1) @ np.linalg.inv(wider)
        out = before + np.einsum("nij,nj->ni", back, out - ahead)
    return out


def _soles(robot: Robot) -> tuple[FloatArray, float]:
    """Radii of the feet, and how far they press into the simulated ground while the robot stands."""
    sim = BatchSim(robot, SimCfg(threads=1, model=ModelCfg(base="free")))
    ids = [sim.model.geom(name).id for name in robot.spec.feet]
    radii = np.array([sim.model.geom_size[one, 0] for one in ids])
    where = sim.batch.bind("geom_xpos")
    sim.reset()
    pose = np.tile(robot.spec.default_pose, (1, 1))
    for _ in range(round(_STAND_S / sim.control_dt)):
        sim.step(pose)
    low = np.array(where).reshape(-1, 3)[ids, 2] - radii
    return radii, float(np.clip(-low.min(), 0.0, 0.02))
