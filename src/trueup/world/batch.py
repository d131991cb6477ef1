"""BatchSim: N simulations of one scene, stepped together at the engine's speed.

One control step is one call into C: the commands of all its physics steps, delays included, are computed beforehand and
handed to `mujoco.batch.Batch.rollout`. Only a substep model (learned actuators, load-dependent friction) makes the loop
come back to Python between physics steps. Row k depends on (seed, first_row + k) and on nothing else: not on the number
of rows, nor on the number of threads.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import mujoco
import mujoco.batch
import numpy as np
from numpy.typing import ArrayLike, NDArray

from trueup.core.arrays import FloatArray
from trueup.core.errors import TrueupError
from trueup.core.machine import usable_cores
from trueup.models.delay import DelayLine
from trueup.policy.reading import Reading
from trueup.robot.load import Robot
from trueup.robot.model import compile_spec, default_qpos
from trueup.robot.spec import RobotSpec
from trueup.world.actuators.engine import add_actuators
from trueup.world.actuators.substep import GearFriction, SubstepModel, SubstepState
from trueup.world.actuators.target_stages import TargetStage
from trueup.world.config import SimCfg
from trueup.world.parameters.params import Params
from trueup.world.scene.access import SceneAccess
from trueup.world.scene.scene import Scene
from trueup.world.sensors import Sensors

__all__ = ["BatchSim", "SimCfg"]
Ids = NDArray[np.intp] | None
_CHUNK_NUMBERS = 8_000_000  # controls handed to the engine in one call (64 MB)


class BatchSim(SceneAccess):
    """N simulations of a scene, or of a robot alone: `reset`, `step`, `observe`, and `params` by name.

    Arrays are (nsim, njoint) in spec joint order, robot after robot (`robots` has the columns of each). `joint_pos`,
    `joint_vel` are the true state; `observe()` gives what sensors would report. `robot` has the base of the first one.
    """

    def __init__(
        self,
        scene: Scene | Robot,
        cfg: SimCfg | None = None,
        substep_model: SubstepModel | None = None,
        prepare: Callable[[mujoco.MjSpec], None] | None = None,
        target_stages: Sequence[TargetStage] = (),
    ) -> None:
        _keep_engine_quiet()
        cfg, scene = cfg or SimCfg(), Scene.of(scene)
        robot, actuator = scene.robot, cfg.actuator.for_robot(scene.robot)
        if substep_model is None and cfg.friction not in (None, "M1"):
            substep_model = GearFriction(cfg.friction)
        self.gear_friction = None if substep_model is None else substep_model.gear_friction
        if substep_model is not None:
            actuator = replace(actuator, inputs="servo")
        self.cfg = cfg = replace(cfg, actuator=actuator)
        self._set_rates(robot.spec)
        spec = scene.build(cfg.model)
        spec.option.timestep = self.physics_dt
        add_actuators(spec, robot, cfg.actuator)
        if prepare is not None:  # sensors or solver settings of a task
            prepare(spec)
        model = compile_spec(spec, robot)
        super().__init__(mujoco.batch.Batch(model, cfg.nsim, cfg.threads or usable_cores()), scene)
        self.encoder_bias = np.zeros((cfg.nsim, robot.spec.njoint))
        self.torque_offset = np.zeros((cfg.nsim, robot.spec.njoint))
        self.delay_line = DelayLine(
            cfg.nsim, robot.spec.njoint, dt_s=self.physics_dt, max_delay_s=cfg.max_delay_s, delay_s=scene.delay_s
        )
        self.params = Params(self)
        self.sensors = Sensors(self, cfg.sensors)
        self.substep_model, self.target_stages = substep_model, tuple(target_stages)
        if substep_model is not None:
            substep_model.start(self)
        self.default_qpos = default_qpos(self.model, robot)
        self._fresh = _fresh_state(self.model)
        self.reset()

    def _set_rates(self, spec: RobotSpec) -> None:
        self.control_dt = 1.0 / (self.cfg.control_hz or spec.control_hz)
        physics_hz = self.cfg.physics_hz or spec.physics_hz
        self.substeps = max(1, round(self.control_dt * physics_hz))
        if abs(self.control_dt * physics_hz - self.substeps) > 1e-6:
            rates = f"{physics_hz:g} Hz must be a whole multiple of control rate {1 / self.control_dt:g} Hz"
            raise TrueupError(f"physics rate {rates}")
        self.physics_dt = self.control_dt / self.substeps

    # --- state ---
    @property
    def delay(self) -> FloatArray:
        return self.delay_line.delay_s

    def apply_torque_offset(self) -> None:
        """Hand the constant torque of every joint, `torque_offset` (nsim, njoint), to the engine."""
        self.batch.bind("qfrc_applied")[:, self._joint_dof] = self.torque_offset

    # --- reset and step ---
    def reset(
        self,
        ids: Ids = None,
        *,
        qpos: ArrayLike | None = None,
        qvel: ArrayLike | None = None,
        objects: Mapping[str, ArrayLike] | None = None,
    ) -> None:
        """Reset simulations to the default pose at rest, or to the states given (rows, nq) and (rows, nv).

        `objects` are start poses (rows, 7) of free objects by name.
        """
        rows = slice(None) if ids is None else ids
        self.params.refresh()
        self.batch.state[rows] = self._fresh  # what the engine's own reset does, without its cost per call
        self.batch.warning[rows] = 0
        self._forget_links(rows)
        if self.torque_offset.any():
            self.apply_torque_offset()
        self.qpos[rows] = self.default_qpos if qpos is None else qpos
        if qvel is not None:
            self.qvel[rows] = qvel
        for name, pose in (objects or {}).items():
            self._place_object(name, pose, rows)
        self.batch.forward(ids)
        self.delay_line.reset(ids, self.joint_pos[rows] + self.encoder_bias[rows])
        for stage in self.target_stages:
            stage.reset(self, ids)
        if self.substep_model is not None:
            self.substep_model.reset(self, ids)
        self.motion.forget()
        self.sensors.reset(ids)

    def step(self, target_pos: ArrayLike, target_vel: ArrayLike | None = None, torque: ArrayLike | None = None) -> None:
        """Advance every simulation by one control step under held targets, (nsim, njoint) or broadcast to it."""
        self.params.refresh()
        command = self._command(target_pos)
        for stage in self.target_stages:
            command = stage(command, self)
        if self._takes(target_vel, torque):
            self.ctrl[:, 1::3] = 0.0 if target_vel is None else target_vel
            self.ctrl[:, 2::3] = 0.0 if torque is None else torque
        if self.substep_model is not None:
            self._step_in_python(self.delay_line.step(command, self.substeps), torque)
        elif self.delay_line.any:
            seen = self.delay_line.step(command, self.substeps)
            seen -= self.encoder_bias[:, None, :]
            self.batch.rollout(self.substeps, control=self._controls(seen), record=())
        else:
            self.delay_line.step(command, self.substeps)
            self.ctrl[:, :: self.cfg.actuator.ninput] = command - self.encoder_bias
            self.batch.step(nstep=self.substeps)
        self.motion.forget()
        self.sensors.sample()

    def rollout(
        self,
        targets: FloatArray,
        *,
        target_vel: FloatArray | None = None,
        torque: FloatArray | None = None,
        record: Sequence[str] = ("qpos", "qvel"),
    ) -> dict[str, FloatArray]:
        """Run whole sequences of targets, each (nsim, T, njoint), with few calls into C where it can be.

        Returns each recorded field after every control step, (nsim, T, ...). Sensors need not be sampled.
        """
        if self.substep_model is not None or self.target_stages:
            fields = {name: self.batch.bind(name) for name in record}
            after: dict[str, list[FloatArray]] = {name: [] for name in record}
            for t in range(targets.shape[1]):
                self.step(targets[:, t], _at(target_vel, t), _at(torque, t))
                for name, live in fields.items():
                    after[name].append(live.copy())
            return {name: np.stack(values, axis=1) for name, values in after.items()}
        self.params.refresh()
        self.motion.forget()
        chunk = max(1, _CHUNK_NUMBERS // (self.nsim * self.substeps * self.model.nu))
        parts = []
        for start in range(0, targets.shape[1], chunk):
            cut = slice(start, start + chunk)
            seen = self._seen(targets[:, cut])
            controls = self._controls(seen, _at(target_vel, cut), _at(torque, cut))
            out = self.batch.rollout(seen.shape[1], control=controls, record=tuple(record))
            parts.append({str(name): value[:, self.substeps - 1 :: self.substeps] for name, value in out.items()})
        return {name: np.concatenate([part[name] for part in parts], axis=1) for name in record}

    def _seen(self, targets: FloatArray) -> FloatArray:
        """Delayed commands in each physics step, (nsim, T substeps, njoint), relative to the true position."""
        nsim, steps, njoint = targets.shape
        seen = np.empty((nsim, steps, self.substeps, njoint))
        for t in range(steps):
            seen[:, t] = self.delay_line.step(np.ascontiguousarray(targets[:, t]), self.substeps)
        return seen.reshape(nsim, steps * self.substeps, njoint) - self.encoder_bias[:, None, :]

    def prime_delay(self, past: FloatArray) -> None:
        """Fill the command history with past targets, (nsim, T, njoint), oldest first."""
        for t in range(past.shape[1]):
            self.delay_line.step(np.ascontiguousarray(past[:, t]), self.substeps)

    def observe(self) -> Reading:
        """What the sensors report now: bias, noise and latency included."""
        return self.sensors.read()

    def state(self) -> dict[str, NDArray[np.generic]]:
        """Everything that changes while stepping, as plain arrays; `restore` continues bit for bit."""
        delay = {f"delay/{name}": value for name, value in self.delay_line.state().items()}
        return {name: live.copy() for name, live in self._memory().items()} | delay

    def restore(self, state: Mapping[str, NDArray[np.generic]]) -> None:
        """Continue from what `state` returned; parameters must have been set as they were."""
        self.params.refresh()
        for name, live in self._memory().items():
            live[...] = state[name]
        self.motion.forget()
        delay = {name: np.asarray(array, np.float64) for name, array in state.items() if name.startswith("delay/")}
        self.delay_line.restore({name.removeprefix("delay/"): array for name, array in delay.items()})
        if self.substep_model is not None:
            self.substep_model.restored(self)

    def _memory(self) -> dict[str, NDArray[np.generic]]:
        """Live arrays that change while stepping."""
        out: dict[str, NDArray[np.generic]] = {"integration": self.batch.state, "warning": self.batch.warning}
        if self._links:
            out["links"] = self.batch.expand("eq_data")
        parts = {f"stage{k}": stage.memory() for k, stage in enumerate(self.target_stages)}
        parts["sensors"] = self.sensors.memory()
        if self.substep_model is not None:
            parts["actuator"] = self.substep_model.memory()
        return out | {f"{part}/{name}": live for part, memory in parts.items() for name, live in memory.items()}

    # --- inside a step ---
    def _command(self, target_pos: ArrayLike) -> FloatArray:
        command = np.asarray(target_pos, np.float64)
        shape = (self.nsim, self.robot.spec.njoint)
        try:
            return command if command.shape == shape else np.ascontiguousarray(np.broadcast_to(command, shape))
        except ValueError:
            found = f"{shape} (nsim, njoint), found {command.shape}"
            raise TrueupError(f"position targets must broadcast to {found}") from None

    def _takes(self, target_vel: ArrayLike | None, torque: ArrayLike | None) -> bool:
        """Whether servos take velocities and torques; refuse them where not."""
        if self.cfg.actuator.inputs == "pos" and not (target_vel is None and torque is None):
            raise TrueupError('velocity or torque commands need ActuatorCfg(inputs="servo")')
        return self.cfg.actuator.inputs == "servo"

    def _controls(
        self, seen: FloatArray, target_vel: FloatArray | None = None, torque: FloatArray | None = None
    ) -> FloatArray:
        """Per-physics-step positions (nsim, T substeps, njoint) and per-control-step rest as engine controls."""
        if not self._takes(target_vel, torque):
            return seen
        controls = np.repeat(self.ctrl[:, None, :], seen.shape[1], axis=1)
        controls[:, :, ::3] = seen
        for column, values in ((1, target_vel), (2, torque)):
            if values is not None:
                controls[:, :, column::3] = np.repeat(values, self.substeps, axis=1)
        return controls

    def _step_in_python(self, seen: FloatArray, torque: ArrayLike | None) -> None:
        assert self.substep_model is not None
        feed_forward = 0.0 if torque is None else np.asarray(torque)
        holds = self.substep_model.holds
        for k in range(0, self.substeps, holds):
            target = seen[:, k]
            seen_pos = self.joint_pos + self.encoder_bias
            extra = self.substep_model.step(self, SubstepState(seen_pos, self.joint_vel, target, self.joint_torque))
            self.ctrl[:, ::3] = target - self.encoder_bias
            self.ctrl[:, 2::3] = feed_forward if extra is None else feed_forward + extra
            if holds == 1:
                self.batch.step()
            else:
                targets = seen[:, k : k + holds] - self.encoder_bias[:, None]
                self.batch.rollout(holds, control=self._controls(targets), record=())


def _at(values: FloatArray | None, step: int | slice) -> FloatArray | None:
    return None if values is None else values[:, step]


def _keep_engine_quiet() -> None:
    """Send the engine's warnings to `logging` instead of stderr and a file in the working directory.

    A simulation that blows up is reported by `BatchSim.diverged`; a handler that the user has set stays.
    """
    if mujoco.get_mju_user_warning() is None:
        mujoco.set_mju_user_warning(logging.getLogger(__name__).debug)


def _fresh_state(model: mujoco.MjModel) -> FloatArray:
    """The state (nstate,) of a simulation that the engine has just reset."""
    kind, data = mujoco.mjtState.mjSTATE_INTEGRATION, mujoco.MjData(model)
    state = np.empty(mujoco.mj_stateSize(model, kind))
    mujoco.mj_getState(model, data, state, kind)
    return state
