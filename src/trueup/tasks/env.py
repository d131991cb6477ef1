"""TaskEnv: many copies of a task, stepped together. NumPy only; any learner may drive it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec
import numpy as np
from numpy.typing import NDArray

from trueup.core.arrays import Ids
from trueup.core.errors import TrueupError
from trueup.core.rows import RowRandom
from trueup.policy.action import ActionMap, JointOrder
from trueup.policy.mlp import PolicySpec
from trueup.policy.observation import ObservationBuilder
from trueup.policy.reading import Reading
from trueup.rl.env import Mirror, Obs, Step
from trueup.tasks.build import EnvCfg, build
from trueup.tasks.sensing.frame import Float32, Frame
from trueup.tasks.sensing.mirror import make_mirror
from trueup.tasks.task import Task
from trueup.tasks.terrain import Climb
from trueup.tasks.variation import Starts, Variation
from trueup.world.actuators.net_actuator import NetActuator
from trueup.world.actuators.target_stages import LearnedDelta
from trueup.world.batch import BatchSim
from trueup.world.fitted.calibration import read_calibration
from trueup.world.fitted.posterior import Fitted

__all__ = ["EnvCfg", "Obs", "Step", "TaskEnv"]
_WATCH_EVERY = 8  # control steps from one look at the task's metrics to the next


class TaskEnv:
    """N copies of one task. `watch` is called with the frame of every step, before episodes that ended restart."""

    def __init__(self, task: Task, cfg: EnvCfg | None = None) -> None:
        self.task, self.cfg = task, cfg or EnvCfg()
        fit = None if self.cfg.params is None else read_calibration(self.cfg.params)
        parts = build(task, self.cfg, fit)
        self.sim: BatchSim = parts.sim
        self.robot, self.nenv = parts.sim.robot, self.cfg.nenv
        self.control_dt = self.sim.control_dt
        self.observation_spec, self.action_spec = parts.observation, parts.action
        seen = parts.observation
        if self.cfg.training:  # sudden commands are the harder lesson
            seen = msgspec.structs.replace(seen, command_step=())
        self._builder = ObservationBuilder(seen, self.nenv)
        self._others = seen.others
        self._map = ActionMap(parts.action)
        self._order = JointOrder(seen.joint_names, self.robot.spec.joint_names)
        self.watch: Callable[[Frame], None] | None = None
        self.goal, self._sense = parts.goal, parts.sense
        self.variation = Variation(
            self.sim,
            task.randomize if self.cfg.randomize else {},
            task.pushes if self.cfg.pushes else None,
            None if fit is None else Fitted(fit, self.sim, posterior=self.cfg.posterior),
            self.cfg.adr,
            task.ramp_s if self.cfg.training else (0.0, 0.0),
        )
        terrain = self._sense.ground.terrain
        self.climb: Climb | None = None
        if terrain is not None:
            draws = RowRandom(self.cfg.seed, "climb", self.nenv, self.cfg.first_row)
            self.climb = Climb(terrain, self.nenv, draws, self.cfg.first_row, self.cfg.level)
        self.nactor, self.naction = parts.observation.nactor, self._map.naction
        self.nprivileged = self.variation.factors.shape[1]
        self._sense.frame.command_age = self.goal.age
        self._sense.frame.asked = self.goal.values
        self._sense.frame.phase = self._builder.phase
        self._clock = np.zeros(1, np.int64)  # control steps made
        self._watched = np.zeros(len(task.metrics))  # the task's metrics when last computed
        self._target = np.zeros((self.nenv, self.robot.spec.njoint))
        self._steps = np.zeros(self.nenv, np.int64)
        self._limit = round(task.rates.episode_s / self.control_dt)
        random = RowRandom(self.cfg.seed, "start", self.nenv, self.cfg.first_row)
        self._starts = Starts(task.start, self.sim, random)
        self._weights: Float32 = np.array([[r.weight * self.control_dt] for r in task.rewards.values()], np.float32)
        self._is_late = np.array([[r.late] for r in task.rewards.values()])
        self._score = list(task.rewards).index(task.score)
        self._scores = np.zeros(self.nenv)  # sum of the score over the episode so far
        self._term_names = [f"reward/{name}" for name in task.rewards]
        self._terms = np.zeros((len(task.rewards), self.nenv), np.float32)
        self.mirror = self._mirror() if task.symmetric else None
        self.obs = self.reset()
        self.ncritic = self.obs.critic.shape[1]

    def reset(self) -> Obs:
        """Begin a new episode in every row."""
        self._begin(np.arange(self.nenv))
        if self.cfg.stagger:
            self._steps[:] = self._limit * self._starts.random.uniform(1)[:, 0]
        self._sense.read(self.goal.values)
        phase = self.goal.elapsed(np.arange(self.nenv))
        actor = self._builder.restart(self._reading(), self.goal.values, self._sense.frame.action, phase=phase)
        self._sense.frame.command = self._builder.command
        self.obs = Obs(actor, self._critic(actor, None), self.variation.factors.copy())
        return self.obs

    def step(self, action: Float32) -> Step:
        """Carry out one control step of every row."""
        if action.shape != (self.nenv, self.naction):
            raise TrueupError(f"actions must have shape {(self.nenv, self.naction)}, found {action.shape}")
        sense, goal = self._sense, self.goal
        sense.act(self._map.observed(action))
        self.variation.advance()
        self.variation.widen(int(self._clock[0]))
        target = self._map.target(
            action, self._order.to_policy(self._target), self._builder.command, self._builder.phase
        )
        self._target[:] = self._order.to_robot(target)
        self.sim.step(self._target)
        frame = sense.read(self._builder.command)
        if self.watch is not None:
            self.watch(frame)
        self._steps += 1
        reward, metrics = self._reward()
        terminated = self._terminated()
        truncated = self._truncated() & ~terminated
        goal.advance()
        actor = self._builder.step(self._reading(), goal.values, frame.action)
        obs = Obs(actor, self._critic(actor, None), self.variation.factors.copy())
        ended = np.flatnonzero(terminated | truncated)
        last = Obs(*(part[ended] for part in obs))
        self._scores += self._terms[self._score]
        if len(ended):
            self._restart(ended, terminated, obs)
        metrics["terminated"] = float(terminated.mean())
        metrics |= self.variation.metrics()
        if self.climb is not None:
            metrics |= self.climb.metrics()
        if isinstance(self.sim.substep_model, NetActuator):
            metrics["actuator_outside"] = self.sim.substep_model.guard.worst
        for stage in self.sim.target_stages:
            if isinstance(stage, LearnedDelta):
                metrics["delta_outside"] = float(stage.outside.mean())
        self.obs = obs
        return Step(obs, reward, terminated, truncated, ended, last, metrics)

    @property
    def frame(self) -> Frame:
        """State of all rows after the last control step, as rewards see it."""
        return self._sense.frame

    def policy_spec(self) -> PolicySpec:
        """What a policy trained here carries to the robot."""
        spec = self.robot.spec
        return PolicySpec(
            task=self.task.name,
            robot=spec.name,
            control_hz=1.0 / self.control_dt,
            kp=tuple(self._order.to_policy(spec.kp).tolist()),
            kd=tuple(self._order.to_policy(spec.kd).tolist()),
            observation=self.observation_spec,
            action=self.action_spec,
        )

    # --- checkpoints ---
    def state(self) -> dict[str, NDArray[np.generic]]:
        """Everything that changes, as plain arrays by flat names; `restore` continues bit for bit."""
        out: dict[str, NDArray[np.generic]] = {f"sim/{k}": v for k, v in self.sim.state().items()}
        out |= {name: values.copy() for name, values in self._memory().items()}
        out |= {f"obs/{name}": values.copy() for name, values in self.obs._asdict().items()}
        return out

    def restore(self, state: Mapping[str, NDArray[np.generic]]) -> None:
        """Continue from what `state` of an environment built alike returned."""
        for name, values in self._memory().items():
            if name not in state or state[name].shape != values.shape:
                raise TrueupError(f"this state is of another environment: {name!r} does not fit", place=name)
            values[...] = state[name]
        self.variation.restored()
        self.sim.restore({k[4:]: v for k, v in state.items() if k.startswith("sim/")})
        self.obs = Obs(*(np.array(state[f"obs/{name}"], np.float32) for name in Obs._fields))

    def _memory(self) -> dict[str, NDArray[np.generic]]:
        names = ("clock", "watched", "target", "steps", "scores")
        out: dict[str, NDArray[np.generic]] = {name: getattr(self, f"_{name}") for name in names}
        out |= {"start": self._starts.random.counter}
        out |= {"history": self._builder.history.frames, "eased": self._builder.command}
        out |= {"phase": self._builder.phase}
        parts = {"command": self.goal.memory(), "variation": self.variation.memory(), "sense": self._sense.memory}
        parts["climb"] = {} if self.climb is None else self.climb.memory()
        return out | {f"{part}/{name}": values for part, memory in parts.items() for name, values in memory.items()}

    # --- inside ---
    def _mirror(self) -> Mirror:
        """Mirror of the nominal robot; posterior draws among the hidden factors are not mirrored."""
        draws = self.variation.randomizer
        critic = [term.signal for term in self.task.observations.critic]
        factors = [] if draws is None else draws.factor_names
        return make_mirror(
            self._sense, self.observation_spec, self.goal, critic, factors, self.action_spec.controlled_joints
        )

    def _begin(self, ids: Ids) -> None:
        qpos, qvel = self._starts.draw(ids, self.climb)
        self.goal.reset(ids)
        self.goal.adjust_start(ids, qpos, qvel)
        self.variation.begin(ids)
        self.sim.reset(ids, qpos=qpos, qvel=qvel)
        self.variation.begun(ids)
        self._target[ids] = self.sim.joint_pos[ids] + self.sim.encoder_bias[ids]
        self._steps[ids] = 0
        self._scores[ids] = 0.0
        self._sense.reset(ids, self.goal.values)

    def _restart(self, ids: Ids, terminated: NDArray[np.bool_], obs: Obs) -> None:
        """Score ended episodes (mean score, time cut off by a fall counts as zero) and reset their rows."""
        length = np.where(terminated[ids], self._limit, self._steps[ids])
        self.variation.ended(ids, self._scores[ids] / length)
        self.goal.ended(ids, terminated[ids])
        if self.climb is not None:
            self.climb.ended(ids, self._place())
        self._begin(ids)
        reading, last, phase = self._reading(ids), self._sense.frame.action[ids], self.goal.elapsed(ids)
        actor = self._builder.restart(reading, self.goal.values[ids], last, ids, phase)
        obs.actor[ids] = actor
        obs.critic[ids] = self._critic(actor, ids)
        obs.privileged[ids] = self.variation.factors[ids]

    def _reading(self, ids: Ids | None = None) -> Reading:
        seen, rows = self.sim.sensors.peek(ids), slice(None) if ids is None else ids
        frame, nrow = self._sense.frame, len(seen.joint_pos)
        return Reading(
            joint_pos=self._order.to_policy(seen.joint_pos),
            joint_vel=self._order.to_policy(seen.joint_vel),
            gyro=seen.gyro,
            gravity=seen.gravity,
            others={name: getattr(frame, name)[rows].reshape(nrow, -1) for name in self._others},
        )

    def _place(self) -> NDArray[np.floating]:
        return self.sim.qpos[:, self.sim.base_qpos : self.sim.base_qpos + 2]

    def _critic(self, actor: Float32, ids: Ids | None) -> Float32:
        rows = slice(None) if ids is None else ids
        terms = [
            getattr(self._sense.frame, term.signal)[rows].reshape(len(actor), -1) * np.float32(term.scale)
            for term in self.task.observations.critic
        ]
        return np.concatenate([actor, *terms, self.variation.factors[rows]], axis=1, dtype=np.float32)

    def _reward(self) -> tuple[Float32, dict[str, float]]:
        frame = self._sense.frame
        for row, term in zip(self._terms, self.task.rewards.values(), strict=True):
            row[:] = term.function(frame)
        weights = np.where(self._is_late, self._weights * np.float32(self.variation.share), self._weights)
        # Term by term: the order of a sum, and so its rounding, may depend on the number of environments otherwise.
        reward: Float32 = np.zeros(self.nenv, np.float32)
        for row in weights * self._terms:
            reward += row
        metrics = dict(zip(self._term_names, self._terms.mean(axis=1).tolist(), strict=True))
        if self._clock[0] % _WATCH_EVERY == 0:
            self._watched[:] = [function(frame).mean() for function in self.task.metrics.values()]
        self._clock += 1
        metrics |= dict(zip(self.task.metrics, self._watched.tolist(), strict=True))
        return reward, metrics

    def _truncated(self) -> NDArray[np.bool_]:
        out: NDArray[np.bool_] = self._steps >= self._limit
        finished = self.goal.finished()
        if finished is not None:
            out |= finished
        if self.climb is not None:
            course = self.goal.course()
            if course is not None:
                self.climb.advance(course, self.control_dt)
            out |= self.climb.crossed(self._place())
        return out

    def _terminated(self) -> NDArray[np.bool_]:
        out = self.sim.diverged
        for function in self.task.terminations.values():
            out |= function(self._sense.frame)
        return out
