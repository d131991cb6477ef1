"""SapienSim: N simulations of one robot in PhysX 5, the engine family of Isaac, behind BatchSim's interface.

The scene is built for MuJoCo and compiled, then rebuilt in PhysX from that model (`physx_scene`): one truth about
bodies, shapes and names. Targets, delays, encoder bias, gains, limits and sensors are those of `BatchSim`; joint
dynamics are mapped in `physx_joints`. PhysX computes in single precision; `docs/engines.md` has what else differs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import mujoco
import numpy as np
from numpy.typing import ArrayLike, NDArray

from trueup.core.arrays import FloatArray, Ids
from trueup.core.errors import TrueupError
from trueup.models.delay import DelayLine
from trueup.policy.reading import Reading
from trueup.robot.load import Robot
from trueup.robot.model import compile_spec, default_qpos, joint_index
from trueup.world.actuators.target_stages import TargetStage
from trueup.world.config import SimCfg
from trueup.world.engines.physx_feet import PhysxFeet
from trueup.world.engines.physx_joints import PhysxJoints
from trueup.world.engines.physx_motion import PhysxMotion
from trueup.world.engines.physx_params import PhysxParams
from trueup.world.engines.physx_scene import PhysxCfg, PhysxScene
from trueup.world.motion import as_slice
from trueup.world.scene.access import free_at
from trueup.world.scene.scene import Scene
from trueup.world.sensors import Sensors

__all__ = ["PhysxCfg", "SapienSim"]
_NONE = np.zeros(3, np.float32)
_WILD = 1e3  # m, rad, m/s, rad/s


class SapienSim:
    """N simulations of a robot, on flat ground or a terrain; arrays are (nsim, njoint) in spec joint order.

    `qpos` (nsim, nq) and `qvel` (nsim, nv) are laid out as MuJoCo's. Runs on one thread; the same batch gives the same
    numbers again, but a row's last digits may depend on how many there are.
    """

    def __init__(
        self,
        scene: Scene | Robot,
        cfg: SimCfg | None = None,
        physx: PhysxCfg | None = None,
        target_stages: Sequence[TargetStage] = (),
    ) -> None:
        cfg, scene = cfg or SimCfg(), Scene.of(scene)
        _check(scene, cfg)
        robot = scene.robot
        self.cfg = cfg = replace(cfg, actuator=cfg.actuator.for_robot(robot))
        self.scene, self.robot, self.nsim = scene, robot, cfg.nsim
        self.control_dt, self.substeps = control_rate(cfg, robot)
        self.physics_dt = self.control_dt / self.substeps
        spec = scene.build(cfg.model)
        spec.option.timestep = self.physics_dt
        self.model = compile_spec(spec, robot)
        self.index = joint_index(self.model, robot)
        base_at = free_at(self.model, robot.spec.base.body)
        self.free_base, (self.base_qpos, self.base_dof) = base_at is not None, base_at or (-1, -1)
        self.default_qpos = default_qpos(self.model, robot)
        self.physx = PhysxScene(self.model, self.nsim, self.physics_dt, physx or PhysxCfg())
        rows, njoint = self.physx.rows, robot.spec.njoint
        driven = [[row.joints[joint] for joint in self.index.joint_id] for row in rows]
        self.joints = PhysxJoints(driven, self.physics_dt, _felt_inertia(self.model, self.default_qpos, self.index.dof))
        self.motion = PhysxMotion(self.model, self.physx, as_slice(self.index.qpos), as_slice(self.index.dof), base_at)
        self.encoder_bias = np.zeros((self.nsim, njoint))
        self.base_force = np.zeros((self.nsim, 3))
        self.target_stages = tuple(target_stages)
        self.delay_line = DelayLine(
            self.nsim, njoint, dt_s=self.physics_dt, max_delay_s=cfg.max_delay_s, delay_s=scene.delay_s
        )
        self.params = PhysxParams(self)
        self.feet = PhysxFeet(self)
        self.sensors = Sensors(self, cfg.sensors)
        self.reset()

    # --- state ---
    @property
    def qpos(self) -> FloatArray:
        """Positions (nsim, nq), a copy."""
        return self.motion.qpos.copy()

    @property
    def qvel(self) -> FloatArray:
        """Velocities (nsim, nv), a copy."""
        return self.motion.qvel.copy()

    @property
    def joint_pos(self) -> FloatArray:
        return self.motion.of().joint_pos

    @property
    def joint_vel(self) -> FloatArray:
        return self.motion.of().joint_vel

    @property
    def joint_torque(self) -> FloatArray:
        """Servo torque of the last physics step, after limits."""
        return self.joints.torque

    @property
    def delay(self) -> FloatArray:
        return self.delay_line.delay_s

    @property
    def diverged(self) -> NDArray[np.bool_]:
        """Simulations whose state is no number, or faster than anything real."""
        state = np.concatenate([self.motion.qpos, self.motion.qvel], axis=1)
        return np.any(~(np.abs(state) < _WILD), axis=1)  # no number is not below either

    # --- reset and step ---
    def reset(self, ids: Ids | None = None, *, qpos: ArrayLike | None = None, qvel: ArrayLike | None = None) -> None:
        """Put simulations into the default pose at rest, or into the states given (rows, nq) and (rows, nv).

        A terrain is a surface here, through which a foot that starts below it would fall: such rows are lifted out.
        """
        rows = np.arange(self.nsim) if ids is None else np.asarray(ids)
        shape = (len(rows), self.model.nq)
        pos = np.broadcast_to(np.asarray(self.default_qpos if qpos is None else qpos, np.float64), shape)
        vel = np.broadcast_to(np.asarray(0.0 if qvel is None else qvel, np.float64), (len(rows), self.model.nv))
        self.motion.put(rows, pos, vel)
        self.feet.forget()
        self._lift_out(rows)
        self.base_force[rows] = 0.0
        self.joints.torque[rows] = 0.0
        self.delay_line.reset(rows, self.joint_pos[rows] + self.encoder_bias[rows])
        for stage in self.target_stages:
            stage.reset(self, ids)
        self.sensors.reset(ids)

    def _lift_out(self, rows: Ids) -> None:
        terrain = self.scene.terrain
        if terrain is None or not len(self.feet.sole):
            return
        x, y, z = self.feet.position(rows)
        depth = terrain.height_at(x.astype(np.float32), y.astype(np.float32)) - (z - self.feet.sole)
        lift = np.maximum(depth.max(axis=1), 0.0)
        if lift.any():
            pos, vel = self.motion.qpos[rows], self.motion.qvel[rows]
            pos[:, self.base_qpos + 2] += lift
            self.motion.put(rows, pos, vel)
            self.feet.forget()

    def step(self, target_pos: ArrayLike, target_vel: ArrayLike | None = None, torque: ArrayLike | None = None) -> None:
        """Advance every simulation by one control step under held targets, (nsim, njoint) or broadcast to it."""
        if target_vel is not None:
            raise TrueupError("the second engine takes positions and torques, not target velocities")
        shape = (self.nsim, self.robot.spec.njoint)
        try:
            command = np.ascontiguousarray(np.broadcast_to(np.asarray(target_pos, np.float64), shape))
        except ValueError:
            found = f"{shape} (nsim, njoint), found {np.shape(target_pos)}"
            raise TrueupError(f"position targets must broadcast to {found}") from None
        for stage in self.target_stages:
            command = stage(command, self)
        seen = self.delay_line.step(command, self.substeps)
        seen -= self.encoder_bias[:, None, :]
        feed = 0.0 if torque is None else np.asarray(torque, np.float64)
        for k in range(self.substeps):
            q, dq = self.motion.joints()
            self.motion.apply(self.joints.act(seen[:, k], q, dq, feed, self._bias()))
            self._push()
            self.physx.system.step()
            self.motion.stepped()
        self.motion.read_base()
        self.feet.forget()
        self.sensors.sample()

    def _bias(self) -> FloatArray | None:
        """What is known of the joints' load, see `physx_joints`."""
        if self.free_base or not self.joints.friction.any():
            return None
        bias = self.motion.bias()
        bias[self.params.own_gravity] = np.nan
        return bias

    def _push(self) -> None:
        """Forces on links hold for one physics step in PhysX: those on bases, and gravity that is not the scene's."""
        if self.base_force.any():
            for row in np.flatnonzero(self.base_force.any(axis=1)).tolist():
                self.motion.bases[row].add_force_torque(self.base_force[row].astype(np.float32), _NONE)
        for link, force in self.params.extra_weight:
            link.add_force_torque(force, _NONE)

    def observe(self) -> Reading:
        """What the sensors report now: bias, noise and latency included."""
        return self.sensors.read()

    def state(self) -> dict[str, NDArray[np.generic]]:
        """State, delays and sensors as plain arrays. PhysX's memory of contacts is not in it."""
        delay = {f"delay/{name}": value for name, value in self.delay_line.state().items()}
        return {name: live.copy() for name, live in self._memory().items()} | delay

    def restore(self, state: Mapping[str, NDArray[np.generic]]) -> None:
        """Continue from what `state` returned, up to PhysX's memory of contacts."""
        for name, live in self._memory().items():
            live[...] = state[name]
        self.motion.put(np.arange(self.nsim), self.motion.qpos, self.motion.qvel)
        self.feet.forget()
        delay = {name: np.asarray(array, np.float64) for name, array in state.items() if name.startswith("delay/")}
        self.delay_line.restore({name.removeprefix("delay/"): array for name, array in delay.items()})

    def _memory(self) -> dict[str, NDArray[np.generic]]:
        out: dict[str, NDArray[np.generic]] = {"qpos": self.motion.qpos, "qvel": self.motion.qvel}
        out |= {"base_force": self.base_force, "torque": self.joints.torque}
        parts = {f"stage{k}": stage.memory() for k, stage in enumerate(self.target_stages)}
        parts["sensors"] = self.sensors.memory()
        return out | {f"{part}/{name}": live for part, memory in parts.items() for name, live in memory.items()}

    # --- what this engine has not ---
    def object_pose(self, name: str) -> FloatArray:
        raise TrueupError(f"the second engine has no objects: {name!r}")

    def object_vel(self, name: str) -> FloatArray:
        raise TrueupError(f"the second engine has no objects: {name!r}")


