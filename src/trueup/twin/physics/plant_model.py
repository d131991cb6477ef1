"""From a robot, a preset and a seed to the engine model of a twin, and its truth.

The engine carries what it can: the servo is its own `pid` or `dcmotor` actuator, so that a twin without hidden effects
is the very simulation that a fit runs. A transmission becomes a rotor of its own per joint, with the armature, damping
and friction of the joint, tied to the link by a tendon whose spring has a cubic part and a dead band (the play):

    J th'' = tau - friction - spring(th - q),    M q'' + h = spring(th - q)        (flexible joints after Spong)

Stiff draws are lowered to what the integrator carries at this physics rate, and the truth says so.
"""

from __future__ import annotations

from typing import NamedTuple

import mujoco
import numpy as np
from msgspec.structs import replace

from trueup.core.arrays import FloatArray, Ids
from trueup.core.errors import TrueupError
from trueup.robot.load import Robot
from trueup.robot.model import Base, ModelCfg, compile_spec, default_qpos, joint_index
from trueup.twin.truth.draw_truth import draw_truth
from trueup.twin.truth.fitted_truth import with_fit
from trueup.twin.truth.preset import Preset
from trueup.twin.truth.truth import Nominal, TransmissionTruth, Truth
from trueup.world.actuators.engine import ActuatorCfg, add_actuators
from trueup.world.fitted.calibration import SimParams
from trueup.world.scene.scene import Scene

_STICKING = 0.9999  # impedance of dry friction: at the engine's 0.9 a joint under half its friction creeps visibly
SPRING_LIMIT = 0.8  # of inertia / dt^2; the integrator's own limit is 4
ROTOR = "twin rotor "  # and the name of the joint
_IMU_SENSORS = (mujoco.mjtSensor.mjSENS_FRAMEQUAT, mujoco.mjtSensor.mjSENS_GYRO, mujoco.mjtSensor.mjSENS_ACCELEROMETER)


class PlantModel(NamedTuple):
    """The engine's model of a twin and where things are in it, in spec joint order.

    motor_*  what the servo moves and the encoder reads: the rotor, or the joint itself where the gears are rigid
    link_dof the joint
    """

    model: mujoco.MjModel
    truth: Truth
    start_qpos: FloatArray
    motor_qpos: Ids
    motor_dof: Ids
    link_dof: Ids


def build_plant(
    robot: Robot, preset: Preset, *, seed: int, label: str, base: Base, physics_dt: float, fit: SimParams | None = None
) -> PlantModel:
    """Draw the truth, from a fit's posterior where there is one, and put it into an engine model."""
    scene, cfg = Scene.of(robot), ModelCfg(base=base)
    nominal = _nominal(scene.compile(cfg), robot)
    truth = draw_truth(preset, robot.spec, nominal, seed, label)
    if fit is not None:
        truth = with_fit(truth, fit, robot.spec, nominal, seed)
    spec = scene.build(cfg)
    spec.option.timestep = physics_dt
    spec.option.disableflags |= mujoco.mjtDisableBit.mjDSBL_ISLAND.value  # islands only cost with one robot
    if base == "fixed":
        # in the air constraints hardly feel each other: dry friction and play are exact after a few sweeps of
        # Gauss-Seidel, which is cheaper than Newton's method
        spec.option.solver, spec.option.iterations = mujoco.mjtSolver.mjSOL_PGS, 100
    _add_payload(spec, robot, truth)
    add_actuators(spec, robot, ActuatorCfg(kind="dcmotor" if truth.motor else None, inputs="servo"))
    if truth.transmission is not None:
        _add_rotors(spec, robot)
    _add_imu(spec, robot, base)
    plant = _locate(compile_spec(spec, robot), robot, truth)
    _write_bodies(plant)
    return _write_joints(plant, robot)


