"""Bodies: forward kinematics of a robot's whole tree in NumPy, for motions and for batches of any engine.

Positions read out of an engine after a step are one physics step old; these belong to the state they are given.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import mujoco
import numpy as np
from numpy.typing import NDArray

from trueup.core.arrays import FloatArray
from trueup.core.errors import TrueupError
from trueup.motion.motion import Motion
from trueup.motion.rotations import about_axis, cross, multiply, rotate
from trueup.robot.load import Robot
from trueup.robot.model import compile_model, joint_index

Floats = NDArray[np.floating]
CONTACT_M, CONTACT_M_S = 0.02, 0.25  # a foot stands where its lowest point is below and slower than this


class Level(NamedTuple):
    """Bodies whose parents are already placed: numbers, parents, offsets (k, 3), turns (k, 4), joint or -1, axes."""

    ids: NDArray[np.intp]
    parents: NDArray[np.intp]
    offset: Floats
    turn: Floats
    joint: NDArray[np.intp]
    axis: Floats


class BodyMotion(NamedTuple):
    """Poses (n, nbody, 3) and (n, nbody, 4); velocities (n, nbody, 3) in the world, where they were asked for."""

    pos: Floats
    quat: Floats
    vel: Floats | None = None
    spin: Floats | None = None


class BodyTree:
    """A robot's bodies, base first, and the lowest points of its feet."""

    def __init__(self, robot: Robot, dtype: type[np.floating] = np.float64) -> None:
        model = compile_model(robot)
        self.robot, self.dtype = robot, dtype
        base = model.body(robot.spec.base.body).id
        own = [k for k in range(1, model.nbody) if k == base or self._is_below(model, k, base)]
        self.names = tuple(model.body(k).name for k in own)
        self.mass = np.array([model.body_mass[k] for k in own])
        self.com = np.array([model.body_ipos[k] for k in own])
        number = {k: i for i, k in enumerate(own)}
        joints = {int(j): i for i, j in enumerate(joint_index(model, robot).joint_id)}
        self._levels = list(self._by_depth(model, own, number, joints))
        self.parent, self.joint = np.full(len(own), -1), np.full(len(own), -1)
        self.axis = np.tile([0.0, 0.0, 1.0], (len(own), 1))
        for level in self._levels:
            self.parent[level.ids], self.joint[level.ids] = level.parents, level.joint
            self.axis[level.ids] = level.axis
        self.feet = tuple(_foot(model, name, number) for name in robot.spec.feet)

    @staticmethod
    def _is_below(model: mujoco.MjModel, body: int, base: int) -> bool:
        while body > 0 and body != base:
            body = int(model.body_parentid[body])
        return body == base

    def _by_depth(
        self, model: mujoco.MjModel, own: list[int], number: dict[int, int], joints: dict[int, int]
    ) -> list[Level]:
        depth = {own[0]: 0}
        for k in own[1:]:
            depth[k] = depth[int(model.body_parentid[k])] + 1
        levels = []
        for d in range(1, max(depth.values(), default=0) + 1):
            ids = [k for k in own if depth[k] == d]
            joint, axis = [], []
            for k in ids:
                at = int(model.body_jntadr[k])
                if model.body_jntnum[k] > 1 or (at >= 0 and np.any(model.jnt_pos[at])):
                    raise TrueupError(f"body {model.body(k).name!r} has several joints, or one away from its origin")
                joint.append(joints.get(at, -1) if at >= 0 else -1)
                axis.append(model.jnt_axis[at] if at >= 0 else np.array([0.0, 0.0, 1.0]))
            levels.append(
                Level(
                    np.array([number[k] for k in ids]),
                    np.array([number[int(model.body_parentid[k])] for k in ids]),
                    model.body_pos[ids].astype(self.dtype),
                    model.body_quat[ids].astype(self.dtype),
                    np.array(joint),
                    np.array(axis).astype(self.dtype),
                )
            )
        return levels

    def index(self, name: str) -> int:
        """The number of a body."""
        if name not in self.names:
            raise TrueupError(f"robot {self.robot.spec.name!r} has no body {name!r}: {', '.join(self.names)}")
        return self.names.index(name)

    def place(
        self,
        root_pos: Floats,
        root_quat: Floats,
        joint_pos: Floats,
        velocities: tuple[Floats, Floats, Floats] | None = None,
    ) -> BodyMotion:
        """Poses of all bodies; `velocities` are those of the root (world), its spin (world) and of the joints."""
        n, kind = len(root_pos), self.dtype
        pos, quat = np.empty((n, len(self.names), 3), kind), np.empty((n, len(self.names), 4), kind)
        pos[:, 0], quat[:, 0] = root_pos, root_quat
        angles = np.concatenate([joint_pos, np.zeros((n, 1))], axis=1).astype(kind)  # the last: bodies without joint
        moving = velocities is not None
        vel, spin = (np.empty((n, len(self.names), 3), kind) for _ in range(2)) if moving else (None, None)
        if velocities is not None and vel is not None and spin is not None:
            vel[:, 0], spin[:, 0] = velocities[0], velocities[1]
            rates = np.concatenate([velocities[2], np.zeros((n, 1))], axis=1).astype(kind)
        for level in self._levels:
            above = quat[:, level.parents]
            arm = rotate(above, np.broadcast_to(level.offset, (n, *level.offset.shape)))
            pos[:, level.ids] = pos[:, level.parents] + arm
            frame = multiply(above, np.broadcast_to(level.turn, (n, *level.turn.shape)))
            quat[:, level.ids] = multiply(frame, about_axis(level.axis, angles[:, level.joint]))
            if vel is not None and spin is not None:
                axis = rotate(frame, np.broadcast_to(level.axis, (n, *level.axis.shape)))
                vel[:, level.ids] = vel[:, level.parents] + cross(spin[:, level.parents], arm)
                spin[:, level.ids] = spin[:, level.parents] + axis * rates[:, level.joint, None]
        return BodyMotion(pos, quat, vel, spin)

    def lowest(self, bodies: BodyMotion) -> FloatArray:
        """Height (n, nfoot) of the lowest point of each foot."""
        return self.points(bodies)[..., 2].min(axis=2) if self.feet else np.zeros((len(bodies.pos), 0))

    def points(self, bodies: BodyMotion) -> FloatArray:
        """Undersides (n, nfoot, npoint, 3) of the contact points of every foot."""
        out = []
        for body, local, radius in self.feet:
            turn = np.repeat(bodies.quat[:, body, None].astype(float), len(local), axis=1)
            at = bodies.pos[:, body, None] + rotate(turn, np.broadcast_to(local, (len(turn), *local.shape)))
            at[..., 2] -= radius
            out.append(at)
        return np.stack(out, axis=1)

    def centre(self, bodies: BodyMotion) -> FloatArray:
        """Centre of mass (n, 3)."""
        shape = (len(bodies.pos), *self.com.shape)
        at = bodies.pos + rotate(bodies.quat.astype(float), np.broadcast_to(self.com, shape))
        return np.einsum("b,nbi->ni", self.mass / self.mass.sum(), at)


