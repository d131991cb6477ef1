"""Fields: location of each parameter in the engine's arrays, with reading and writing of its values.

Joint stops are springs with dampers, in the units of the joint: MuJoCo's limit asks for the acceleration -b v - d k r
of a joint that is r inside its stop and yields by R = (1 - d) w / d per torque, w the joint's inverse inertia
(`dof_invweight0`) and d its impedance: it is a spring of stiffness d k / R and a damper of b / R (see "Solver
parameters" of its documentation). Here w is the nominal model's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import mujoco
import numpy as np

from trueup.core.arrays import FloatArray, Ids
from trueup.core.errors import TrueupError
from trueup.models.friction import LAWS
from trueup.robot.model import MOUNT_JOINTS
from trueup.world.actuators.engine import DC_K, DC_KD, DC_KP, DC_R, PID_KD, PID_KP, SUPPLY_V
from trueup.world.motion import as_slice
from trueup.world.parameters.inertia import check_inertia, compose, decompose, from_shape, to_shape
from trueup.world.parameters.table import GEAR_FRICTION

if TYPE_CHECKING:
    from trueup.world.batch import BatchSim

Columns = Ids | slice
ALL = slice(None)  # every column


class Field(NamedTuple):
    """A parameter of one batch.

    get  returns a copy, (nsim, ncolumn, ...), or (nsim, ...) of the whole robot
    put  writes values (rows, ncolumn, ...) into rows and columns: what is not named keeps its bits
    """

    get: Callable[[], FloatArray]
    put: Callable[[FloatArray, Ids, Columns], None]


def make_field(sim: BatchSim, name: str, *, drawn: bool = False) -> Field:
    """The field of a parameter.

    `drawn`: for values that are computed from nominal ones and written again and again, so that rounding must not add
    up: a mass leaves the inertia alone, a tilt has the nominal size of gravity, inertias are not checked.
    """
    gear = sim.gear_friction
    if name in GEAR_FRICTION and (gear is None or not gear.has(name)):
        laws = [law.name for law in LAWS.values() if name.removeprefix("friction_") in law.coefficients]
        raise TrueupError(f"parameter {name!r} needs a friction law: SimCfg(friction={laws[0]!r})", place=name)
    if gear is not None and (name in GEAR_FRICTION or name in ("damping", "friction")):
        shape = sim.nsim, sim.robot.spec.njoint
        return _rewritten(lambda: gear.get(name, shape), lambda values: gear.set(name, values))
    expand, index = sim.batch.expand, sim.index
    if name in _DOF_FIELD:
        after = sim.params.mark_stale if name == "armature" else None
        return _in_columns(expand(_DOF_FIELD[name]), index.dof, after=after)
    if name == "stiffness":
        return _in_columns(expand("jnt_stiffness"), index.joint_id)
    if name in ("stop_low", "stop_high"):
        return _in_columns(expand("jnt_range")[:, :, int(name == "stop_high")], index.joint_id)
    if name in ("stop_stiffness", "stop_damping"):
        return _rewritten(lambda: get_stop(sim, name), lambda values: _set_stop(sim, name, values))
    if name in ("encoder_bias", "torque_offset"):
        after = None if name == "encoder_bias" else lambda rows: sim.apply_torque_offset()
        return _in_columns(getattr(sim, name), np.arange(sim.robot.spec.njoint), after=after)
    if name == "delay":
        return _delay(sim)
    if name in ("kp", "kd", "torque_limit", "stall_torque", "no_load_speed"):
        return _servo(sim, name)
    if name in ("gravity", "tilt"):
        return _gravity(sim, name, drawn)
    if name in ("mount_stiffness", "mount_damping"):
        return _mount(sim, name)
    if name.startswith("contact_"):
        return _contact(sim, name)
    if name.startswith("object_"):
        return _object(sim, name)
    return _body(sim, name, drawn)


_DOF_FIELD = {"armature": "dof_armature", "damping": "dof_damping", "friction": "dof_frictionloss"}


def _in_columns(
    array: FloatArray,
    columns: Ids,
    *,
    encode: Callable[[FloatArray, Columns], FloatArray] | None = None,
    decode: Callable[[FloatArray], FloatArray] | None = None,
    after: Callable[[Ids], None] | None = None,
) -> Field:
    """Columns of a live array (nsim, n, ...) that holds encoded values; `after` is told the rows that were written."""
    where = as_slice(columns)
    view = array[:, where] if isinstance(where, slice) else None

    def get() -> FloatArray:
        found: FloatArray = array[:, columns]
        return found if decode is None else decode(found)

    def put(values: FloatArray, rows: Ids, chosen: Columns) -> None:
        ready = values if encode is None else encode(values, chosen)
        if view is not None and chosen is ALL:
            view[rows] = ready
        else:
            array[rows[:, None], columns[chosen]] = ready
        if after is not None:
            after(rows)

    return Field(get, put)


def _rewritten(get: Callable[[], FloatArray], write: Callable[[FloatArray], None]) -> Field:
    """A parameter that is written whole."""

    def put(values: FloatArray, rows: Ids, chosen: Columns) -> None:
        changed = get()
        changed[rows if chosen is ALL else (rows[:, None], chosen)] = values
        write(changed)

    return Field(get, put)


def _delay(sim: BatchSim) -> Field:
    def put(values: FloatArray, rows: Ids, chosen: Columns) -> None:
        if chosen is not ALL:
            seconds = sim.delay[rows]
            seconds[:, chosen] = values
            values = seconds
        sim.delay_line.put(sim.delay_line.plan(values), rows)

    return Field(lambda: sim.delay, put)


def _servo(sim: BatchSim, name: str) -> Field:
    every, is_pd = np.arange(sim.robot.spec.njoint), sim.cfg.actuator.kind == "pd"
    if name == "torque_limit":
        limits = sim.batch.expand("actuator_forcerange")
        return _in_columns(limits, every, encode=lambda v, at: np.stack([-v, v], -1), decode=lambda v: v[..., 1])
    if name in ("kp", "kd"):
        numbers = sim.batch.expand("actuator_biasprm" if is_pd else "actuator_gainprm")
        if is_pd:
            gains = numbers[:, :, PID_KP if name == "kp" else PID_KD]
            return _in_columns(gains, every, encode=lambda v, at: -v, decode=np.negative)
        return _in_columns(numbers[:, :, DC_KP if name == "kp" else DC_KD], every)
    if is_pd:
        raise TrueupError(f'parameter {name!r} needs ActuatorCfg(kind="dcmotor"); this simulation uses "pd"')
    numbers, (stall, speed) = sim.batch.expand("actuator_gainprm"), sim.params.motor

    def write(rows: Ids) -> None:
        numbers[rows, :, DC_K] = constant = SUPPLY_V / speed[rows]
        numbers[rows, :, DC_R] = constant * SUPPLY_V / stall[rows]

    return _in_columns(stall if name == "stall_torque" else speed, every, after=write)


def _gravity(sim: BatchSim, name: str, drawn: bool) -> Field:
    gravity = sim.batch.expand("opt.gravity").reshape(sim.nsim, 3)
    if name == "gravity":
        return _in_columns(gravity, np.arange(3))
    nominal = float(np.linalg.norm(sim.model.opt.gravity))

    def put(values: FloatArray, rows: Ids, chosen: Columns) -> None:
        gravity[rows] = (nominal if drawn else np.linalg.norm(gravity[rows], axis=1, keepdims=True)) * down(values)

    return Field(lambda: tilt_of(gravity), put)


def _mount(sim: BatchSim, name: str) -> Field:
    ids = [mujoco.mj_name2id(sim.model, mujoco.mjtObj.mjOBJ_JOINT, joint) for joint in MOUNT_JOINTS]
    if -1 in ids:
        raise TrueupError(f'parameter {name!r} needs a base on a stand: ModelCfg(base="mount")', place=name)
    if name == "mount_stiffness":
        return _in_columns(sim.batch.expand("jnt_stiffness"), np.array(ids, np.intp))
    return _in_columns(sim.batch.expand("dof_damping"), sim.model.jnt_dofadr[ids].astype(np.intp))


def _contact(sim: BatchSim, name: str) -> Field:
    """Geoms of robots and ground that can touch something; objects have parameters of their own."""
    touching = np.flatnonzero((sim.model.geom_contype | sim.model.geom_conaffinity) != 0)
    geoms = np.setdiff1d(touching, [sim.model.geom(thing.name).id for thing in sim.scene.objects]).astype(np.intp)
    numbers = sim.batch.expand("geom_friction" if name == "contact_friction" else "geom_solref")
    column = int(name == "contact_dampratio")
    return _in_columns(
        numbers[:, :, column], geoms, encode=lambda v, at: v[:, None], decode=lambda found: found.max(axis=1)
    )


def _object(sim: BatchSim, name: str) -> Field:
    model, names = sim.model, sim.params.names_of("object")
    if not names:
        raise TrueupError(f"parameter {name!r} needs an object in the scene: there is none", place=name)
    if name == "object_friction":
        geoms = np.array([model.geom(name).id for name in names], np.intp)
        return _in_columns(sim.batch.expand("geom_friction")[:, :, 0], geoms)
    bodies = np.array([model.body(name).id for name in names], np.intp)
    mass, inertia = _in_columns(sim.batch.expand("body_mass"), bodies), sim.batch.expand("body_inertia")

    def put(values: FloatArray, rows: Ids, chosen: Columns) -> None:
        mass.put(values, rows, chosen)
        ratio = values / model.body_mass[bodies[chosen]]  # from nominal: rounding must not add up
        inertia[rows[:, None], bodies[chosen]] = model.body_inertia[bodies[chosen]] * ratio[..., None]
        sim.params.mark_stale(rows)

    return Field(mass.get, put)


def _body(sim: BatchSim, name: str, drawn: bool) -> Field:
    model, stale = sim.model, sim.params.mark_stale
    bodies = np.array([model.body(body).id for body in sim.params.body_names])
    if name == "com_offset":
        place = model.body_ipos[bodies]
        offset = sim.batch.expand("body_ipos")
        return _in_columns(offset, bodies, encode=lambda v, at: place[at] + v, decode=lambda v: v - place, after=stale)
    own = model.body_mass[bodies]
    mass = _in_columns(
        sim.batch.expand("body_mass"), bodies, encode=lambda v, at: own[at] * v, decode=lambda v: v / own, after=stale
    )
    if name == "mass_scale" and drawn:
        return mass
    moments = _in_columns(sim.batch.expand("body_inertia"), bodies)
    axes = _in_columns(sim.batch.expand("body_iquat"), bodies, after=stale)
    nominal = compose(model.body_inertia[bodies], model.body_iquat[bodies])

    def get() -> FloatArray:
        six = compose(moments.get(), axes.get())
        return six if name == "inertia" else to_shape(six / mass.get()[..., None], nominal)

    def put_mass(values: FloatArray, rows: Ids, chosen: Columns) -> None:
        at, masses = (rows[:, None], bodies[chosen]), sim.batch.expand("body_mass")
        before = masses[at]
        mass.put(values, rows, chosen)
        sim.batch.expand("body_inertia")[at] *= (masses[at] / before)[..., None]

    def put(values: FloatArray, rows: Ids, chosen: Columns) -> None:
        if name == "inertia_shape":
            scale = mass.get()[rows][:, chosen]
            values = from_shape(values, nominal[chosen]) * scale[..., None]
        if not drawn:
            check_inertia(values, tuple(np.array(sim.params.body_names)[chosen]))
        principal, turned = decompose(values)
        moments.put(principal, rows, chosen)
        axes.put(turned, rows, chosen)

    return Field(mass.get, put_mass) if name == "mass_scale" else Field(get, put)


def get_stop(sim: BatchSim, name: str) -> FloatArray:
    """Stiffness (`stop_stiffness`) or damping (`stop_damping`) of every joint's stops, (nsim, njoint)."""
    solref = sim.batch.expand("jnt_solref")[:, sim.index.joint_id]
    full, strength = _impedance(sim)
    time, ratio = solref[..., 0], solref[..., 1]
    direct = time <= 0
    safe = np.where(direct, 1.0, time)
    if name == "stop_stiffness":
        wanted = np.where(direct, -time / full, 1.0 / (full * (safe * np.where(direct, 1.0, ratio)) ** 2))
    else:
        wanted = np.where(direct, -ratio / full, 2.0 / (full * safe))
    return wanted * strength


