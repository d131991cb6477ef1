"""The hidden plant: one engine simulation with its servo, stepped under delayed commands.

The servo tau = kp (q* - q) + kd (dq* - dq) + tau_ff runs in the engine at every physics step. What the engine cannot do
(friction that depends on speed and load, bristles, hysteresis) is computed before every step;
battery and heat every few milliseconds. A plant without such effects runs many steps in one call.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import mujoco
import numpy as np

from trueup.core.arrays import FloatArray, Ids
from trueup.robot.spec import RobotSpec
from trueup.twin.physics.friction import Hysteresis, LuGreFriction, StribeckFriction, gear_load
from trueup.twin.physics.motors import Motors
from trueup.twin.physics.plant_model import PlantModel
from trueup.world.scene.access import BAD_STATE

_WARM_S = 0.01  # between updates of battery and heat
_FAR = 1 << 60
_WHOLE = 1e-9  # of a physics step: rounding of a delay that is a whole number of steps
_ALL = 1.0 - 1e-9  # of the torque: rounding of one that is clipped


class EngineViews:
    """Joint-ordered windows into the engine's arrays: views where joints lie side by side, else copies.

    `gather` and `scatter` keep the copies among them true.
    """

    def __init__(self) -> None:
        self.reads: list[tuple[FloatArray, FloatArray, Ids]] = []
        self.writes: list[tuple[FloatArray, FloatArray, Ids]] = []

    def read(self, source: FloatArray, ids: Ids) -> FloatArray:
        """Return what `source` holds at `ids`, up to date after every `gather`."""
        return _window(source, ids, self.reads)

    def write(self, target: FloatArray, ids: Ids) -> FloatArray:
        """Return an array whose content reaches `target` at `ids` with every `scatter`."""
        return _window(target, ids, self.writes)

    def gather(self) -> None:
        """Copy from the engine."""
        for copy, source, ids in self.reads:
            np.take(source, ids, out=copy)

    def scatter(self) -> None:
        """Copy to the engine."""
        for copy, target, ids in self.writes:
            target[ids] = copy


def _window(array: FloatArray, ids: Ids, copies: list[tuple[FloatArray, FloatArray, Ids]]) -> FloatArray:
    if (np.diff(ids) == 1).all():
        return array[int(ids[0]) : int(ids[0]) + len(ids)]
    copies.append((array[ids], array, ids))
    return copies[-1][0]


class CommandLine:
    """Command transport: delayed commands, each due at a time in physics steps, first in first out.

    A command that falls due inside a physics step is in force for a part of it; the step then sees the mean, as in
    `models.delay`, so that a delay may be any real number.
    """

    def __init__(self, delay_steps: float, jitter_steps: float, random: np.random.Generator) -> None:
        self._delay, self._jitter, self._random = delay_steps, jitter_steps, random
        self._queue: deque[tuple[float, FloatArray]] = deque()
        self._active: FloatArray | None = None
        self._is_mean = False
        self._last_due = -1.0

    def push(self, rows: FloatArray, now_steps: float) -> None:
        """Add a command; one that would overtake the last one waits for it."""
        due = now_steps + self._delay
        if self._jitter:
            due += self._jitter * self._random.random()
        self._last_due = due = max(due, self._last_due)
        self._queue.append((due, rows))

    def at(self, step: int) -> FloatArray | None:
        """Return the command that physics step `step` sees, or None when it is that of the step before."""
        if not self._queue or self._queue[0][0] >= step + 1 - _WHOLE:
            if not self._is_mean:
                return None
            self._is_mean = False
            return self._active
        mean = self._active
        while self._queue and self._queue[0][0] < step + 1 - _WHOLE:
            due, rows = self._queue.popleft()
            share = step + 1 - due
            if mean is None or self._active is None or share >= 1.0 - _WHOLE:
                mean = rows
            else:
                mean = mean + share * (rows - self._active)
            self._active = rows
        self._is_mean = mean is not self._active
        return mean

    def quiet_steps(self, step: int) -> int:
        """Return for how many physics steps from `step` on nothing changes, after `at(step)`: at least one."""
        if self._is_mean:
            return 1
        return max(1, int(self._queue[0][0] + _WHOLE) - step) if self._queue else _FAR

    def cut(self, rows: FloatArray) -> None:
        """Drop all delayed commands; `rows` is in force from now on."""
        self._queue.clear()
        self._active, self._is_mean = rows, False


class Plant:
    """A robot's body and motors. Commands are (5, njoint): target_pos, target_vel, kp, kd, torque."""

    def __init__(self, plant: PlantModel, spec: RobotSpec, random: np.random.Generator) -> None:
        self.model, self.truth, self._spec = plant.model, plant.truth, spec
        self.data = mujoco.MjData(self.model)
        self.dt: float = self.model.opt.timestep
        self.step_count = 0
        truth = self.truth
        self.line = CommandLine(truth.delay_s / self.dt, truth.jitter_s / self.dt, random)
        self._views = EngineViews()
        self.position = self._views.read(self.data.qpos, plant.motor_qpos)
        self.velocity = self._views.read(self.data.qvel, plant.motor_dof)
        self.force = self.data.actuator_force
        self.motors = Motors(truth, spec, self.model, self.data)
        scale, ones = truth.joint.torque_scale, np.ones(spec.njoint)
        gain = self.motors.gain_sign * scale
        self._factor = np.stack([ones, ones, gain, gain, scale])
        self._shift = np.zeros((5, spec.njoint))
        self._shift[0] = -truth.joint.encoder_bias
        self._inputs = self.data.ctrl.reshape(spec.njoint, 3).T  # position, velocity, torque
        self._gains = self.motors.gains
        self._effects = self._build_effects(plant)
        self._warm_every = max(1, round(_WARM_S / self.dt)) if self.motors.is_variable else 0
        self._start(plant)

    def _build_effects(self, plant: PlantModel) -> list[Callable[[], None]]:
        """Return what must run before every physics step, in this order."""
        truth, views, data = self.truth, self._views, self.data
        effects: list[Callable[[], None]] = []
        applied = views.write(data.qfrc_applied, plant.motor_dof)
        if truth.friction is not None and truth.friction.kind == "lugre":
            effects.append(LuGreFriction(truth.friction, truth.joint.friction, self.velocity, applied, self.dt))
        elif truth.friction is not None:
            load = gear_load(self.model, data, plant.motor_dof, rotors=truth.transmission is not None)
            loss = views.write(self.model.dof_frictionloss, plant.motor_dof)
            effects.append(StribeckFriction(truth.friction, truth.joint.friction, self.velocity, loss, load))
        if truth.transmission is not None and truth.transmission.hysteresis.any():
            if truth.friction is None or truth.friction.kind != "lugre":
                effects.append(lambda: applied.fill(0.0))  # nobody else has written it
            link = views.write(data.qfrc_applied, plant.link_dof)
            effects.append(Hysteresis(truth.transmission, data.ten_velocity, applied, link, self.dt))
        if effects and views.reads:
            effects.insert(0, views.gather)
        if effects and views.writes:
            effects.append(views.scatter)
        return effects

    def _start(self, plant: PlantModel) -> None:
        """Start pose at rest, held by the spec's gains until the first command (as by brakes)."""
        data, spec = self.data, self._spec
        data.qpos[:] = plant.start_qpos
        hold = np.zeros((5, spec.njoint))
        hold[0] = spec.default_pose + self.truth.joint.encoder_bias
        hold[2], hold[3] = spec.kp, spec.kd
        self.cut(hold)
        mujoco.mj_forward(self.model, data)
        self._views.gather()

    def push(self, rows: FloatArray, now_steps: float) -> None:
        """Receive a command and delay it."""
        self.line.push(self._for_engine(rows), now_steps)

    def cut(self, rows: FloatArray) -> None:
        """Drop all delayed commands; `rows` acts at once."""
        command = self._for_engine(rows)
        self.line.cut(command)
        self._obey(command)

    def advance(self, steps: int) -> None:
        """Let physics steps pass."""
        end = self.step_count + steps
        while self.step_count < end:
            rows = self.line.at(self.step_count)
            if rows is not None:
                self._obey(rows)
            run = min(end - self.step_count, self.line.quiet_steps(self.step_count))
            if self._warm_every:
                run = min(run, self._warm_every - self.step_count % self._warm_every)
            self._run(run)
            self.step_count += run
            if self._warm_every and self.step_count % self._warm_every == 0:
                self.motors.warm(self._warm_every * self.dt)

    def _run(self, steps: int) -> None:
        """Let physics steps pass in which no command changes."""
        model, data, effects, step = self.model, self.data, self._effects, mujoco.mj_step
        if effects:
            for _ in range(steps):
                for effect in effects:
                    effect()
                step(model, data)
        else:
            step(model, data, nstep=steps)
        self._views.gather()

    @property
    def is_saturated(self) -> bool:
        """Whether a motor gave all it could in the newest physics step."""
        return bool(np.count_nonzero(np.abs(self.force) >= _ALL * self.motors.available))

    @property
    def diverged(self) -> int:
        """Number of times that the engine's state was not finite."""
        return int(sum(self.data.warning[kind].number for kind in BAD_STATE))

    def _obey(self, command: FloatArray) -> None:
        """Give the engine's servo its inputs and gains."""
        self._inputs[:2] = command[:2]
        self._inputs[2] = command[4]
        self._gains[:] = command[2:4]

    def _for_engine(self, rows: FloatArray) -> FloatArray:
        """Return a command as the engine wants it.

        The servo aims where the encoder reads the target, and weak or strong motors give less or more than asked for.
        """
        return rows * self._factor + self._shift
