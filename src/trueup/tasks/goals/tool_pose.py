"""Tool pose: position and orientation of an arm's tool, drawn from poses that the arm can hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import mujoco
import numpy as np

from trueup.core.arrays import FloatArray, Ids
from trueup.core.errors import TrueupError
from trueup.policy.chain import Chain, ChainLink
from trueup.robot.load import Robot
from trueup.tasks.goals.goal import Goal, GoalCfg, GoalPlace, HeldGoal


@dataclass(frozen=True, kw_only=True)
class ToolPoseGoal(GoalCfg):
    """Poses of the tool that the arm can reach: position (m) and quaternion w x y z in the base frame.

    Poses come from joint positions drawn in the middle `span` of their ranges; those whose tool is lower than `floor_m`
    are passed over. `table` of them are kept.
    """

    error: ClassVar[tuple[str, str] | None] = ("settled_distance", "m")
    hold_s: tuple[float, float] = (3.0, 5.0)
    span: float = 0.6
    floor_m: float = 0.1
    table: int = 4096

    def start(self, place: GoalPlace) -> Goal:
        return ToolPose(self, place)


class ToolPose(HeldGoal):
    """Draws from a table of reachable poses, (k, 7)."""

    ncommand = 7

    def __init__(self, cfg: ToolPoseGoal, place: GoalPlace) -> None:
        super().__init__(place, cfg.hold_s)
        robot = place.sim.robot
        self.chain = arm_chain(place.sim.model, robot)
        self._table = reachable_poses(self.chain, robot, place.controlled_joints, cfg, place.sim.cfg.seed)

    def _draw(self, ids: Ids) -> FloatArray:
        return self._table[(self._random.uniform(1, ids)[:, 0] * len(self._table)).astype(np.intp)]


def arm_chain(model: mujoco.MjModel, robot: Robot) -> Chain:
    """Read the chain from the compiled model, so that both know the same arm."""
    if robot.spec.end_effector is None:
        raise TrueupError(f"robot {robot.spec.name!r} has no end_effector: it cannot follow poses")
    site = model.site(robot.spec.end_effector)
    base = model.body(robot.spec.base.body).id
    links: list[ChainLink] = []
    body = int(model.site_bodyid[site.id])
    while body not in (base, 0):
        links.append(_link(model, robot, body))
        body = int(model.body_parentid[body])
    return Chain(links=tuple(reversed(links)), tool_pos=tuple(site.pos.tolist()), tool_quat=tuple(site.quat.tolist()))


def _link(model: mujoco.MjModel, robot: Robot, body: int) -> ChainLink:
    first, count = int(model.body_jntadr[body]), int(model.body_jntnum[body])
    if count > 1 or (count and np.any(model.jnt_pos[first])):
        raise TrueupError(f"body {model.body(body).name!r}: a chain needs one joint at the body's origin")
    joint = robot.spec.joint_names.index(model.joint(first).name) if count else -1
    axis = model.jnt_axis[first].tolist() if count else [0.0, 0.0, 1.0]
    pos, quat = model.body_pos[body].tolist(), model.body_quat[body].tolist()
    return ChainLink(pos=tuple(pos), quat=tuple(quat), axis=tuple(axis), joint=joint)


def reachable_poses(chain: Chain, robot: Robot, moved: tuple[str, ...], cfg: ToolPoseGoal, seed: int) -> FloatArray:
    """Poses of the tool (table, 7) from joint positions in the middle of their ranges: each can be held."""
    spec, rng = robot.spec, np.random.default_rng(seed)
    low, high = spec.position_low, spec.position_high
    poses = np.tile(spec.default_pose, (4 * cfg.table, 1))
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
