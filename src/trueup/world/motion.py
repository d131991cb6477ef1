"""Motion: joint and base state of a batch, copied out of the engine once per step for all readers.

After a step the engine's state is not in the cache: one pass over it is cheaper than one for each reader.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import mujoco.batch
import numpy as np
from numpy.typing import NDArray

from trueup.core.arrays import FloatArray
from trueup.policy.reading import gravity_in_body

Ids = NDArray[np.intp] | None
Columns = slice | NDArray[np.intp]


@dataclass(frozen=True)
class MotionState:
    """Joint positions and velocities (n, njoint) in spec order; of a free base its pose (n, 7) and velocity (n, 6).

    A pose is position and quaternion w x y z; a velocity is linear in the world frame, angular in the base frame.
    """

    joint_pos: FloatArray
    joint_vel: FloatArray
    base_pose: FloatArray | None
    base_vel: FloatArray | None

    @cached_property
    def gravity(self) -> FloatArray:
        """Direction of gravity in the base frame, (n, 3)."""
        assert self.base_pose is not None
        return gravity_in_body(self.base_pose[:, 3:])


class MotionReader:
    """Reads the motion of a batch; a copy is kept until the next step or reset, which call `forget`.

    joint_qpos, joint_dof  of the joints in spec order
    base_at                where pose and velocity of a free base begin in qpos and qvel
    """

    def __init__(
        self, batch: mujoco.batch.Batch, joint_qpos: Columns, joint_dof: Columns, base_at: tuple[int, int] | None
    ) -> None:
        self._nq = batch.model.nq
        self._joint_qpos, self._joint_dof, self._base_at = joint_qpos, joint_dof, base_at
        # behind the time: qpos, then qvel
        self._live: FloatArray = batch.state[:, 1 : 1 + self._nq + batch.model.nv]
        assert np.shares_memory(self._live[:, 0], batch.bind("qpos")[:, 0])
        self._kept: MotionState | None = None
        self._kept_of: Ids = None

    def of(self, ids: Ids = None, *, again: bool = False) -> MotionState:
        """The motion of rows `ids` (None: all): the copy of this step, or a new one if `again`."""
        if self._kept is None or self._kept_of is not ids or again:
            self._kept, self._kept_of = self._copied(ids), ids
        return self._kept

    def forget(self) -> None:
        """Discard the copy: the state has changed."""
        self._kept = None

    def _copied(self, ids: Ids) -> MotionState:
        values = self._live.copy() if ids is None else self._live[ids]
        qpos, qvel = values[:, : self._nq], values[:, self._nq :]
        pose = velocity = None
        if self._base_at is not None:
            at, dof = self._base_at
            pose, velocity = qpos[:, at : at + 7], qvel[:, dof : dof + 6]
        return MotionState(qpos[:, self._joint_qpos], qvel[:, self._joint_dof], pose, velocity)


def as_slice(index: NDArray[np.intp]) -> Columns:
    """Consecutive addresses as a slice, so that reading them makes no copy."""
    if len(index) and (np.diff(index) == 1).all():
        return slice(int(index[0]), int(index[-1]) + 1)
    return index