def control_rate(cfg: SimCfg, robot: Robot) -> tuple[float, int]:
    """Control step in s and the physics steps in it."""
    control_dt = 1.0 / (cfg.control_hz or robot.spec.control_hz)
    physics_hz = cfg.physics_hz or robot.spec.physics_hz
    substeps = max(1, round(control_dt * physics_hz))
    if abs(control_dt * physics_hz - substeps) > 1e-6:
        rates = f"{physics_hz:g} Hz must be a whole multiple of control rate {1 / control_dt:g} Hz"
        raise TrueupError(f"physics rate {rates}")
    return control_dt, substeps


def _check(scene: Scene, cfg: SimCfg) -> None:
    if len(scene.robots) != 1 or scene.objects or scene.links:
        raise TrueupError("the second engine simulates one robot: no further robots, objects or links")
    if cfg.friction not in (None, "M1"):
        raise TrueupError(f"the second engine knows dry friction and damping (M1), not friction model {cfg.friction}")
    if cfg.model.base == "mount":
        raise TrueupError('the second engine has no stand that yields: base "free" or "fixed"')
    if cfg.model.collisions == "full" and cfg.nsim > 1:
        raise TrueupError("rows share one scene in the second engine: full collisions need nsim = 1")


def _felt_inertia(model: mujoco.MjModel, qpos: FloatArray, dof: Ids) -> FloatArray:
    """Inertia (njoint,) that each joint feels when all others give way: 1 / diagonal of the inverse mass matrix."""
    data, inverse = mujoco.MjData(model), np.eye(model.nv)
    data.qpos[:] = qpos
    mujoco.mj_forward(model, data)
    mujoco.mj_solveM(model, data, inverse, inverse.copy())
    felt: FloatArray = 1.0 / np.diag(inverse)[dof]
    return felt