def _nominal(model: mujoco.MjModel, robot: Robot) -> Nominal:
    dof = joint_index(model, robot).dof
    heavy = np.flatnonzero(model.body_mass > 0)
    return Nominal(
        armature=model.dof_armature[dof].copy(),
        damping=model.dof_damping[dof].copy(),
        friction=model.dof_frictionloss[dof].copy(),
        bodies=tuple(model.body(int(i)).name for i in heavy),
        mass=float(model.body_mass.sum()),
    )


def _add_payload(spec: mujoco.MjSpec, robot: Robot, truth: Truth) -> None:
    """Put a ball of 5 cm radius on the base, or at the tool of an arm."""
    if truth.payload is None:
        return
    mass, pos = truth.payload.mass, truth.payload.offset
    body = spec.body(robot.spec.base.body)
    if robot.spec.end_effector is not None and not robot.spec.base.floating:
        site = spec.site(robot.spec.end_effector)
        if site is None:
            raise TrueupError(f"the model has no site {robot.spec.end_effector!r}", file=robot.model_path)
        body, pos = site.parent, pos + site.pos
    if mass > 0:
        moment = 0.4 * mass * 0.05**2
        body.add_body(pos=pos.tolist(), mass=mass, inertia=[moment] * 3, explicitinertial=True)


def _add_rotors(spec: mujoco.MjSpec, robot: Robot) -> None:
    """One rotor per joint, upright so that gravity does not turn it, and a tendon to the link; the servo moves over."""
    for joint in robot.spec.joints:
        body = spec.worldbody.add_body(name=ROTOR + joint.name, mass=1e-6, inertia=[1e-9] * 3, explicitinertial=True)
        body.add_joint(name=ROTOR + joint.name, type=mujoco.mjtJoint.mjJNT_HINGE, axis=[0, 0, 1])
        # nonzero so that the compiler keeps spring and dead band; the truth is written into the compiled model
        gear = spec.add_tendon(name=ROTOR + joint.name, stiffness=[1, 0, 0], damping=[1, 0, 0], springlength=[0, 0])
        gear.wrap_joint(ROTOR + joint.name, 1)
        gear.wrap_joint(joint.name, -1)
        spec.actuator(joint.name).target = ROTOR + joint.name


def _add_imu(spec: mujoco.MjSpec, robot: Robot, base: Base) -> None:
    """Sensors only where the base can move; a held one always reads the same (see `readings`)."""
    site = robot.spec.imu
    if site is None:
        return
    if spec.site(site) is None:
        raise TrueupError(f"the model has no site {site!r} for the IMU", file=robot.model_path, place="imu")
    for kind in _IMU_SENSORS if base == "free" else ():
        spec.add_sensor(type=kind, objtype=mujoco.mjtObj.mjOBJ_SITE, objname=site)


def _locate(model: mujoco.MjModel, robot: Robot, truth: Truth) -> PlantModel:
    index = joint_index(model, robot)
    start, motor_qpos, motor_dof = default_qpos(model, robot), index.qpos, index.dof
    if truth.transmission is not None:
        ids = [model.joint(ROTOR + name).id for name in robot.spec.joint_names]
        motor_qpos, motor_dof = (adr[ids].astype(np.intp) for adr in (model.jnt_qposadr, model.jnt_dofadr))
        start[motor_qpos] = start[index.qpos]
    return PlantModel(model, truth, start, motor_qpos, motor_dof, index.dof)


def _write_bodies(plant: PlantModel) -> None:
    model, body, ground = plant.model, plant.truth.body, plant.truth.ground
    if body is not None:
        ids = [model.body(name).id for name in body.names]
        model.body_mass[ids] *= body.mass_scale
        model.body_inertia[ids] *= (body.mass_scale * body.inertia_scale)[:, None]
        model.body_ipos[ids] += body.com_offset
    if ground is not None:
        contacts = (model.geom_contype | model.geom_conaffinity) != 0
        model.geom_friction[contacts, 0] = ground.friction
        model.geom_solref[contacts] = (ground.timeconst, ground.dampratio)


