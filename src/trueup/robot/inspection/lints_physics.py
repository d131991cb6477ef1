"""Checks of masses, shapes, contacts and servos, each with the number behind it."""

from __future__ import annotations

from collections.abc import Iterator

import mujoco
import numpy as np

from trueup.core.arrays import FloatArray
from trueup.robot.drafts.stance import stance_load
from trueup.robot.inspection.inspect import Level, Lint, Subject, listed
from trueup.robot.model import ModelCfg, add_servos, build_spec, compile_spec, default_qpos, joint_index
from trueup.robot.shapes import collision_geoms, geom_box, lowest_point

OVERLAP_M = 1e-3
SHOWN_PAIRS = 6
HEAVIEST = 20_000.0  # kg/m3; osmium has 22600
LIGHTEST_KG = 1e-4
NEGLIGIBLE = 0.005  # share of the robot's mass
TOTAL_KG = (0.01, 1000.0)
REACH_FACTOR = 2.0  # radius of gyration over the farthest point of the body's shapes
COMPACT_FACTOR = 0.05
SETTLE_S, WATCH_S = 0.75, 0.25
NUDGE = 0.01  # rad or m
RESTLESS = 1.0  # rad/s or m/s
STAND_SLACK_M = 0.02
SAGS_HELD, SAGS_STANDING = 0.1, 0.3  # rad or m; policies of legged robots are often trained with soft servos
_WARN = mujoco.mjtWarning


def check_inertia(subject: Subject) -> Iterator[Lint]:
    """Inertias that no body of this mass and size has; small parts that are fixed to others do not matter."""
    model, data = subject.model, subject.data
    small = NEGLIGIBLE * float(model.body_mass.sum())
    for body in range(1, model.nbody):
        mass = float(model.body_mass[body])
        name = model.body(body).name
        shapes = [geom for geom in range(model.ngeom) if model.geom_bodyid[geom] == body]
        if mass < LIGHTEST_KG or not shapes or (mass < small and not model.body_jntnum[body]):
            continue
        boxes = np.array([geom_box(model, data, geom) for geom in shapes])
        low, high = boxes[:, 0].min(axis=0), boxes[:, 1].max(axis=0)  # of the box around all shapes
        reach = float(np.linalg.norm(np.maximum(np.abs(low - data.xipos[body]), np.abs(high - data.xipos[body]))))
        volume = float(np.prod(high - low))
        gyration = float(np.sqrt(model.body_inertia[body].max() / mass))
        if reach > 0 and gyration > REACH_FACTOR * reach:
            message = (
                f"its radius of gyration is {gyration:.3f} m but its shapes end {reach:.3f} m from its centre of mass: "
                f"it turns {(gyration / reach) ** 2:.0f} times too slowly"
            )
            fix = "check the units of its inertia (kg m2, not kg mm2 or g cm2)"
            yield Lint(level="warning", code="inertia-too-large", where=name, message=message, fix=fix)
        elif reach > 0 and gyration < COMPACT_FACTOR * reach:
            size = f"{gyration * 1e3:.2f} mm in a body that reaches {reach * 1e3:.0f} mm"
            message = f"its radius of gyration is {size}: it turns as if it were a point"
            fix = "check the units of its inertia (kg m2)"
            yield Lint(level="warning", code="inertia-too-small", where=name, message=message, fix=fix)
        if volume > 0 and mass / volume > HEAVIEST:
            message = f"{mass:.3g} kg in a box of {volume * 1e6:.3g} cm3 is {mass / volume:.0f} kg/m3, denser than lead"
            yield Lint(level="warning", code="too-dense", where=name, message=message, fix="check its mass (kg)")


