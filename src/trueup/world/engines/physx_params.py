"""Parameters by name in the second engine: names, units and shapes of `world.parameters`, those it can honour."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import mujoco
import numpy as np
from numpy.typing import ArrayLike, NDArray

from trueup.core.arrays import FloatArray, Ids
from trueup.core.errors import TrueupError
from trueup.robot.model import FLOOR
from trueup.world.engines.physx_scene import load_sapien
from trueup.world.parameters.fields import down, tilt_of
from trueup.world.parameters.inertia import check_inertia, compose, decompose, from_shape, to_shape
from trueup.world.parameters.params import checked_values, columns_of
from trueup.world.parameters.table import PARAMETERS, parameter

if TYPE_CHECKING:
    from trueup.world.engines.sapien_sim import SapienSim

_JOINT = {
    "kp": "kp", "kd": "kd", "torque_limit": "limit", "damping": "damping", "friction": "friction",
    "stiffness": "stiffness", "torque_offset": "offset",
}  # fmt: skip
_MOTOR = ("stall_torque", "no_load_speed")
_BODY = ("mass_scale", "com_offset", "inertia", "inertia_shape")
_IN_DRIVES = ("kd", "damping", "friction")  # of numbers of joints
_STOPS = ("stop_low", "stop_high")
HONOURED = (
    *_JOINT, *_MOTOR, "armature", *_STOPS, "delay", "encoder_bias", *_BODY, "contact_friction", "gravity", "tilt",
)  # fmt: skip


class PhysxParams:
    """The named parameters of one SapienSim. What it cannot honour is refused by name.

    own_gravity   (nsim,) rows whose gravity is not the scene's
    extra_weight  their links and the forces (3,) that these need in every physics step
    """

    def __init__(self, sim: SapienSim) -> None:
        self._sim, model, spec = sim, sim.model, sim.robot.spec
        dof, n = sim.index.dof, sim.nsim
        joints = sim.joints
        own = {"kp": spec.kp, "kd": spec.kd, "limit": spec.torque_limit, "rest": model.qpos_spring[sim.index.qpos]}
        own |= {"damping": model.dof_damping[dof], "friction": model.dof_frictionloss[dof]}
        own |= {"stiffness": model.jnt_stiffness[sim.index.joint_id]}
        for name, values in own.items():
            getattr(joints, name)[:] = values
        if sim.cfg.actuator.kind == "dcmotor":
            joints.motor = np.stack([np.tile(limit, (n, 1)) for limit in (spec.stall_torque, spec.velocity_limit)])
        self._armature = np.tile(model.dof_armature[dof], (n, 1))
        names = [model.body(i).name for i in range(1, model.nbody) if model.body_mass[i] > 0]
        self._bodies = np.array([model.body(name).id for name in names], np.intp)
        self._names = {"joint": spec.joint_names, "body": tuple(names), "robot": ()}
        self._mass = np.ones((n, len(names)))
        self._offset = np.zeros((n, len(names), 3))
        self._nominal = compose(model.body_inertia[self._bodies], model.body_iquat[self._bodies])
        self._inertia = np.tile(self._nominal, (n, 1, 1))
        self._friction = np.zeros(n)
        self._stops = np.stack([np.tile(side, (n, 1)) for side in model.jnt_range[sim.index.joint_id].T])
        self._gravity = np.tile(model.opt.gravity, (n, 1))
        self.own_gravity: NDArray[np.bool_] = np.zeros(n, np.bool_)
        self.extra_weight: list[tuple[Any, FloatArray]] = []
        self.set("contact_friction", nominal_friction(model))

    def names_of(self, scope: str) -> tuple[str, ...]:
        """Names of the joints or bodies that the columns of a parameter belong to."""
        return self._names.get(scope, ())

    def get(self, name: str) -> FloatArray:
        """Return (nsim, njoint | nbody | -, ...) values, a copy."""
        return self._array(name).copy()

    def set(
        self, name: str, values: ArrayLike, *, of: str | Sequence[str] | None = None, ids: Ids | None = None
    ) -> None:
        """Write values, broadcast over simulations (`ids`) and over joints or bodies (`of`)."""
        array = self._array(name).copy()
        rows = np.arange(self._sim.nsim) if ids is None else np.asarray(ids)
        where: tuple[Ids, ...] = (rows,)
        if of is not None:
            where = (rows[:, None], columns_of(name, of, self._names[PARAMETERS[name].scope]))
        array[where] = checked_values(name, values, array[where].shape)
        self._put(name, array, rows)

    def _array(self, name: str) -> FloatArray:
        parameter(name)  # refuses an unknown name
        if name not in HONOURED:
            raise TrueupError(
                f"the second engine cannot honour parameter {name!r} (it can: {', '.join(HONOURED)})", place=name
            )
        sim = self._sim
        if name in _MOTOR:
            if sim.joints.motor is None:
                raise TrueupError(f'parameter {name!r} needs ActuatorCfg(kind="dcmotor"); this simulation uses "pd"')
            motor: FloatArray = sim.joints.motor[_MOTOR.index(name)]
            return motor
        if name in _JOINT:
            found: FloatArray = getattr(sim.joints, _JOINT[name])
            return found
        arrays = {"armature": self._armature, "delay": sim.delay, "encoder_bias": sim.encoder_bias}
        arrays |= {"mass_scale": self._mass, "com_offset": self._offset, "inertia": self._inertia}
        arrays |= dict(zip(_STOPS, self._stops, strict=True)) | {"gravity": self._gravity}
        if name == "inertia_shape":
            return to_shape(self._inertia / self._mass[..., None], self._nominal)
        return tilt_of(self._gravity) if name == "tilt" else (arrays | {"contact_friction": self._friction})[name]

    def _put(self, name: str, array: FloatArray, rows: Ids) -> None:
        sim = self._sim
        if name == "delay":
            sim.delay_line.set_delay(array)
            return
        if name == "inertia_shape":
            name, array = "inertia", from_shape(array, self._nominal) * self._mass[..., None]
        if name == "inertia":
            check_inertia(array, self._names["body"])
        if name == "tilt":
            name, array = "gravity", np.linalg.norm(self._gravity, axis=1, keepdims=True) * down(array)
        if name == "mass_scale":  # inertia follows, as in the first engine
            self._inertia *= (array / self._mass)[..., None]
        self._array(name)[...] = array
        if name in _IN_DRIVES:
            sim.joints.renew()
        elif name == "armature":
            for row in rows.tolist():
                for joint, value in zip(sim.index.joint_id, array[row], strict=True):
                    sim.physx.rows[row].joints[joint].set_armature(np.array([value], np.float32))
        elif name in _STOPS:
            self._write_stops(rows)
        elif name in _BODY:
            self._write_bodies(rows)
        if name == "gravity" or name in _BODY:
            self._weigh()
        if name == "contact_friction":
            for row in rows.tolist():
                material = sim.physx.rows[row].material
                material.set_static_friction(2.0 * array[row])  # the ground has none, and PhysX takes the mean
                material.set_dynamic_friction(2.0 * array[row])

    def _write_stops(self, rows: Ids) -> None:
        sim = self._sim
        ends = self._stops - sim.model.qpos0[sim.index.qpos]
        if (ends[0] >= ends[1]).any():
            raise TrueupError("stop_low must stay below stop_high", place="stop_low")
        for row in rows.tolist():
            for k, joint in enumerate(sim.index.joint_id):
                sim.physx.rows[row].joints[joint].set_limits(ends[None, :, row, k].astype(np.float32))

    def _weigh(self) -> None:
        """The scene has one gravity: rows with another one get the difference as forces on their links."""
        sim = self._sim
        more, mass = self._gravity - sim.model.opt.gravity, self._mass * sim.model.body_mass[self._bodies]
        self.own_gravity = np.any(more, axis=1)
        self.extra_weight = [
            (sim.physx.rows[row].links[body], (mass[row, k] * more[row]).astype(np.float32))
            for row in np.flatnonzero(self.own_gravity).tolist()
            for k, body in enumerate(self._bodies.tolist())
        ]

    def _write_bodies(self, rows: Ids) -> None:
        sim, pose = self._sim, load_sapien().Pose
        mass = self._mass * sim.model.body_mass[self._bodies]
        place = sim.model.body_ipos[self._bodies] + self._offset
        moments, axes = decompose(self._inertia)
        for row in rows.tolist():
            links = sim.physx.rows[row].links
            for k, body in enumerate(self._bodies.tolist()):
                links[body].set_mass(mass[row, k])
                links[body].set_cmass_local_pose(pose(place[row, k], axes[row, k]))
                links[body].set_inertia(moments[row, k].astype(np.float32))
        if sim.free_base:
            base = self._names["body"].index(sim.robot.spec.base.body)
            sim.motion.centre[:] = place[:, base]


def nominal_friction(model: mujoco.MjModel) -> float:
    """The largest sliding friction of geoms that touch: MuJoCo takes the larger one of two."""
    touching = (model.geom_contype | model.geom_conaffinity) != 0
    if mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_GEOM, FLOOR) < 0:
        touching &= model.geom_bodyid != 0
    return float(model.geom_friction[touching, 0].max(initial=0.0))