def _set_stop(sim: BatchSim, name: str, values: FloatArray) -> None:
    """Write one of the two for all joints (nsim, njoint); the other stays."""
    numbers = {key: get_stop(sim, key) for key in ("stop_stiffness", "stop_damping")} | {name: values}
    full, strength = _impedance(sim)
    solref = sim.batch.expand("jnt_solref")
    solref[:, sim.index.joint_id, 0] = -numbers["stop_stiffness"] / strength * full
    solref[:, sim.index.joint_id, 1] = -numbers["stop_damping"] / strength * full


def _impedance(sim: BatchSim) -> tuple[FloatArray, FloatArray]:
    """d, and torque per asked acceleration 1 / R, (njoint,) each."""
    full: FloatArray = sim.model.jnt_solimp[sim.index.joint_id, 1]
    return full, full / ((1.0 - full) * sim.model.dof_invweight0[sim.index.dof])


def down(tilt: FloatArray) -> FloatArray:
    """Gravity's direction (..., 3) in a base turned by roll, then pitch, (..., 2)."""
    roll, pitch = tilt[..., 0], tilt[..., 1]
    return np.stack([np.sin(pitch), -np.sin(roll) * np.cos(pitch), -np.cos(roll) * np.cos(pitch)], axis=-1)


def tilt_of(gravity: FloatArray) -> FloatArray:
    """Roll and pitch (..., 2) of a base in which gravity points so (..., 3)."""
    size = np.maximum(np.linalg.norm(gravity, axis=-1), 1e-12)
    pitch = np.arcsin(np.clip(gravity[..., 0] / size, -1.0, 1.0))
    return np.stack([np.arctan2(-gravity[..., 1], -gravity[..., 2]), pitch], axis=-1)