def _foot(model: mujoco.MjModel, name: str, number: dict[int, int]) -> tuple[int, FloatArray, float]:
    """Body, centres (k, 3) and radius of the balls that a foot stands on: those fixed to the body of the named one."""
    geom = model.geom(name)
    body = int(model.geom_bodyid[geom.id])
    balls = [
        k
        for k in range(model.ngeom)
        if model.geom_bodyid[k] == body and model.geom_type[k] == mujoco.mjtGeom.mjGEOM_SPHERE
    ]
    return number[body], model.geom_pos[balls or [geom.id]].copy(), float(geom.size[0])


def complete(motion: Motion, robot: Robot, tree: BodyTree | None = None) -> Motion:
    """The motion in the robot's joint order with body poses and contacts computed from root and joints."""
    names = robot.spec.joint_names
    missing = [name for name in names if name not in motion.joint_names]
    if missing:
        raise TrueupError(
            f"this motion has no joint {missing[0]!r} of robot {robot.spec.name!r} (it has "
            f"{', '.join(motion.joint_names) or 'none: retarget it first'}); a robot with fewer joints may fit"
        )
    tree = tree or BodyTree(robot)
    joints = motion.joint_pos[:, [motion.joint_names.index(name) for name in names]]
    bodies = tree.place(motion.root_pos, motion.root_quat, joints)
    low = tree.lowest(bodies)
    speed = np.zeros_like(low)
    if tree.feet:
        middle = tree.points(bodies).mean(axis=2)
        speed = np.linalg.norm(np.gradient(middle, axis=0), axis=-1) * motion.rate_hz
    return replace(
        motion,
        robot=robot.spec.name,
        joint_names=names,
        joint_pos=joints,
        body_names=tree.names,
        body_pos=np.asarray(bodies.pos, float),
        body_quat=np.asarray(bodies.quat, float),
        foot_names=robot.spec.feet,
        contacts=(low < CONTACT_M) & (speed < CONTACT_M_S),
    )
