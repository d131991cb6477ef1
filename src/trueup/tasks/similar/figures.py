"""What a legged robot is like in a few numbers: mass, legs, motors, joints. Measured on its model in the default pose."""

from __future__ import annotations

import math
from dataclasses import dataclass

import mujoco
import numpy as np
from numpy.typing import NDArray

from trueup.core.errors import TrueupError
from trueup.robot.load import Robot
from trueup.robot.model import ModelCfg, compile_model, default_qpos, joint_index
from trueup.robot.shapes import inertia_diagonal, lowest_point

GRAVITY = 9.81
FloatArray = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Figures:
    """One legged robot. Figures of joints are those of its legs; `kind` is a joint's place in its leg (hip 0, ...)."""

    name: str
    base: str
    mass: float  # kg
    leg: float  # hips above the ground, m
    stand_height: float  # base frame above the ground, m
    torque: float  # limit of the weakest leg joint, N m
    inertia: float  # a joint moves with the others locked, geometric mean, kg m^2
    lightest: float  # smallest that a joint can feel, the others free, kg m^2
    damping: float  # of the joints themselves, mean, N m s/rad
    rotors: bool  # any leg joint has armature
    kp: float  # of the spec, mean
    kd: float
    feet: int
    kind: dict[str, int]  # leg joints
    others: tuple[str, ...]  # joints that are not in legs
    forward: bool  # thighs and knees turn about y: the robot faces x
    trunk: bool  # some shape of the trunk can touch the ground

    @property
    def moment(self) -> float:
        """m g l, the moment of the weight about a hip, N m."""
        return self.mass * GRAVITY * self.leg

    @property
    def time(self) -> float:
        """sqrt(l / g), the time in which a leg swings, s."""
        return math.sqrt(self.leg / GRAVITY)

    def froude(self, speed: float) -> float:
        """v^2 / (g l) of a walking speed."""
        return speed**2 / (GRAVITY * self.leg)


def measure(robot: Robot) -> Figures:
    """Measure a legged robot; a robot without a floating base or without feet is refused with what is missing."""
    _require_legs(robot)
    spec = robot.spec
    model = compile_model(robot, ModelCfg(base="free", floor=False))
    data = mujoco.MjData(model)
    data.qpos[:] = default_qpos(model, robot)
    mujoco.mj_forward(model, data)
    legs = [_leg(model, robot, name) for name in spec.feet]
    kind = {joint: k for leg in legs for k, joint in enumerate(leg)}
    mine = np.array([k for k, name in enumerate(spec.joint_names) if name in kind], np.intp)
    dof = joint_index(model, robot).dof[mine]
    feet = [model.geom(name).id for name in spec.feet]
    return Figures(
        name=spec.name,
        base=spec.base.body,
        mass=float(model.body_mass.sum()),
        leg=float(np.mean([_hip_height(model, data, leg, foot) for leg, foot in zip(legs, feet, strict=True)])),
        stand_height=spec.base.stand_height,
        torque=float(spec.torque_limit[mine].min()),
        inertia=float(np.exp(np.log(inertia_diagonal(model, data)[dof]).mean())),
        lightest=float(_free_inertia(model, data)[dof].min()),
        damping=float(model.dof_damping[dof].mean()),
        rotors=bool(model.dof_armature[dof].any()),
        kp=float(spec.kp[mine].mean()),
        kd=float(spec.kd[mine].mean()),
        feet=len(spec.feet),
        kind=kind,
        others=tuple(name for name in spec.joint_names if name not in kind),
        forward=all(abs(data.xaxis[model.joint(leg[-1]).id][1]) > 0.7 for leg in legs),
        trunk=_has_trunk(model, robot, feet),
    )


def _require_legs(robot: Robot) -> None:
    spec, missing = robot.spec, []
    if not spec.base.floating:
        missing.append("its base is bolted down (base.floating = false)")
    if not spec.feet:
        missing.append("it names no feet (feet = [geoms that carry it])")
    if spec.base.floating and spec.base.stand_height <= 0.0:
        missing.append("it does not stand (base.stand_height = 0)")
    if missing:
        raise TrueupError(
            f"robot {spec.name!r} cannot walk: in its spec {', and '.join(missing)}; a task like this is for legged robots"
        )


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


def _hip_height(model: mujoco.MjModel, data: mujoco.MjData, leg: list[str], foot: int) -> float:
    hip = max(float(data.xanchor[model.joint(name).id][2]) for name in leg)
    return hip - lowest_point(model, data, foot)


def _free_inertia(model: mujoco.MjModel, data: mujoco.MjData) -> FloatArray:
    """1 / (M^-1)_ii: what a joint feels when all others give way."""
    full = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model, full, data.qM)
    return 1.0 / np.diag(np.linalg.inv(full))


def _has_trunk(model: mujoco.MjModel, robot: Robot, feet: list[int]) -> bool:
    parts = {int(model.body_weldid[model.geom_bodyid[foot]]) for foot in feet}
    solid = np.flatnonzero((model.geom_contype | model.geom_conaffinity) & (model.geom_bodyid > 0))
    return any(int(model.body_weldid[model.geom_bodyid[geom]]) not in parts for geom in solid)
