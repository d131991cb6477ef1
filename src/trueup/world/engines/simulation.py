"""Interface of a simulation for sensing, goals, worlds and the evaluation loop, independent of the engine.

`world.batch.BatchSim` (MuJoCo) and `world.engines.sapien_sim.SapienSim` (PhysX 5) offer it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import mujoco
import numpy as np
from numpy.typing import ArrayLike, NDArray

from trueup.core.arrays import FloatArray, Ids
from trueup.robot.load import Robot
from trueup.robot.model import JointIndex
from trueup.world.config import SimCfg
from trueup.world.motion import MotionState
from trueup.world.scene.scene import Scene
from trueup.world.sensors import Sensors

Rows = slice | NDArray[np.intp]
State = Mapping[str, NDArray[np.generic]]


class FootPlaces(Protocol):
    """Feet and trunk after the last step; arrays have the rows asked for first, then the feet of the spec.

    sole  (nfoot,) how far below the frame of its shape each foot ends in the default pose, m
    """

    sole: NDArray[np.float32]

    def contact(self, rows: Rows) -> NDArray[np.bool_]:
        """Whether each foot touches something, (n, nfoot)."""
        ...

    def trunk_contact(self, rows: Rows) -> NDArray[np.bool_]:
        """Whether the trunk touches something, (n,)."""
        ...

    def position(self, rows: Rows) -> tuple[NDArray[Any], ...]:
        """x, y, z of the feet in the world, (n, nfoot) each."""
        ...

    def velocity(self, rows: Rows) -> NDArray[np.float32]:
        """Of the feet in the world, (n, nfoot, 3)."""
        ...


class MotionSource(Protocol):
    """The motion of all rows, kept until the next step."""

    def of(self, ids: Ids | None = None, *, again: bool = False) -> MotionState: ...


class ParamsByName(Protocol):
    """Parameters by name, as `world.parameters.params` has them."""

    def get(self, name: str) -> FloatArray: ...
    def set(
        self, name: str, values: ArrayLike, *, of: str | Sequence[str] | None = None, ids: Ids | None = None
    ) -> None: ...


class Simulation(Protocol):
    """N rows of one scene. `model` describes it in MuJoCo's terms: names, addresses, the layout of qpos and qvel."""

    cfg: SimCfg
    scene: Scene
    robot: Robot
    model: mujoco.MjModel
    index: JointIndex
    nsim: int
    control_dt: float
    free_base: bool
    base_qpos: int
    base_dof: int
    default_qpos: FloatArray
    encoder_bias: FloatArray
    sensors: Sensors

    @property
    def motion(self) -> MotionSource: ...
    @property
    def params(self) -> ParamsByName: ...
    @property
    def feet(self) -> FootPlaces: ...
    @property
    def base_force(self) -> FloatArray:
        """Force (nsim, 3) on the base at its centre of mass, world frame, N: live, in force until it is changed."""
        ...

    @property
    def joint_pos(self) -> FloatArray: ...
    @property
    def joint_vel(self) -> FloatArray: ...
    @property
    def joint_torque(self) -> FloatArray: ...
    @property
    def diverged(self) -> NDArray[np.bool_]: ...
    def reset(
        self, ids: Ids | None = None, *, qpos: ArrayLike | None = None, qvel: ArrayLike | None = None
    ) -> None: ...
    def step(self, target_pos: ArrayLike) -> None: ...
    def object_pose(self, name: str) -> FloatArray: ...
    def object_vel(self, name: str) -> FloatArray: ...
    def state(self) -> dict[str, NDArray[np.generic]]: ...
    def restore(self, state: State) -> None: ...
