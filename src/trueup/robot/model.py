"""Engine model of one robot: its model file joined with its spec. `world.scene` builds scenes of it.

Geometry and inertia come from the model file; limits, rates and pose from the spec; `world` adds actuators.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import mujoco
import numpy as np
from numpy.typing import NDArray

from trueup.core.errors import TrueupError, did_you_mean
from trueup.robot.load import Robot

Base = Literal["free", "fixed", "mount"]
Collisions = Literal["light", "full"]
FLOOR = "floor"
MOUNT_JOINTS = ("mount_x", "mount_y", "mount_z", "mount_roll", "mount_pitch", "mount_yaw")
_MOUNT_HZ, _MOUNT_RATIO = 5.0, 0.3  # a stand that is neither stiff nor soft, until it is fitted
_MOUNT_ARM = 0.15  # m, radius of gyration assumed for it
SHOWN, HIDDEN = 2, 3  # MuJoCo and mjviser show groups 0 to 2


@dataclass(frozen=True, kw_only=True)
class ModelCfg:
    """The robot's base, collisions and ground in the engine.

    base        "free": on its own root joint; "fixed": held in the air (or bolted down); "mount": held by a stand that
                yields (springs in six directions); None: as the spec says
    collisions  "light": only the spec's contact geoms, against floor and objects; "full": every shape, also against
                each other (self-collision)
    floor       add a ground plane; None: only under a free base
    visual      keep shapes that touch nothing and put what is to be seen where viewers show it (`show_visuals`);
                physics alone is faster without
    """

    base: Base | None = None
    collisions: Collisions = "light"
    floor: bool | None = None
    visual: bool = False


@dataclass(frozen=True, kw_only=True)
class JointIndex:
    """Where the spec's joints live in the engine's arrays; the one place that converts orders."""

    joint_id: NDArray[np.intp]
    qpos: NDArray[np.intp]
    dof: NDArray[np.intp]


def build_spec(robot: Robot, cfg: ModelCfg | None = None) -> mujoco.MjSpec:
    """Return the robot's editable engine model, without actuators."""
    cfg = cfg or ModelCfg()
    spec = open_model(robot)
    mode = base_mode(robot, cfg.base)
    _set_options(spec, robot)
    _set_base(spec, robot, mode)
    _set_joints(spec, robot)
    # Gains and pose are the spec's; sensors of the file are read by no stage and may refer to deleted geoms.
    for element in (*spec.sensors, *spec.tuples, *spec.actuators, *spec.keys):
        spec.delete(element)
    spec.option.timestep = 1.0 / robot.spec.physics_hz
    # The servo's damping must enter the step implicitly: stiff gains on light links blow up otherwise.
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    if cfg.visual:
        show_visuals(spec)
    _set_collisions(spec, robot, cfg)
    if cfg.floor if cfg.floor is not None else mode == "free":
        add_floor(spec)
    return spec


def base_mode(robot: Robot, base: Base | None = None) -> Base:
    """Mode of the base: as given, else as in the spec."""
    return base or ("free" if robot.spec.base.floating else "fixed")


def open_model(robot: Robot) -> mujoco.MjSpec:
    """Parse the robot's model file: our own as it is, a user's with every check of `foreign.untrusted`."""
    from trueup.robot.foreign.untrusted import quiet_engine, read_model  # guards stay out of the import of this module

    if not robot.built_in:
        return read_model(robot.model_path, robot.root).spec
    try:
        with quiet_engine():
            return mujoco.MjSpec.from_file(str(robot.model_path))
    except (ValueError, mujoco.FatalError, OSError) as error:
        raise TrueupError(f"MuJoCo cannot read this model: {error}", file=robot.model_path) from None


def compile_model(robot: Robot, cfg: ModelCfg | None = None) -> mujoco.MjModel:
    """Return the robot's engine model without actuators (`world.batch` has the actuated one)."""
    return compile_spec(build_spec(robot, cfg), robot)


def add_servos(spec: mujoco.MjSpec, robot: Robot) -> None:
    """Add a plain position servo with the spec's gains and torque limit to every joint (`world` has better ones)."""
    for joint in robot.spec.joints:
        servo = spec.add_actuator(name=joint.name, target=joint.name, trntype=mujoco.mjtTrn.mjTRN_JOINT)
        servo.set_to_position(kp=joint.kp, kv=joint.kd)
        servo.forcelimited = mujoco.mjtLimited.mjLIMITED_TRUE
        servo.forcerange = np.array([-joint.torque, joint.torque])


