"""Simulated runs of the same policy with the same commands on robots as in training.

Two sets. `drawn`: a robot of the task's ranges in every row: values worse than nearly all of them are not covered by
training. `same`: one robot many times, with different starts and sensor noise: the spread between runs of one robot.
Policies observe noise as in the task; the recorded states are true ones, as a robot's encoders have less noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from trueup.core.arrays import FloatArray
from trueup.core.rows import RowRandom
from trueup.data.log import Log
from trueup.gap.symptoms.run import Run
from trueup.policy.action import JointOrder
from trueup.policy.bundle.bundle import PolicyBundle
from trueup.policy.mlp import PolicySpec
from trueup.policy.normalizer import Float32
from trueup.robot.load import load_robot
from trueup.tasks.build import Changed, EnvCfg, Parts, build
from trueup.tasks.evaluation.evaluate import evaluate
from trueup.tasks.evaluation.worlds import SimWorld
from trueup.tasks.sensing.frame import Frame
from trueup.tasks.task import Servo, Task
from trueup.tasks.variation import Starts
from trueup.world.fitted.calibration import SimParams
from trueup.world.randomization.randomize import Draw, Randomizer

MOST_SECONDS = 20.0  # of a run that are simulated
_MAX_DELAY_S, _STAND_S = 0.12, 1.5


@dataclass(frozen=True, kw_only=True)
class ReferenceCfg:
    """Number of simulated robots and seed; `fit`: a calibration whose estimate all of them have."""

    robots: int = 32
    seed: int = 0
    threads: int = 1
    fit: SimParams | None = None


def simulate(bundle: PolicyBundle, task: Task, run: Run, cfg: ReferenceCfg, *, drawn: bool) -> list[Run]:
    """The run again, once in each simulated robot."""
    spec = bundle.passport.policy
    asked = _with_gains(task, spec)
    env = EnvCfg(nenv=cfg.robots, threads=cfg.threads, seed=cfg.seed, randomize=False, pushes=False)
    parts = build(asked, env, cfg.fit, Changed(max_delay_s=_MAX_DELAY_S))
    if cfg.fit is not None:
        cfg.fit.apply(parts.sim)
    if drawn:
        Randomizer(parts.sim, _ranges(asked, cfg.fit)).apply()
    world = _Rows(parts, asked)
    sag = world.sag()
    commands = _commands(run, parts)
    held = [0]

    def watch(frame: Frame, actor: Float32, standing: NDArray[np.bool_]) -> None:
        world.push()
        held[0] += 1
        if commands is not None and held[0] < len(commands):
            parts.goal.hold(commands[held[0]])

    seconds = min(run.seconds, MOST_SECONDS)
    first = None if commands is None else commands[0]
    evaluate(world, bundle.runner(cfg.robots).act, spec, asked, parts.goal, seconds, command=first, watch=watch,
             begun=True)  # fmt: skip
    cleared = replace(run, late=None, distance=None, stopped="", source=None)
    return [replace(cleared, name=f"simulated {row}", log=world.log(row), command=world.commands(row),
                    start_pose=float(sag[row]) + asked.start.joint_pos) for row in range(cfg.robots)]  # fmt: skip


def _commands(run: Run, parts: Parts) -> FloatArray | None:
    if run.command is None or run.command.shape[1] != parts.goal.ncommand:
        return None
    return run.command[: round(MOST_SECONDS * run.control_hz)]


def _ranges(task: Task, fit: SimParams | None) -> dict[str, Draw]:
    """The task's ranges, without those of parameters that a calibration knows."""
    known = set() if fit is None else {one.name for one in fit.parameters}
    return {name: draw for name, draw in task.randomize.items() if name not in known}


def _with_gains(task: Task, spec: PolicySpec) -> Task:
    """The task with the policy's gains and rate, on flat ground."""
    names = load_robot(task.robot).spec.joint_names
    order = JointOrder(spec.observation.joint_names, names)
    kp, kd = (tuple(order.to_robot(np.array(gains)).tolist()) for gains in (spec.kp, spec.kd))
    substeps = max(1, math.ceil(task.rates.physics_hz / spec.control_hz - 1e-9))
    rates = replace(task.rates, control_hz=spec.control_hz, physics_hz=substeps * spec.control_hz)
    return replace(task, rates=rates, servo=Servo(kp=kp, kd=kd, torque=task.servo.torque), terrain=None)


class _Rows(SimWorld):
    """Simulations that record the signals of a robot's log."""

    def __init__(self, parts: Parts, task: Task) -> None:
        self._parts, self._task = parts, task
        self._kept: dict[str, list[FloatArray]] = {}
        super().__init__(parts.sim, parts.sense)
        self._target = np.zeros((self.nrow, self.robot.njoint))

    def reset(self) -> None:
        """Begin as the task's episodes do, feet on the ground."""
        sim, rows = self._parts.sim, np.arange(self._parts.sim.nsim)
        qpos, qvel = Starts(self._task.start, sim, RowRandom(sim.cfg.seed, "start", sim.nsim)).draw(rows, None)
        self._parts.goal.reset(rows)
        sim.reset(qpos=qpos, qvel=qvel)
        self.frame.forget()
        if sim.free_base and len(sim.robot.spec.feet):
            qpos[:, sim.base_qpos + 2] -= self.frame.foot_height.min(axis=1)
            sim.reset(qpos=qpos, qvel=qvel)
            self.frame.forget()
        self._sense.reset(rows, self.frame.command)

    def sag(self) -> FloatArray:
        """Largest joint deflection of each row (nrow,) while it stands on its servos, rad; then the row is reset."""
        pose = np.tile(self.robot.default_pose, (self.nrow, 1))
        for _ in range(round(_STAND_S / self.control_dt)):
            self._parts.sim.step(pose)
        found: FloatArray = np.abs(self._parts.sim.joint_pos - pose).max(axis=1)
        self.reset()
        return found

    def step(self, targets: NDArray[np.floating]) -> None:
        self._before = self._state()
        self._target = np.asarray(targets, np.float64)
        super().step(targets)

    def push(self) -> None:
        """Record the state before the last step and the targets sent in it."""
        now = self._before | {"target_pos": self._target, "command": self._parts.goal.values}
        for name, values in now.items():
            self._kept.setdefault(name, []).append(np.array(values, np.float32))

    def _state(self) -> dict[str, FloatArray]:
        sim = self._parts.sim
        now = {"joint_pos": sim.joint_pos, "joint_vel": sim.joint_vel, "joint_torque": sim.joint_torque}
        pose = sim.motion.of(None).base_pose
        if pose is not None:
            now |= {"imu_quat": pose[:, 3:], "imu_gyro": self.frame.base_spin}
        return {name: np.array(values, np.float64) for name, values in now.items()}

    def commands(self, row: int) -> FloatArray:
        return np.array([one[row] for one in self._kept["command"]], np.float64)

    def log(self, row: int) -> Log:
        """One row as a log."""
        signals = {
            name: np.array([one[row] for one in kept], np.float64)
            for name, kept in self._kept.items()
            if name != "command"
        }
        time: FloatArray = self.control_dt * np.arange(len(signals["joint_pos"]), dtype=np.float64)
        return Log(time=time, joint_names=self.robot.joint_names, signals=signals)
