"""A legged robot in a few numbers: mass, legs, motors, joints, measured on its model in the default pose."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import mujoco
import numpy as np

from trueup.core.arrays import FloatArray
from trueup.core.errors import TrueupError
from trueup.robot.load import Robot
from trueup.robot.model import ModelCfg, compile_model, default_qpos, joint_index, trunk_body
from trueup.robot.shapes import inertia_diagonal, lowest_point

GRAVITY = 9.81


class JointFigures(NamedTuple):
    """One leg joint; `kind` counts from the foot: knee 0, thigh 1, hip 2."""

    kind: int
    torque: float  # limit, N m
    inertia: float  # that it moves with the other joints locked, kg m^2
    damping: float  # its own, N m s/rad
    kp: float  # of the spec
    kd: float


@dataclass(frozen=True, kw_only=True)
class RobotFigures:
    """One legged robot."""

    name: str
    base: str
    mass: float  # kg
    leg: float  # hips above the ground, m
    stand_height: float  # base frame above the ground, m
    lightest: float  # inertia that a leg joint can feel at least, the others free, kg m^2
    joints: dict[str, JointFigures]  # of the legs, by name
    others: tuple[str, ...]  # joints that are not in legs
    feet: int
    rotors: bool  # any leg joint has armature
    forward: bool  # knees turn about y: the robot faces x
    diagonal: bool  # of four feet, the first and the last stand on a diagonal
    trunk: bool  # some shape of the trunk can touch the ground

    @property
    def moment(self) -> float:
        """m g l, the moment of the weight about a hip, N m."""
        return self.mass * GRAVITY * self.leg

    @property
    def time(self) -> float:
        """sqrt(l / g), the time in which a leg swings, s."""
        return math.sqrt(self.leg / GRAVITY)

    @property
    def weakest_nm(self) -> float:
        """Torque limit of the weakest leg motor."""
        return min(joint.torque for joint in self.joints.values())

    def froude(self, speed: float) -> float:
        """v^2 / (g l) of a walking speed."""
        return speed**2 / (GRAVITY * self.leg)


def measure(robot: Robot) -> RobotFigures:
    """Measure a legged robot; a robot without a floating base or without feet is refused with what is missing."""
    _require_legs(robot)
    spec = robot.spec
    model = compile_model(robot, ModelCfg(base="free", floor=False))
    data = mujoco.MjData(model)
    data.qpos[:] = default_qpos(model, robot)
    mujoco.mj_forward(model, data)
    legs = [_leg(model, robot, name) for name in spec.feet]
    feet = [model.geom(name).id for name in spec.feet]
    kinds = {name: k for leg in legs for k, name in enumerate(reversed(leg))}
    inertia, damping = inertia_diagonal(model, data), model.dof_damping
    joints = {
        joint.name: JointFigures(
            kinds[joint.name], joint.torque, float(inertia[at]), float(damping[at]), joint.kp, joint.kd
        )
        for joint, at in zip(spec.joints, joint_index(model, robot).dof, strict=True)
        if joint.name in kinds
    }
    dof = [model.joint(name).dofadr[0] for name in joints]
    hips = [
        max(data.xanchor[model.joint(name).id][2] for name in leg) - lowest_point(model, data, foot)
        for leg, foot in zip(legs, feet, strict=True)
    ]
    return RobotFigures(
        name=spec.name,
        base=trunk_body(model, robot),
        mass=float(model.body_mass.sum()),
        leg=float(np.mean(hips)),
        stand_height=spec.base.stand_height,
        lightest=float(_free_inertia(model, data)[dof].min()),
        joints=joints,
        others=tuple(name for name in spec.joint_names if name not in joints),
        feet=len(feet),
        rotors=bool(model.dof_armature[dof].any()),
        forward=all(abs(data.xaxis[model.joint(leg[-1]).id][1]) > 0.7 for leg in legs),
        diagonal=len(feet) != 4 or _is_diagonal(data.geom_xpos[feet]),
        trunk=_has_trunk(model, feet),
    )


def _require_legs(robot: Robot) -> None:
    spec = robot.spec
    lacks = {
        "its base is bolted down (base.floating = false)": not spec.base.floating,
        "it names no feet (feet = [geoms that carry it])": not spec.feet,
        "it does not stand (base.stand_height = 0)": spec.base.floating and spec.base.stand_height <= 0.0,
    }
    if any(lacks.values()):
        missing = " and ".join(text for text, applies in lacks.items() if applies)
        raise TrueupError(f"robot {spec.name!r} cannot take a task for legged robots: {missing} in its spec")


def _leg(model: mujoco.MjModel, robot: Robot, foot: str) -> list[str]:
    """Joints of the spec from the base to a foot."""
    body, names = int(model.geom(foot).bodyid[0]), []
    while body:
        first, count = int(model.body_jntadr[body]), int(model.body_jntnum[body])
        names += [model.joint(joint).name for joint in range(first + count - 1, first - 1, -1)]
        body = int(model.body_parentid[body])
    leg = [name for name in reversed(names) if name in robot.spec.joint_names]
    if not leg:
        raise TrueupError(f"robot {robot.spec.name!r}: no joint of the spec moves the foot {foot!r}")
    return leg


def _free_inertia(model: mujoco.MjModel, data: mujoco.MjData) -> FloatArray:
    """1 / (M^-1)_ii: what a joint feels when all others give way."""
    inverse = np.zeros((model.nv, model.nv))
    mujoco.mj_solveM(model, data, inverse, np.eye(model.nv))
    return np.asarray(1.0 / np.diag(inverse))


def _is_diagonal(places: FloatArray) -> bool:
    """Whether the first and the last of four places (4, 3) are farther apart than either is from the others."""
    first, last = (np.linalg.norm(places - places[k], axis=1) for k in (0, 3))
    return bool(first[3] > max(first[1], first[2], last[1], last[2]))


def _has_trunk(model: mujoco.MjModel, feet: list[int]) -> bool:
    parts = {int(model.body_weldid[model.geom_bodyid[foot]]) for foot in feet}
    solid = np.flatnonzero((model.geom_contype | model.geom_conaffinity) & (model.geom_bodyid > 0))
    return any(int(model.body_weldid[model.geom_bodyid[geom]]) not in parts for geom in solid)
