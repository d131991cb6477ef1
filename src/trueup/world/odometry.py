"""Leg odometry: the path of a legged robot's base from its joints and its IMU alone.

With the base at the origin and turned as the IMU says, a foot that stands still on the ground moves by the opposite of
what the base moves. Over one sample the base's step is minus the mean step of the feet that stand; a foot stands while
it is within `_STANCE_M` of the lowest one at both ends of the step. The lowest foot is on flat ground, which gives the
height. No velocity sensor is needed; slipping feet and soft soles are the error.
"""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np
from numpy.typing import NDArray

from trueup.core.arrays import FloatArray
from trueup.core.errors import TrueupError
from trueup.data.log import Log
from trueup.robot.load import Robot
from trueup.robot.model import ModelCfg, compile_model, joint_index

_STANCE_M = 0.012
_SMOOTH_S = 0.1


@dataclass(frozen=True, kw_only=True)
class BasePath:
    """Base over time: `qpos` (T, nq) for films; `velocity` (T, 3): forward, sideways (m/s), turning (rad/s).

    feet     (T, nfoot, 3) m: lowest points of the feet, the base at the origin and turned as the IMU says
    stands   (T - 1, nfoot): whether a foot stands from one sample to the next
    """

    time: FloatArray
    qpos: FloatArray
    velocity: FloatArray
    feet: FloatArray
    stands: NDArray[np.bool_]


def leg_odometry(robot: Robot, log: Log, model: mujoco.MjModel | None = None) -> BasePath:
    """Path of the base in a log with joint positions and the IMU's orientation; starts at the origin.

    model   of the robot with a free base, where it was compiled before
    """
    if not (robot.spec.base.floating and robot.spec.feet):
        raise TrueupError(f"leg odometry is for legged robots; {robot.spec.name} has no feet or no free base")
    if "imu_quat" not in log:
        raise TrueupError("leg odometry needs the IMU's orientation: this log has no 'imu_quat'")
    model = compile_model(robot, ModelCfg(base="free")) if model is None else model
    joints = joint_index(model, robot)
    order = [log.joint_names.index(name) for name in robot.spec.joint_names]
    qpos = np.tile(model.qpos0, (len(log), 1))
    qpos[:, :3] = 0.0
    qpos[:, 3:7] = log["imu_quat"]
    qpos[:, joints.qpos] = log["joint_pos"][:, order]
    feet = _feet(model, robot.spec.feet, qpos)
    stands = _stands(feet)
    qpos[:, :3] = _base(feet, stands)
    return BasePath(time=log.time, qpos=qpos, velocity=_velocity(log.time, qpos), feet=feet, stands=stands)


def _feet(model: mujoco.MjModel, names: tuple[str, ...], qpos: FloatArray) -> FloatArray:
    """Lowest points (T, nfoot, 3) of the feet, base at the origin."""
    data, ids = mujoco.MjData(model), [model.geom(name).id for name in names]
    out = np.empty((len(qpos), len(ids), 3))
    for row, values in zip(out, qpos, strict=True):
        data.qpos[:] = values
        mujoco.mj_kinematics(model, data)
        row[:] = data.geom_xpos[ids]
    out[:, :, 2] -= model.geom_size[ids, 0]
    return out


def _stands(feet: FloatArray) -> NDArray[np.bool_]:
    """Feet (T - 1, nfoot) that stand from one sample to the next."""
    above = feet[:, :, 2] - feet[:, :, 2].min(axis=1, keepdims=True)
    stands: NDArray[np.bool_] = (above[1:] < _STANCE_M) & (above[:-1] < _STANCE_M)
    stands |= (above[1:] == 0.0) & ~stands.any(axis=1, keepdims=True)
    return stands


def _base(feet: FloatArray, stands: NDArray[np.bool_]) -> FloatArray:
    """Position (T, 3) of the base from that of the feet beneath it."""
    steps = np.diff(feet[:, :, :2], axis=0) * stands[:, :, None]
    moved = -steps.sum(axis=1) / stands.sum(axis=1, keepdims=True)
    path = np.concatenate([np.zeros((1, 2)), np.cumsum(moved, axis=0)])
    return np.column_stack([path, -feet[:, :, 2].min(axis=1)])


def _velocity(time: FloatArray, qpos: FloatArray) -> FloatArray:
    """Forward, sideways and turning in the base's own heading, smoothed."""
    w, x, y, z = qpos[:, 3:7].T
    yaw = np.unwrap(np.arctan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z)))
    speed = np.gradient(qpos[:, :2], time, axis=0)
    ahead = np.column_stack([np.cos(yaw), np.sin(yaw)])
    aside = np.column_stack([-np.sin(yaw), np.cos(yaw)])
    raw = np.column_stack([(speed * ahead).sum(axis=1), (speed * aside).sum(axis=1), np.gradient(yaw, time)])
    width = max(1, round(_SMOOTH_S / max(float(np.median(np.diff(time))), 1e-6)))
    kernel = np.ones(width) / width
    return np.column_stack([np.convolve(column, kernel, mode="same") for column in raw.T])