def _write_joints(plant: PlantModel, robot: Robot) -> PlantModel:
    """Write armature, damping, friction and transmission, within what the integrator carries."""
    model, dof, link, truth = plant.model, plant.motor_dof, plant.link_dof, plant.truth
    model.dof_damping[dof] = truth.joint.damping
    model.dof_frictionloss[dof] = truth.joint.friction
    if truth.transmission is not None:
        model.dof_armature[link] = model.dof_damping[link] = model.dof_frictionloss[link] = 0.0
        floor = np.maximum(4.0 * robot.spec.kp * model.opt.timestep**2, 1e-5)
        armature = _noted(truth, "armature", truth.joint.armature, np.maximum(truth.joint.armature, floor))
        truth = replace(truth, joint=replace(truth.joint, armature=armature))
    model.dof_armature[dof] = truth.joint.armature
    inverse = _inverse_inertia(plant)
    if truth.transmission is not None:
        reduced = 1.0 / (1.0 / truth.joint.armature + inverse[link])
        spring = _carried(truth, truth.transmission, reduced, robot.spec.torque_limit, model.opt.timestep)
        model.tendon_stiffness[:] = spring.stiffness
        model.tendon_stiffnesspoly[:, 1] = spring.hardening
        model.tendon_damping[:] = spring.damping
        model.tendon_lengthspring[:] = np.stack([-spring.backlash / 2, spring.backlash / 2], axis=1)
        truth = replace(truth, transmission=spring)
    if truth.friction is not None:
        drawn, inertia = truth.friction.bristle_stiffness, 1.0 / inverse[dof]
        most = SPRING_LIMIT / 2 * inertia / model.opt.timestep**2
        bristle = _noted(truth, "bristle_stiffness", drawn, np.minimum(drawn, most))
        damping = 2.0 * truth.friction.bristle_damping * np.sqrt(bristle * inertia)
        if truth.friction.kind == "lugre":
            model.dof_frictionloss[dof] = 0.0
        model.dof_solimp[dof, :2] = _STICKING
        truth = replace(truth, friction=replace(truth.friction, bristle_stiffness=bristle, bristle_damping=damping))
    mujoco.mj_setConst(model, mujoco.MjData(model))
    return plant._replace(truth=truth)


def _carried(
    truth: Truth, spring: TransmissionTruth, inertia: FloatArray, limit: FloatArray, dt: float
) -> TransmissionTruth:
    """Keep the tangent stiffness at the torque limit, hysteresis included, under the integrator's limit."""
    most = SPRING_LIMIT * inertia / dt**2
    turn = np.maximum(spring.hysteresis_rad, 4.0 * spring.hysteresis / most)
    hardening_share = spring.hardening * (limit / spring.stiffness) ** 3 / limit
    stiffness = np.minimum(spring.stiffness, 0.75 * most / (1.0 + 3.0 * hardening_share))
    return replace(
        spring,
        hysteresis_rad=_noted(truth, "hysteresis_rad", spring.hysteresis_rad, turn),
        stiffness=_noted(truth, "stiffness", spring.stiffness, stiffness),
        hardening=hardening_share * stiffness**3 / limit**2,
        damping=2.0 * spring.damping * np.sqrt(stiffness * inertia),
    )


def _inverse_inertia(plant: PlantModel) -> FloatArray:
    """Diagonal of the inverse mass matrix in the start pose: how easily each coordinate alone is moved."""
    model, data = plant.model, mujoco.MjData(plant.model)
    mujoco.mj_setConst(model, data)
    data.qpos[:] = plant.start_qpos
    mujoco.mj_forward(model, data)
    inverse = np.zeros((model.nv, model.nv))
    mujoco.mj_solveM(model, data, inverse, np.eye(model.nv))
    return np.diag(inverse).copy()


def _noted(truth: Truth, name: str, drawn: FloatArray, used: FloatArray) -> FloatArray:
    """Return what is used; where that is not what was drawn, the truth says so."""
    for k in np.flatnonzero(used != drawn):
        limited = f"{name} drawn {drawn[k]:.4g}, used {used[k]:.4g} (integrator's limit)"
        truth.notes.append(f"{truth.joint_names[k]}: {limited}")
    return used
