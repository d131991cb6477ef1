"""Servo targets that hold a motion: where a servo must be asked to go so that the joint is where the motion has it.

A servo is a spring: asked for q it carries a torque by staying behind. With tau the torques of the motion (inverse
dynamics; the ground's forces at the standing feet are the smallest inside the friction pyramid that carry the base),

    q* = q + (tau + kd dq) / kp

so that a robot that is asked for q* and nothing else stands and moves like the motion until it falls over.
"""

from __future__ import annotations

from typing import NamedTuple

import mujoco
import numpy as np
from scipy.optimize import nnls  # type: ignore[attr-defined]

from trueup.core.arrays import FloatArray
from trueup.motion.bodies import BodyTree
from trueup.motion.motion import Motion
from trueup.motion.rotations import conjugate, rotate
from trueup.robot.load import Robot
from trueup.robot.model import JointIndex, compile_model, joint_index

_FRICTION = 0.6
_EDGES = np.array([[s * _FRICTION, 0.0, 1.0] for s in (1, -1)] + [[0.0, s * _FRICTION, 1.0] for s in (1, -1)])
_SMALL = 0.03  # weight of a newton in a foot against a newton that the base lacks: forces are spread
_SMOOTH_ROWS = 5  # a foot that lands takes over within these


class _Place(NamedTuple):
    """A robot's model, the joints of its spec in it, its base's body, and the address of its free joint."""

    model: mujoco.MjModel
    joints: JointIndex
    base: int
    qpos: int
    dof: int


def holding_targets(motion: Motion, robot: Robot, tree: BodyTree) -> FloatArray:
    """(T, njoint) of a completed motion, in the robot's joint order; torques stay within their limits."""
    spec = robot.spec
    torque = np.clip(_smoothed(joint_torques(motion, robot, tree)), -spec.torque_limit, spec.torque_limit)
    out: FloatArray = motion.joint_pos + (torque + spec.kd * motion.joint_vel) / spec.kp
    return out


def joint_torques(motion: Motion, robot: Robot, tree: BodyTree) -> FloatArray:
    """(T, njoint) by inverse dynamics; what no standing foot can carry is left out."""
    place = _open(robot)
    model, data = place.model, mujoco.MjData(place.model)
    qpos, qvel = _coordinates(motion, place)
    qacc = np.gradient(qvel, axis=0) * motion.rate_hz
    bodies = tree.place(motion.root_pos, motion.root_quat, motion.joint_pos)
    points = tree.points(bodies) if tree.feet else np.zeros((len(motion), 0, 0, 3))
    feet = [model.geom(name).bodyid[0] for name in robot.spec.feet]
    out = np.zeros(motion.joint_pos.shape)
    for k in range(len(motion)):
        data.qpos[:], data.qvel[:], data.qacc[:] = qpos[k], qvel[k], qacc[k]
        mujoco.mj_inverse(model, data)
        force = data.qfrc_inverse.copy()
        standing = [
            (body, p) for body, at, on in zip(feet, points[k], motion.contacts[k], strict=True) if on for p in at
        ]
        if standing:
            force -= _ground(place, data, standing, force[place.dof : place.dof + 6])
        out[k] = force[place.joints.dof]
    return out


def _open(robot: Robot) -> _Place:
    model = compile_model(robot)
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    base = model.body(robot.spec.base.body).id
    free = int(model.body_jntadr[base])
    return _Place(model, joint_index(model, robot), base, int(model.jnt_qposadr[free]), int(model.jnt_dofadr[free]))


def _coordinates(motion: Motion, place: _Place) -> tuple[FloatArray, FloatArray]:
    """qpos (T, nq) and qvel (T, nv)."""
    rows, at, dof = len(motion), place.qpos, place.dof
    qpos, qvel = np.tile(place.model.qpos0, (rows, 1)), np.zeros((rows, place.model.nv))
    qpos[:, at : at + 3], qpos[:, at + 3 : at + 7] = motion.root_pos, motion.root_quat
    qpos[:, place.joints.qpos], qvel[:, place.joints.dof] = motion.joint_pos, motion.joint_vel
    qvel[:, dof : dof + 3] = motion.root_vel
    qvel[:, dof + 3 : dof + 6] = rotate(conjugate(motion.root_quat), motion.root_spin)
    return qpos, qvel


def _ground(
    place: _Place, data: mujoco.MjData, standing: list[tuple[int, FloatArray]], wanted: FloatArray
) -> FloatArray:
    """Generalised force (nv,) of the ground on points of standing feet, which carries `wanted` (6,) of the base."""
    columns, jacobian = [], np.zeros((3, place.model.nv))
    for body, point in standing:
        mujoco.mj_jac(place.model, data, jacobian, None, point, body)
        columns.append(jacobian.T @ _EDGES.T)
    pushes = np.concatenate(columns, axis=1)  # (nv, nedge)
    carried = pushes[place.dof : place.dof + 6]
    system = np.concatenate([carried, _SMALL * np.eye(carried.shape[1])])
    found, _ = nnls(system, np.concatenate([wanted, np.zeros(carried.shape[1])]))
    out: FloatArray = pushes @ found
    return out


def _smoothed(values: FloatArray) -> FloatArray:
    """Mean over `_SMOOTH_ROWS` rows about each, ends repeated."""
    half = _SMOOTH_ROWS // 2
    padded = np.concatenate([values[:1].repeat(half, 0), values, values[-1:].repeat(half, 0)])
    total = np.cumsum(np.concatenate([np.zeros((1, values.shape[1])), padded]), axis=0)
    out: FloatArray = (total[_SMOOTH_ROWS:] - total[:-_SMOOTH_ROWS]) / _SMOOTH_ROWS
    return out
