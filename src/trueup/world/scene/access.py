"""Access to a batch's arrays by name: joints, bases, and objects, links and sensors of its scene."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import NamedTuple

import mujoco
import mujoco.batch
import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.transform import Rotation

from trueup.core.arrays import FloatArray
from trueup.core.errors import TrueupError, did_you_mean
from trueup.robot.load import Robot
from trueup.robot.model import default_qpos, joint_index
from trueup.world.engines.foot_sensors import FootSensors
from trueup.world.motion import MotionReader, as_slice
from trueup.world.scene.scene import Scene

Rows = slice | NDArray[np.intp]
BAD_STATE = [getattr(mujoco.mjtWarning, f"mjWARN_BAD{name}").value for name in ("QPOS", "QVEL", "QACC", "CTRL")]
_COUNT = 1  # column of a warning entry: (last info, number of times)


class RobotPlace(NamedTuple):
    """One robot of a scene: its joints among those of the scene, and where a free base begins in qpos and qvel."""

    prefix: str
    robot: Robot
    joints: slice
    free_at: tuple[int, int] | None


def free_at(model: mujoco.MjModel, body: str) -> tuple[int, int] | None:
    """Where pose and velocity of a body with a free joint begin in qpos and qvel; None without one."""
    found = model.body(body)
    joint = int(found.jntadr[0])
    if not found.jntnum[0] or model.jnt_type[joint] != mujoco.mjtJoint.mjJNT_FREE:
        return None
    return int(model.jnt_qposadr[joint]), int(model.jnt_dofadr[joint])


class SceneAccess:
    """Live views of a batch by the names of its scene; poses are position and quaternion w x y z in the world.

    Joints are in spec order, robot after robot. `robot` is all robots as one (`Scene.robot`).
    """

    def __init__(self, batch: mujoco.batch.Batch, scene: Scene) -> None:
        self.batch, self.scene, self.model, self.robot = batch, scene, batch.model, scene.robot
        self.nsim = batch.nsim
        self.qpos, self.qvel, self.ctrl = batch.bind("qpos"), batch.bind("qvel"), batch.bind("ctrl")
        self._qfrc_actuator, self._sensordata = batch.bind("qfrc_actuator"), batch.bind("sensordata")
        self.index = joint_index(batch.model, scene.robot)
        self._joint_qpos, self._joint_dof = as_slice(self.index.qpos), as_slice(self.index.dof)
        self._links = [link.name for link in scene.links]
        self._objects = {thing.name: free_at(batch.model, thing.name) for thing in scene.objects}
        self.robots = tuple(
            RobotPlace(
                mounted.prefix,
                mounted.robot,
                joints,
                free_at(batch.model, mounted.prefix + mounted.robot.spec.base.body),
            )
            for mounted, joints in zip(scene.robots, scene.joints, strict=True)
        )
        base_at = self.robots[0].free_at
        self.free_base = base_at is not None
        self.base_qpos, self.base_dof = base_at or (-1, -1)
        self.motion = MotionReader(batch, self._joint_qpos, self._joint_dof, base_at)

    @property
    def joint_pos(self) -> FloatArray:
        return self.qpos[:, self._joint_qpos]

    @property
    def joint_vel(self) -> FloatArray:
        return self.qvel[:, self._joint_dof]

    @property
    def joint_torque(self) -> FloatArray:
        """Servo torque of the last physics step, after limits."""
        return self._qfrc_actuator[:, self._joint_dof]

    @cached_property
    def feet(self) -> FootSensors:
        """Feet and trunk of a free base, watched by sensors that a task adds (`add_foot_sensors`)."""
        feet = self.robot.spec.feet if self.free_base else ()
        return FootSensors(self.model, feet, default_qpos(self.model, self.robot), self._sensordata)

    @cached_property
    def base_force(self) -> FloatArray:
        """Force (nsim, 3) on the base at its centre of mass, world frame, N: live, until it is changed or reset."""
        forces: FloatArray = self.batch.bind("xfrc_applied")[:, self.model.body(self.robot.spec.base.body).id, :3]
        return forces

    @property
    def diverged(self) -> NDArray[np.bool_]:
        """Simulations in which the engine reported a bad state since their last reset."""
        counts = self.batch.warning[:, :, _COUNT]
        if not counts.any():  # the usual case, and faster
            return np.zeros(self.nsim, np.bool_)
        return np.any(counts[:, BAD_STATE] > 0, axis=1)

    def sensor(self, name: str) -> FloatArray:
        """Values of an engine sensor by name, (nsim, width), live."""
        model = self.model
        names = [model.sensor(k).name for k in range(model.nsensor)]
        k = names.index(_known("sensor", name, names))
        start = int(model.sensor_adr[k])
        return self._sensordata[:, start : start + int(model.sensor_dim[k])]

    def object_pose(self, name: str) -> FloatArray:
        """Pose of an object in the world, (nsim, 7): position and quaternion w x y z; live if it is free."""
        at = self._objects[_known("object", name, self._objects)]
        if at is None:
            body = self.model.body(name)
            return np.broadcast_to(np.concatenate([body.pos, body.quat]), (self.nsim, 7))
        return self.qpos[:, at[0] : at[0] + 7]

    def object_vel(self, name: str) -> FloatArray:
        """Velocity of an object, (nsim, 6): linear in the world frame, angular in the object's; zero if fixed."""
        at = self._objects[_known("object", name, self._objects)]
        if at is None:
            return np.broadcast_to(0.0, (self.nsim, 6))
        return self.qvel[:, at[1] : at[1] + 6]

    def _place_object(self, name: str, pose: ArrayLike, rows: Rows) -> None:
        """Put a free object of some rows into poses (rows, 7)."""
        if self._objects[_known("object", name, self._objects)] is None:
            raise TrueupError(f"object {name!r} is fixed: it cannot be put elsewhere at a reset")
        self.object_pose(name)[rows] = pose

    def link_active(self, name: str) -> FloatArray:
        """Whether a link of the scene is in force, (nsim,) of 0 and 1, live."""
        k = self.model.equality(_known("link", name, self._links)).id
        active: FloatArray = self.batch.bind("eq_active")[:, k]
        return active

    def set_link(
        self, name: str, active: ArrayLike, ids: NDArray[np.intp] | None = None, *, here: bool = False
    ) -> None:
        """Switch a link of simulations `ids` (None: all) on or off, (rows,) or one value, until the next reset.

        `here`: the bodies keep the relative pose that they have now, instead of the one of the scene's start.
        """
        if here:
            self._link_here(name, ids)
        self.link_active(name)[slice(None) if ids is None else ids] = active

    def _link_here(self, name: str, ids: NDArray[np.intp] | None) -> None:
        """Let a link keep the present relative pose of its bodies (weld) or place of its point (connect)."""
        batch, model = self.batch, self.model
        k = model.equality(_known("link", name, self._links)).id
        rows = np.arange(batch.nsim) if ids is None else ids
        a, b = int(model.eq_obj1id[k]), int(model.eq_obj2id[k])
        bound = batch.bind("xpos"), batch.bind("xquat")  # before the pass that computes them
        batch.forward(ids)  # after a step, poses of bodies belong to the state before its last physics step
        pos, quat = (field[rows] for field in bound)
        turn_a, turn_b = (Rotation.from_quat(quat[:, body], scalar_first=True) for body in (a, b))
        data = batch.expand("eq_data")
        if model.eq_type[k] == mujoco.mjtEq.mjEQ_CONNECT:
            anchor = pos[:, a] + turn_a.apply(data[rows, k, :3])
            data[rows, k, 3:6] = turn_b.inv().apply(anchor - pos[:, b])
        else:
            data[rows, k, 3:6] = turn_a.inv().apply(pos[:, b] - pos[:, a])
            data[rows, k, 6:10] = (turn_a.inv() * turn_b).as_quat(scalar_first=True)

    def _forget_links(self, rows: Rows) -> None:
        """Let links keep the poses of the scene's start again."""
        if self._links:
            self.batch.expand("eq_data")[rows] = self.model.eq_data


def _known(kind: str, name: str, known: Iterable[str]) -> str:
    names = list(known)
    if name not in names:
        hint = did_you_mean(name, names)
        raise TrueupError(f"no {kind} {name!r} in this scene{hint} (it has: {', '.join(names) or 'none'})")
    return name
