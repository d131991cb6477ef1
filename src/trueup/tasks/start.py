"""The states in which episodes begin."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trueup.core.rows import RowRandom
from trueup.tasks.task import Start
from trueup.tasks.terrain import Climb
from trueup.world.batch import BatchSim

FloatArray = NDArray[np.float64]
Ids = NDArray[np.intp]


class Starts:
    """Draws start states; `random` is all that a checkpoint needs of it."""

    def __init__(self, start: Start, sim: BatchSim, random: RowRandom) -> None:
        self._start, self._sim, self.random = start, sim, random

    def draw(self, ids: Ids, climb: Climb | None = None) -> tuple[FloatArray, FloatArray]:
        """Return qpos (rows, nq), qvel (rows, nv) about the default pose at rest, in the middle of each row's patch."""
        qpos, qvel = self._about_default(ids)
        if climb is not None and self._sim.free_base:
            at = self._sim.base_qpos
            qpos[:, at : at + 2] = climb.middle(ids)
            qpos[:, at + 2] += climb.terrain.height_at(*qpos[:, at : at + 2].T.astype(np.float32))
        return qpos, qvel

    def _about_default(self, ids: Ids) -> tuple[FloatArray, FloatArray]:
        start, sim = self._start, self._sim
        njoint = sim.robot.spec.njoint
        unit = 2.0 * self.random.uniform(2 * njoint + 9, ids) - 1.0
        qpos = np.repeat(sim.default_qpos[None], len(ids), axis=0)
        qvel = np.zeros((len(ids), sim.model.nv))
        low, high = sim.robot.spec.position_low, sim.robot.spec.position_high
        pose = qpos[:, sim.index.qpos] + start.joint_pos * unit[:, :njoint]
        qpos[:, sim.index.qpos] = np.clip(pose, low, high)
        qvel[:, sim.index.dof] = start.joint_vel * unit[:, njoint : 2 * njoint]
        if sim.free_base:
            rest = unit[:, 2 * njoint :]
            yaw = np.pi * rest[:, 2] if start.any_yaw else 0.0 * rest[:, 2]
            at, dof = sim.base_qpos, sim.base_dof
            qpos[:, at + 3 : at + 7] = heading_and_tilt(yaw, start.tilt * rest[:, 0], start.tilt * rest[:, 1])
            qvel[:, dof : dof + 3] = start.vel * rest[:, 3:6]
            qvel[:, dof + 3 : dof + 6] = start.spin * rest[:, 6:9]
        return qpos, qvel


def heading_and_tilt(yaw: FloatArray, roll: FloatArray, pitch: FloatArray) -> FloatArray:
    """Quaternions (n, 4) w x y z of yaw about z, then pitch about y, then roll about x."""
    cy, sy = np.cos(0.5 * yaw), np.sin(0.5 * yaw)
    cp, sp = np.cos(0.5 * pitch), np.sin(0.5 * pitch)
    cr, sr = np.cos(0.5 * roll), np.sin(0.5 * roll)
    return np.stack(
        [
            cr * cp * cy + sr * sp * sy,
            sr * cp * cy - cr * sp * sy,
            cr * sp * cy + sr * cp * sy,
            cr * cp * sy - sr * sp * cy,
        ],
        axis=1,
    )