def compile_spec(spec: mujoco.MjSpec, robot: Robot) -> mujoco.MjModel:
    """Compile; errors of the engine become `TrueupError`."""
    try:
        return spec.compile()
    except (ValueError, mujoco.FatalError) as error:
        raise TrueupError(f"MuJoCo cannot build this robot: {error}", file=robot.model_path) from None


def joint_index(model: mujoco.MjModel, robot: Robot) -> JointIndex:
    """Addresses of the spec's joints in `qpos` and `qvel`."""
    ids = np.array([mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_JOINT, name) for name in robot.spec.joint_names])
    return JointIndex(
        joint_id=ids, qpos=model.jnt_qposadr[ids].astype(np.intp), dof=model.jnt_dofadr[ids].astype(np.intp)
    )


def default_qpos(model: mujoco.MjModel, robot: Robot) -> NDArray[np.float64]:
    """The default pose as a full `qpos`: bases and objects where the model puts them, joints in place."""
    qpos: NDArray[np.float64] = model.qpos0.copy()
    qpos[joint_index(model, robot).qpos] = robot.spec.default_pose
    return qpos


def trunk_body(model: mujoco.MjModel, robot: Robot) -> str:
    """The base body, or the heaviest that is fixed to it where its own has no mass (a URDF's root link)."""
    base = model.body(robot.spec.base.body).id
    if model.body_mass[base] > 0.0:
        return robot.spec.base.body
    fixed = np.flatnonzero(model.body_weldid == model.body_weldid[base])
    return str(model.body(int(fixed[np.argmax(model.body_mass[fixed])])).name)


def _set_options(spec: mujoco.MjSpec, robot: Robot) -> None:
    for name, value in robot.options.items():
        option = robot.spec.options[name]
        body = _body(spec, robot, option.body)
        if option.sets == "mass":
            body.inertia = body.inertia * (value / body.mass)
            body.fullinertia = body.fullinertia * (value / body.mass)
            body.mass = value
        else:
            body.pos = body.pos * (value / np.linalg.norm(body.pos))


def _body(spec: mujoco.MjSpec, robot: Robot, name: str) -> mujoco.MjsBody:
    body = spec.body(name)
    if body is None or name == "world":
        raise _unknown(robot, "body", name, (other.name for other in spec.bodies if other.name != "world"))
    return body


def _unknown(robot: Robot, kind: str, name: str, known: Iterable[str]) -> TrueupError:
    return TrueupError(f"the model has no {kind} {name!r}{did_you_mean(name, known)}", file=robot.model_path)


def _set_base(spec: mujoco.MjSpec, robot: Robot, mode: Base) -> None:
    base = _body(spec, robot, robot.spec.base.body)
    free = [joint for joint in base.joints if joint.type == mujoco.mjtJoint.mjJNT_FREE]
    if mode in ("fixed", "mount"):
        for joint in free:
            spec.delete(joint)
        base.pos = np.array([0.0, 0.0, robot.spec.base.hold_height])
        if mode == "mount":
            _add_mount(spec, base)
        return
    if base.parent.name != "world":
        raise TrueupError(f"base body {base.name!r} hangs on {base.parent.name!r}: only a top body can float")
    if not free:
        base.add_freejoint(name="root")
    base.pos = np.array([0.0, 0.0, robot.spec.base.stand_height])
    base.quat = np.array([1.0, 0.0, 0.0, 0.0])


def _add_mount(spec: mujoco.MjSpec, base: mujoco.MjsBody) -> None:
    """Springs and dampers between the world and the base: three slides, then three hinges."""
    if base.joints:
        raise TrueupError(f"base body {base.name!r} has joints of its own: it cannot stand on a mount")
    mass = sum(body.mass for body in spec.bodies[1:] if body.explicitinertial) or 10.0
    rate = 2.0 * np.pi * _MOUNT_HZ
    for k, name in enumerate(MOUNT_JOINTS):
        turns = k >= 3
        size = mass * (_MOUNT_ARM**2 if turns else 1.0)
        base.add_joint(
            name=name,
            type=mujoco.mjtJoint.mjJNT_HINGE if turns else mujoco.mjtJoint.mjJNT_SLIDE,
            axis=np.eye(3)[k % 3],
            stiffness=size * rate**2,
            damping=2.0 * _MOUNT_RATIO * size * rate,
        )