def check_mass(subject: Subject) -> Iterator[Lint]:
    """Moving parts without mass, a base that lost its mass, an odd total, a total that the URDF does not declare."""
    model, base = subject.model, subject.robot.spec.base
    welded = np.bincount(model.body_weldid, weights=model.body_mass, minlength=model.nbody)
    moving = sorted({int(model.body_weldid[body]) for body in model.jnt_bodyid})
    light = [body for body in moving if welded[body] < LIGHTEST_KG]
    if light:
        message = f"{len(light)} parts move with {welded[light].max():.2g} kg or less: tiny forces throw them about"
        where = listed([model.body(body).name for body in light])
        yield Lint(level="warning", code="tiny-mass", where=where, message=message, fix="give them their mass")
    total = float(model.body_mass.sum())
    if not TOTAL_KG[0] <= total <= TOTAL_KG[1]:
        message = f"the whole robot has {total:.4g} kg"
        yield Lint(level="warning", code="odd-mass", where="robot", message=message, fix="check the units (kg)")
    if base.floating and welded[model.body(base.body).id] < LIGHTEST_KG:
        message = "the floating base and what is fixed to it have no mass: their mass got lost in the file"
        fix = "give the root link an inertia"
        yield Lint(level="error", code="base-mass-lost", where=base.body, message=message, fix=fix)
    declared = subject.checked.urdf_mass if subject.checked is not None and subject.checked.is_urdf else total
    if abs(total - declared) > 0.01 * max(declared, 0.1):
        message = f"the links of the URDF weigh {declared:.3f} kg together, the engine's model {total:.3f} kg"
        fix = "give every link with a joint an <inertial>; shapes of the others got the density of water"
        yield Lint(level="warning", code="mass-differs", where="robot", message=message, fix=fix)


def check_overlap(subject: Subject) -> Iterator[Lint]:
    """Parts that push into each other in the default pose, the deepest first."""
    model, data = subject.model, subject.data
    depth: dict[str, float] = {}
    for number in range(data.ncon):
        contact = data.contact[number]
        pair = " and ".join(model.geom(int(geom)).name or f"geom {int(geom)}" for geom in contact.geom)
        depth[pair] = max(depth.get(pair, 0.0), -float(contact.dist))
    deep = sorted((pair for pair in depth if depth[pair] > OVERLAP_M), key=lambda pair: -depth[pair])
    for number, pair in enumerate(deep[:SHOWN_PAIRS], 1):
        message = f"they overlap by {depth[pair] * 1e3:.1f} mm in the default pose and push each other apart"
        if number == SHOWN_PAIRS < len(deep):
            message += f" (and {len(deep) - SHOWN_PAIRS} more pairs)"
        fix = "change the pose, shrink a shape, or exclude the pair with <contact><exclude>"
        yield Lint(level="warning", code="pose-collides", where=pair, message=message, fix=fix)


def check_standing(subject: Subject) -> Iterator[Lint]:
    """A floating robot needs shapes that carry it, at the height that the spec says."""
    spec, model, data = subject.robot.spec, subject.model, subject.data
    if not spec.base.floating:
        return
    solid = [geom for geom in collision_geoms(model) if model.geom_contype[geom] or model.geom_conaffinity[geom]]
    if not solid or not spec.feet:
        what = "no shape can touch the floor" if not solid else "the spec names no feet"
        message = f"{what}: the robot falls through or cannot be asked which foot stands"
        fix = "add collision shapes to the model and name them in feet"
        level: Level = "warning" if solid else "error"
        yield Lint(level=level, code="no-feet", where="feet", message=message, fix=fix)
        return
    names = {mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_GEOM, name) for name in (*spec.contact_geoms, *spec.feet)}
    carrying = [geom for geom in solid if geom in names] if spec.contact_geoms else solid
    base = float(data.xpos[model.body(spec.base.body).id][2])
    height = base - min((lowest_point(model, data, geom) for geom in carrying), default=base)
    if abs(height - spec.base.stand_height) > STAND_SLACK_M:
        message = (
            f"in the default pose its lowest shape is {height:.3f} m below the base frame, stand_height says "
            f"{spec.base.stand_height:.3f} m: it starts in the air or in the floor"
        )
        fix = f"set stand_height = {height:.3f}"
        yield Lint(level="warning", code="stand-height", where="base", message=message, fix=fix)


def check_strength(subject: Subject) -> Iterator[Lint]:
    """Joints of a bolted robot whose torque limit cannot hold the default pose against gravity."""
    if subject.robot.spec.base.floating:
        return
    load = np.abs(subject.data.qfrc_bias[joint_index(subject.model, subject.robot).dof])
    for joint, needed in zip(subject.robot.spec.joints, load, strict=True):
        if needed > joint.torque:
            message = f"gravity asks {needed:.2f} in the default pose, its limit is {joint.torque:.2f}: it sinks"
            fix = "check torque and masses, or choose another default pose"
            yield Lint(level="warning", code="too-weak", where=joint.name, message=message, fix=fix)


