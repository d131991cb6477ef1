"""Arms: the chain from base to tool as the policy needs it, and poses that the arm can reach."""

from __future__ import annotations

import mujoco
import numpy as np
from numpy.typing import NDArray

from trueup.core.errors import TrueupError
from trueup.policy.chain import Chain, Link
from trueup.robot.load import Robot
from trueup.tasks.goals.commands import PoseCommand

FloatArray = NDArray[np.float64]


def arm_chain(model: mujoco.MjModel, robot: Robot) -> Chain:
    """Read the chain from the compiled model, so that both know the same arm."""
    if robot.spec.end_effector is None:
        raise TrueupError(f"robot {robot.spec.name!r} has no end_effector: it cannot follow poses")
    site = model.site(robot.spec.end_effector)
    base = model.body(robot.spec.base.body).id
    links: list[Link] = []
    body = int(model.site_bodyid[site.id])
    while body not in (base, 0):
        links.append(_link(model, robot, body))
        body = int(model.body_parentid[body])
    return Chain(
        links=tuple(reversed(links)), tool_pos=tuple(site.pos.tolist()), tool_quat=tuple(site.quat.tolist())
    )


def _link(model: mujoco.MjModel, robot: Robot, body: int) -> Link:
    first, count = int(model.body_jntadr[body]), int(model.body_jntnum[body])
    if count > 1 or (count and np.any(model.jnt_pos[first])):
        raise TrueupError(f"body {model.body(body).name!r}: a chain needs one joint at the body's origin")
    joint = robot.spec.joint_names.index(model.joint(first).name) if count else -1
    axis = model.jnt_axis[first].tolist() if count else [0.0, 0.0, 1.0]
    return Link(
        pos=tuple(model.body_pos[body].tolist()),
        quat=tuple(model.body_quat[body].tolist()),
        axis=tuple(axis),
        joint=joint,
    )


def reachable_poses(
    chain: Chain, robot: Robot, moved: tuple[str, ...], cfg: PoseCommand, seed: int
) -> FloatArray:
    """Poses of the tool (table, 7) from joint positions in the middle of their ranges: each can be held."""
    spec, rng = robot.spec, np.random.default_rng(seed)
    low, high = spec.position_low, spec.position_high
    poses = np.repeat(spec.default_pose[None], 4 * cfg.table, axis=0)
    for name in moved:
        k = spec.joint_names.index(name)
        middle, half = 0.5 * (low[k] + high[k]), 0.5 * (high[k] - low[k])
        poses[:, k] = middle + cfg.span * half * rng.uniform(-1.0, 1.0, len(poses))
    position, rotation = chain.tool_pose(poses)
    good = np.flatnonzero(position[:, 2] > cfg.floor_m)[: cfg.table]
    if len(good) < cfg.table:
        raise TrueupError(f"only {len(good)} of {len(poses)} poses keep the tool above {cfg.floor_m} m")
    quats = np.empty((len(good), 4))
    for row, k in enumerate(good):
        mujoco.mju_mat2Quat(quats[row], rotation[k].ravel())
    return np.concatenate([position[good], quats], axis=1)
