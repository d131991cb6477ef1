"""Policies on twins: hidden physics, the robot's own sensors, commands of the task; scored by the twin's true motion.

Used by `train.py` and `actuators.py`. A policy sees what the robot reports and nothing else; only an expert, which is
there to show what knowing everything would be worth, is told the hidden factors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from trueup.core.errors import TrueupError
from trueup.hardware.twin_cfg import TwinCfg
from trueup.policy.action import JointOrder
from trueup.policy.mlp import PolicySpec
from trueup.policy.reading import Reading, gravity_in_body
from trueup.policy.runner import Policy
from trueup.rl.env import Obs
from trueup.robot.load import load_robot
from trueup.tasks.build import EnvCfg, build
from trueup.tasks.evaluation.evaluate import evaluate
from trueup.tasks.load import load_task
from trueup.tasks.sensing.frame import Frame
from trueup.tasks.sensing.signals import Signal
from trueup.tasks.task import Task
from trueup.twin.firmware import Twin
from trueup.twin.truth.truth import Truth

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Episode:
    """One episode: mean error (m/s) and mechanical power (W) until a fall.

    whole_error  over the whole episode; who lies on the ground errs by the speed that is asked for
    """

    fell: bool
    error: float
    whole_error: float
    power: float


@dataclass(frozen=True, kw_only=True)
class TwinWalk:
    """What walking on twins came to: falls, mean error of velocity (m/s) until a fall, mean mechanical power (W)."""

    episodes: int
    falls: int
    error: float
    power: float
    each: tuple[Episode, ...]

    @property
    def success(self) -> float:
        return 1.0 - self.falls / self.episodes


def walk_on_twins(
    make: Callable[[int], Policy],
    spec: PolicySpec,
    preset: str | Path,
    seeds: Sequence[int],
    *,
    seconds: float = 20.0,
    command_seed: int | None = None,
    factors: Callable[[Truth], NDArray[np.float32]] | None = None,
) -> TwinWalk:
    """One episode on each twin (preset, seed).

    `make(n)` is the policy for n rows, `factors` what an expert is told; `command_seed` None: the least of the seeds.
    """
    task = load_task(spec.task)
    n, robot = len(seeds), load_robot(spec.robot)
    twins = [
        Twin(robot, TwinCfg(preset=str(preset), seed=seed, base="free", command_hz=spec.control_hz)) for seed in seeds
    ]
    told = np.zeros((n, 0), np.float32) if factors is None else np.stack([factors(t.truth) for t in twins])
    goal = build(task, EnvCfg(nenv=n, threads=1, seed=min(seeds) if command_seed is None else command_seed)).goal
    policy = make(n)
    played = evaluate(
        TwinWorld(twins, spec), lambda actor: policy(Obs(actor, actor, told)), spec, upright(task), goal, seconds
    )
    asked = np.hypot(played.commands[:, :, 0], played.commands[:, :, 1])
    return _walked(played.standing, played.metrics["velocity_error"], asked, played.metrics["power"])


def upright(task: Task) -> Task:
    """On a twin a fall is told by the tilt of the base alone."""
    return replace(task, terminations={"fallen": task.terminations["fallen"]})


def _walked(upright: NDArray[np.bool_], errors: FloatArray, asked: FloatArray, powers: FloatArray) -> TwinWalk:
    """Sum up (steps, episodes)."""
    whole = np.where(upright, errors, asked).mean(axis=0)
    each = tuple(
        Episode(
            fell=not up[-1],
            error=float(error[up].mean()) if up.any() else float("nan"),
            whole_error=float(all_along),
            power=float(power[up].mean()) if up.any() else float("nan"),
        )
        for up, error, all_along, power in zip(upright.T, errors.T, whole, powers.T, strict=True)
    )
    return TwinWalk(
        episodes=len(each),
        falls=int((~upright[-1]).sum()),
        error=float(errors[upright].mean()),
        power=float(powers[upright].mean()),
        each=each,
    )


class TwinWorld:
    """Twins without their processes, read past their drivers: the frame has the true motion."""

    def __init__(self, twins: Sequence[Twin], spec: PolicySpec) -> None:
        self.robot, self.nrow, self.control_dt = twins[0].robot.spec, len(twins), 1.0 / spec.control_hz
        order = JointOrder(spec.observation.joint_names, self.robot.joint_names)
        self._gains = order.to_robot(np.array(spec.kp)), order.to_robot(np.array(spec.kd))
        self._twins = twins
        self.frame = Frame(self.nrow, _TRUE, self)
        self.frame.dt = self.control_dt

    def reset(self) -> None:
        raise TrueupError("a twin cannot be put back into its place: start another")

    def step(self, targets: FloatArray) -> None:
        kp, kd = self._gains
        for twin, row in zip(self._twins, targets, strict=True):
            twin.command(np.stack([row, 0.0 * row, kp, kd, 0.0 * row]))
            twin.period()
        self.frame.forget()

    def reading(self) -> Reading:
        states = [twin.state() for twin in self._twins]
        return Reading(
            joint_pos=np.stack([s.joint_pos for s in states]),
            joint_vel=np.stack([s.joint_vel for s in states]),
            gyro=np.stack([s.imu_gyro for s in states]),
            gravity=gravity_in_body(np.stack([s.imu_quat for s in states])),
        )

    def true(self, read: Callable[[Twin], FloatArray]) -> NDArray[np.float32]:
        """A true quantity of every twin."""
        return np.stack([read(twin) for twin in self._twins]).astype(np.float32)


def _rotation(twin: Twin) -> FloatArray:
    return twin.plant.data.body(twin.robot.spec.base.body).xmat.reshape(3, 3)


_TRUE = {
    "base_vel": Signal(lambda world, _: world.true(lambda t: _rotation(t).T @ t.plant.data.qvel[:3])),
    "base_spin": Signal(lambda world, _: world.true(lambda t: t.plant.data.qvel[3:6])),
    "gravity": Signal(lambda world, _: world.true(lambda t: -_rotation(t)[2])),
    "joint_torque": Signal(lambda world, _: world.true(lambda t: t.plant.force)),
    "joint_vel": Signal(lambda world, _: world.true(lambda t: t.plant.velocity)),
}
