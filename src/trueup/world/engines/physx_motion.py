"""State of all rows in PhysX as arrays in MuJoCo's layout, and back.

PhysX gives the velocity of a link's centre of mass and its turning rate in the world; MuJoCo's free joint has the
velocity of the frame's origin and the turning rate in the body. Angles of PhysX count from MuJoCo's `qpos0`.
"""

from __future__ import annotations

import mujoco
import numpy as np
from numpy.typing import NDArray

from trueup.core.arrays import FloatArray, Ids
from trueup.world.engines.physx_scene import PhysxScene, load_sapien
from trueup.world.motion import Columns, MotionState


class PhysxMotion:
    """Reads joints after every physics step and bases after every control step.

    qpos, qvel  (nsim, nq) and (nsim, nv), as they were when last read
    centre      (nsim, 3) centre of mass of the base, base frame, m
    """

    def __init__(
        self,
        model: mujoco.MjModel,
        scene: PhysxScene,
        joint_qpos: Columns,
        joint_dof: Columns,
        base_at: tuple[int, int] | None,
    ) -> None:
        self._pose, self._places = load_sapien().Pose, scene.places
        self._articulations = [row.articulation for row in scene.rows]
        self.bases = [articulation.root for articulation in self._articulations]
        nsim, self._base_at = len(scene.rows), base_at
        self._joint_qpos, self._joint_dof = joint_qpos, joint_dof
        where = {model.joint(joint).name: joint for joint in scene.rows[0].joints}
        ids = np.array([where[joint.name] for joint in self._articulations[0].active_joints], np.intp)
        self._qpos_at, self._dof_at = model.jnt_qposadr[ids].astype(np.intp), model.jnt_dofadr[ids].astype(np.intp)
        self._zero = model.qpos0[self._qpos_at]
        self.qpos, self.qvel = np.tile(model.qpos0, (nsim, 1)), np.zeros((nsim, model.nv))
        self._read = np.zeros((2, nsim, len(ids)), np.float32)
        self._force = np.zeros((nsim, model.nv), np.float32)
        self._bias = np.zeros((nsim, model.nv))
        self._base = np.zeros((nsim, 13), np.float32)
        self.centre: FloatArray = np.tile(model.body_ipos[1], (nsim, 1))

    # --- what readers see ---
    def of(self, ids: Ids | None = None, *, again: bool = False) -> MotionState:
        """The motion of rows `ids` (None: all)."""
        rows = slice(None) if ids is None else ids
        qpos, qvel = self.qpos[rows], self.qvel[rows]
        pose = velocity = None
        if self._base_at is not None:
            at, dof = self._base_at
            pose, velocity = qpos[:, at : at + 7].copy(), qvel[:, dof : dof + 6].copy()
        return MotionState(qpos[:, self._joint_qpos].copy(), qvel[:, self._joint_dof].copy(), pose, velocity)

    # --- inside a step ---
    def joints(self) -> tuple[FloatArray, FloatArray]:
        """Positions and velocities (nsim, njoint) of the spec's joints, as last read."""
        return self.qpos[:, self._joint_qpos], self.qvel[:, self._joint_dof]

    def bias(self) -> FloatArray:
        """Torques (nsim, njoint) that would balance gravity and Coriolis forces now."""
        for out, articulation in zip(self._bias, self._articulations, strict=True):
            out[self._dof_at] = articulation.compute_passive_force()
        return self._bias[:, self._joint_dof].copy()

    def apply(self, torque: FloatArray) -> None:
        """Torques (nsim, njoint) on the spec's joints in the next physics step."""
        self._force[:, self._joint_dof] = torque
        for articulation, force in zip(self._articulations, self._force[:, self._dof_at], strict=True):
            articulation.set_qf(force)

    def stepped(self) -> None:
        """Read the joints."""
        pos, vel = self._read
        for k, articulation in enumerate(self._articulations):
            pos[k] = articulation.qpos
            vel[k] = articulation.qvel
        self.qpos[:, self._qpos_at] = pos + self._zero
        self.qvel[:, self._dof_at] = vel

    def read_base(self) -> None:
        """Read free bases."""
        if self._base_at is None:
            return
        for row, base in zip(self._base, self.bases, strict=True):
            pose = base.entity_pose
            row[:3] = pose.p
            row[3:7] = pose.q
            row[7:10] = base.linear_velocity
            row[10:] = base.angular_velocity
        at, dof = self._base_at
        values = self._base.astype(np.float64)
        quat, spin = values[:, 3:7], values[:, 10:]
        self.qpos[:, at : at + 3] = values[:, :3] - self._places
        self.qpos[:, at + 3 : at + 7] = quat / np.linalg.norm(quat, axis=1, keepdims=True)
        self.qvel[:, dof : dof + 3] = values[:, 7:10] - np.cross(spin, turned(quat, self.centre))
        self.qvel[:, dof + 3 : dof + 6] = turned(quat * _BACK, spin)

    # --- from outside ---
    def put(self, rows: Ids, qpos: FloatArray, qvel: FloatArray) -> None:
        """Put rows into states (rows, nq) and (rows, nv)."""
        self.qpos[rows], self.qvel[rows] = qpos, qvel
        pos, vel = self.qpos[:, self._qpos_at] - self._zero, self.qvel[:, self._dof_at]
        for row in rows.tolist():
            articulation = self._articulations[row]
            if self._base_at is not None:
                self._put_base(row)
            articulation.set_qpos(pos[row].astype(np.float32))
            articulation.set_qvel(vel[row].astype(np.float32))

    def _put_base(self, row: int) -> None:
        assert self._base_at is not None
        at, dof = self._base_at
        articulation, pose, vel = self._articulations[row], self.qpos[row, at : at + 7], self.qvel[row, dof : dof + 6]
        quat = pose[3:] / np.linalg.norm(pose[3:])
        self.qpos[row, at + 3 : at + 7] = quat
        spin = turned(quat, vel[3:])
        articulation.set_root_pose(self._pose(pose[:3] + self._places[row], quat))
        centre = vel[:3] + np.cross(spin, turned(quat, self.centre[row]))
        articulation.set_root_linear_velocity(centre.astype(np.float32))
        articulation.set_root_angular_velocity(spin.astype(np.float32))


_BACK = np.array([1.0, -1.0, -1.0, -1.0])


def turned(quat: FloatArray, vectors: FloatArray) -> FloatArray:
    """Vectors (..., 3) of a body with orientation (..., 4) w x y z in the world: v + w t + u x t with t = 2 u x v."""
    u: NDArray[np.float64] = quat[..., 1:]
    t = 2.0 * np.cross(u, vectors)
    return vectors + quat[..., :1] * t + np.cross(u, t)