def check_sag(subject: Subject) -> Iterator[Lint]:
    """Servos so soft that gravity bends them far off the default pose: load / kp, the feet sharing the weight."""
    spec, model = subject.robot.spec, subject.model
    feet = [model.geom(name).id for name in spec.feet if mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_GEOM, name) >= 0]
    if spec.base.floating and len(feet) < 3:  # two soles share the weight in more ways than evenly
        return
    load = np.abs(stance_load(model, subject.data, feet)[joint_index(model, subject.robot).dof])
    most = SAGS_STANDING if spec.base.floating else SAGS_HELD
    level: Level = "note" if spec.base.floating else "warning"
    sag = np.minimum(load, spec.torque_limit) / np.maximum(spec.kp, 1e-9)
    if not (soft := np.flatnonzero(sag > most)).size:
        return
    worst = int(np.argmax(sag))
    message = (
        f"gravity asks {load[worst]:.2f} of {spec.joints[worst].name} in the default pose; with kp = "
        f"{spec.kp[worst]:.4g} it settles {sag[worst]:.2f} below its target, {len(soft)} of {spec.njoint} joints more "
        f"than {most:g}"
    )
    fix = f"raise kp (to {load[worst] / most:.3g} for {most:g}) where the robot's own servo allows it, and kd with it"
    where = listed([spec.joints[k].name for k in soft])
    yield Lint(level=level, code="sags", where=where, message=message, fix=fix)


def check_rotors(subject: Subject) -> Iterator[Lint]:
    """A floating robot without armature, damping and dry friction in any joint: a file that left the motors out."""
    model, index = subject.model, joint_index(subject.model, subject.robot)
    passive = (model.dof_armature, model.dof_damping, model.dof_frictionloss)
    if not subject.robot.spec.base.floating or any(field[index.dof].any() for field in passive):
        return
    message = "no joint has armature, damping or dry friction: legs swing more easily than with motors and gears"
    fix = "write armature (rotor inertia times gear ratio squared) into the model, or calibrate with a log"
    yield Lint(level="note", code="no-joint-dynamics", where="joints", message=message, fix=fix)


def check_servo(subject: Subject) -> Iterator[Lint]:
    """Simulate a second of holding still: gains that shake or blow up at this physics rate."""
    speed = hold_still(subject)
    step = 1.0 / subject.robot.spec.physics_hz
    for joint, inertia, fastest in zip(subject.robot.spec.joints, subject.inertia, speed, strict=True):
        if np.isfinite(fastest) and fastest < RESTLESS:
            continue
        state = f"still moves at {fastest:.1f} per second" if np.isfinite(fastest) else "has left all bounds"
        message = (
            f"nudged by {NUDGE:g} and told to hold, it {state} after {SETTLE_S:g} s; sqrt(kp/I) dt = "
            f"{np.sqrt(joint.kp / inertia) * step:.2f}, kd dt/I = {joint.kd * step / inertia:.2f}"
        )
        fix = "lower kp and kd, raise physics_hz, or give the joint its armature (rotor inertia times gear squared)"
        yield Lint(level="warning", code="unstable-gains", where=joint.name, message=message, fix=fix)


def hold_still(subject: Subject) -> FloatArray:
    """Return each joint's top speed at the end of a second of holding the default pose, in the air, no contacts."""
    robot = subject.robot
    spec = build_spec(robot, ModelCfg(base="fixed", floor=False))
    add_servos(spec, robot)
    spec.option.disableflags = int(spec.option.disableflags) | int(mujoco.mjtDisableBit.mjDSBL_CONTACT)
    model = compile_spec(spec, robot)
    data = mujoco.MjData(model)
    index = joint_index(model, robot)
    data.qpos[:] = default_qpos(model, robot)
    data.ctrl[:] = robot.spec.default_pose
    data.qpos[index.qpos] += NUDGE
    speed = np.zeros(robot.spec.njoint)
    rate = robot.spec.physics_hz
    for step in range(round((SETTLE_S + WATCH_S) * rate)):
        mujoco.mj_step(model, data)
        if any(data.warning[kind].number for kind in (_WARN.mjWARN_BADQACC, _WARN.mjWARN_BADQVEL)):
            return np.full(robot.spec.njoint, np.nan)
        if step >= SETTLE_S * rate:
            speed = np.maximum(speed, np.abs(data.qvel[index.dof]))
    return speed


PHYSICS_CHECKS = (
    check_inertia,
    check_mass,
    check_overlap,
    check_standing,
    check_strength,
    check_sag,
    check_rotors,
    check_servo,
)