def _set_joints(spec: mujoco.MjSpec, robot: Robot) -> None:
    for joint in robot.spec.joints:
        found: mujoco.MjsJoint | None = spec.joint(joint.name)
        if found is None:
            raise _unknown(robot, "joint", joint.name, (other.name for other in spec.joints))
        if found.type not in (mujoco.mjtJoint.mjJNT_HINGE, mujoco.mjtJoint.mjJNT_SLIDE):
            raise TrueupError(f"joint {joint.name!r} is neither hinge nor slide", file=robot.model_path)
        limits = np.array(joint.position)
        in_degrees = spec.compiler.degree and found.type == mujoco.mjtJoint.mjJNT_HINGE  # the file's unit
        found.range = np.degrees(limits) if in_degrees else limits
        found.limited = mujoco.mjtLimited.mjLIMITED_TRUE


def _set_collisions(spec: mujoco.MjSpec, robot: Robot, cfg: ModelCfg) -> None:
    """Light: the robot's contact geoms, but not against each other; its other geoms go (or touch nothing, in films).

    Bodies in the file that are not the robot's, such as a cube, stay as they are.
    """
    names = set(robot.spec.contact_geoms)
    known = {geom.name for geom in spec.geoms}
    for name in sorted(names - known):
        raise _unknown(robot, "contact geom", name, known)
    if not names or cfg.collisions == "full":
        return  # full is as the file says: its purely visual shapes stay intangible
    for pair in list(spec.pairs):
        spec.delete(pair)
    from_shapes = spec.compiler.inertiafromgeom == mujoco.mjtInertiaFromGeom.mjINERTIAFROMGEOM_TRUE
    for geom in _own_geoms(spec, robot):
        # A shape may go only if no mass is taken from it and no tendon runs over it.
        removable = not spec.tendons and not from_shapes and geom.parent.explicitinertial
        if geom.name in names:
            geom.contype, geom.conaffinity = 1, 0
        elif cfg.visual or not removable:
            geom.contype, geom.conaffinity = 0, 0
        else:
            spec.delete(geom)


def _own_geoms(spec: mujoco.MjSpec, robot: Robot) -> list[mujoco.MjsGeom]:
    """Geoms of the trees that hold the base, a joint or a contact geom of the robot."""
    joints, geoms = set(robot.spec.joint_names), set(robot.spec.contact_geoms)
    own: list[mujoco.MjsGeom] = []
    for top in spec.worldbody.bodies:
        inside = top.find_all("geom")
        names = {body.name for body in (top, *top.find_all("body"))}
        moves = joints.intersection(joint.name for joint in top.find_all("joint"))
        if robot.spec.base.body in names or moves or geoms.intersection(geom.name for geom in inside):
            own += inside
    return own


def add_floor(spec: mujoco.MjSpec, *, solid: bool = True) -> None:
    """Put a plane at height zero, unless the model has a ground of its own."""
    ground = {mujoco.mjtGeom.mjGEOM_PLANE, mujoco.mjtGeom.mjGEOM_HFIELD}
    if any(geom.type in ground for geom in spec.worldbody.geoms):
        return
    plane, grey = mujoco.mjtGeom.mjGEOM_PLANE, [0.82, 0.84, 0.86, 1]
    spec.worldbody.add_geom(name=FLOOR, type=plane, size=[0, 0, 1], contype=solid, conaffinity=solid, rgba=grey)


def show_visuals(spec: mujoco.MjSpec) -> None:
    """Sort the robot's geoms into the groups `SHOWN` and `HIDDEN`, so that viewers agree by their default settings.

    A geom that can touch nothing is visual. Where some visual geoms are in groups that viewers show, those in other
    groups are taken to be hidden on purpose. A body without visual geoms shows its collision geoms; a collision geom in
    the same group as visual ones is shown too (simple models draw with both).
    """
    bodies = [list(body.geoms) for body in spec.bodies if body.name != spec.worldbody.name]
    groups = {geom.group for geoms in bodies for geom in geoms if _is_visual(geom)}
    groups = groups & set(range(SHOWN + 1)) or groups
    for geoms in bodies:
        has_visual = any(_is_visual(geom) and geom.group in groups for geom in geoms)
        for geom in geoms:
            shown = geom.group in groups if has_visual else geom.contype or geom.conaffinity
            geom.group = SHOWN if shown else HIDDEN


def _is_visual(geom: mujoco.MjsGeom) -> bool:
    return not (geom.contype or geom.conaffinity) and geom.rgba[3] > 0
