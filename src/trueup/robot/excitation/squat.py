"""Squats: a legged robot lowers and raises its trunk over feet that stay where they are.

Slow enough to be in equilibrium all the time, so that joint torques tell the weight that the legs carry; down and up
alike, so that friction, which turns its sign with the motion, cancels (`calibrate.weighing`).
"""

from __future__ import annotations

import math
from dataclasses import replace

import msgspec
import mujoco
import numpy as np

from trueup.core.arrays import FloatArray
from trueup.core.errors import TrueupError
from trueup.robot.drafts.stance import stance_load
from trueup.robot.excitation.excitation import ExcitationCfg, plain
from trueup.robot.excitation.plan import Plan, clock
from trueup.robot.load import Robot
from trueup.robot.model import JointIndex, ModelCfg, compile_model, default_qpos, joint_index

DEPTH = 0.25  # of the standing height
PERIOD_S = 4.0  # of one squat: accelerations of one hundredth of gravity
SAG_RAD = 0.1
_KNOTS, _ITERATIONS, _MISS_M = 17, 60, 0.002


def squat(robot: Robot, cfg: ExcitationCfg) -> Plan:
    """Whole squats that fill `cfg.seconds`, from the default pose and back to it, as deep as `cfg.limits` allows."""
    if not robot.spec.feet:
        raise TrueupError(
            f"a squat needs feet, and the spec of {robot.spec.name!r} names none (`feet = [...]`)", place="feet"
        )
    count = int(cfg.seconds / PERIOD_S)
    if count < 2:
        raise TrueupError(f"squats take {PERIOD_S:g} s each and two are needed: ask for {2 * PERIOD_S:g} s or more")
    depths, poses = _poses(robot, cfg.limits.amplitude_rad)
    rows = round(count * PERIOD_S * cfg.rate_hz) + 1
    time = clock(rows, cfg.rate_hz)
    depth = 0.5 * depths[-1] * (1.0 - np.cos(2.0 * np.pi * time / PERIOD_S))
    target = np.stack([np.interp(depth, depths, poses[:, j]) for j in range(robot.spec.njoint)], axis=1)
    meta: dict[str, object] = {"kind": "squat", "seed": cfg.seed, "config": plain(cfg), "depth_m": float(depths[-1])}
    return Plan(time=time, joint_names=robot.spec.joint_names, target_pos=target, meta=meta)


def stiffened(robot: Robot) -> Robot:
    """The robot with gains under which its legs sag by little more than `SAG_RAD` under its own weight.

    Damping grows with the root of the stiffness, so that the ratio of damping stays.
    """
    model = compile_model(robot, ModelCfg(base="free"))
    data = mujoco.MjData(model)
    data.qpos[:] = default_qpos(model, robot)
    mujoco.mj_forward(model, data)
    load = stance_load(model, data, [model.geom(name).id for name in robot.spec.feet])
    sag = np.abs(load[joint_index(model, robot).dof]) / np.maximum(robot.spec.kp, 1e-9)
    times = max(1.0, float(sag.max()) / SAG_RAD)
    joints = tuple(
        msgspec.structs.replace(joint, kp=times * joint.kp, kd=math.sqrt(times) * joint.kd)
        for joint in robot.spec.joints
    )
    return replace(robot, spec=msgspec.structs.replace(robot.spec, joints=joints))


def _poses(robot: Robot, amplitude: float) -> tuple[FloatArray, FloatArray]:
    """Depths (k,) of the trunk, m, and the poses (k, njoint) that keep the feet in place, by inverse kinematics.

    It ends where a joint leaves its limits or goes further than `amplitude` from the default pose.
    """
    spec = robot.spec
    model = compile_model(robot, ModelCfg(base="fixed"))
    data = mujoco.MjData(model)
    index = joint_index(model, robot)
    data.qpos[:] = default_qpos(model, robot)
    feet = [model.geom(name).id for name in spec.feet]
    mujoco.mj_kinematics(model, data)
    start = data.geom_xpos[feet].copy()
    depths, poses = [0.0], [spec.default_pose]
    for depth in np.linspace(0.0, DEPTH * spec.base.stand_height, _KNOTS)[1:]:
        pose, miss = _reach(model, data, index, feet, start + np.array([0.0, 0.0, depth]))
        outside = (pose < spec.position_low) | (pose > spec.position_high)
        if miss > _MISS_M or outside.any() or np.abs(pose - spec.default_pose).max() > amplitude:
            break
        depths.append(float(depth))
        poses.append(pose)
    if len(depths) < 2:
        raise TrueupError(
            f"{spec.name!r} cannot lower its trunk from the default pose within {amplitude:g} rad and its joint limits"
        )
    return np.array(depths), np.array(poses)


def _reach(
    model: mujoco.MjModel, data: mujoco.MjData, index: JointIndex, feet: list[int], goal: FloatArray
) -> tuple[FloatArray, float]:
    """Joint positions that bring the feet to `goal` (n, 3), by Gauss-Newton from where they are, and the distance."""
    jacobian = np.zeros((len(feet), 3, model.nv))
    for _ in range(_ITERATIONS):
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        miss = (goal - data.geom_xpos[feet]).ravel()
        if np.abs(miss).max() < 1e-6:
            break
        for k, foot in enumerate(feet):
            mujoco.mj_jacGeom(model, data, jacobian[k], None, foot)
        step = np.linalg.lstsq(jacobian.reshape(-1, model.nv)[:, index.dof], miss, rcond=1e-6)[0]
        data.qpos[index.qpos] += np.clip(step, -0.1, 0.1)
    return data.qpos[index.qpos].copy(), float(np.abs(miss).max())
