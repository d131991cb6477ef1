"""Policies on twins: hidden physics, the robot's own sensors, commands of the task; scored by the twin's true motion.

Used by `train.py` and `actuators.py`. A policy sees what the robot reports and nothing else; only an expert, which is
there to show what knowing everything would be worth, is told the hidden factors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from trueup.core.rows import RowRandom
from trueup.policy.action import ActionMap, JointOrder
from trueup.policy.mlp import PolicySpec
from trueup.policy.observation import ObservationBuilder
from trueup.policy.reading import Reading, gravity_in_body
from trueup.policy.runner import Policy
from trueup.robot.load import load_robot
from trueup.tasks.goals.commands import VelocityCommand, VelocityCommands
from trueup.tasks.load import load_task
from trueup.tasks.step import Obs
from trueup.twin.firmware import Twin, TwinCfg
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
    assert isinstance(task.commands, VelocityCommand)
    n, robot, dt = len(seeds), load_robot(spec.robot), 1.0 / spec.control_hz
    twins = [
        Twin(robot, TwinCfg(preset=str(preset), seed=seed, base="free", command_hz=spec.control_hz))
        for seed in seeds
    ]
    told = np.zeros((n, 0), np.float32) if factors is None else np.stack([factors(t.truth) for t in twins])
    commands = VelocityCommands(
        task.commands, n, dt, RowRandom(min(seeds) if command_seed is None else command_seed, "command", n)
    )
    commands.reset(np.arange(n))
    builder, action_map, policy = ObservationBuilder(spec.observation, n), ActionMap(spec.action), make(n)
    order = JointOrder(spec.observation.joint_names, robot.spec.joint_names)  # a policy of others has its own
    kp, kd = order.to_robot(np.array(spec.kp)), order.to_robot(np.array(spec.kd))
    action = np.zeros((n, len(spec.action.moved)), np.float32)
    target = order.to_policy(np.stack([twin.state().joint_pos for twin in twins]))
    actor = builder.restart(_reading(twins, order), commands.values, action)
    standing, upright, errors, powers, asked = np.ones(n, bool), [], [], [], []
    for _ in range(round(seconds / dt)):
        action = np.ascontiguousarray(policy(Obs(actor, actor, told)), np.float32)
        target = action_map.target(action, target)
        for twin, row in zip(twins, order.to_robot(target), strict=True):
            twin.command(_rows(row, kp, kd))
            twin.period()
        found = np.array([_motion(twin) for twin in twins])
        standing &= found[:, 2] < -0.5
        upright.append(standing.copy())
        errors.append(np.hypot(*(found[:, :2] - commands.values[:, :2]).T))
        asked.append(np.hypot(*commands.values[:, :2].T))
        powers.append(found[:, 3])
        commands.advance()
        actor = builder.step(_reading(twins, order), commands.values, action_map.observed(action))
    return _walked(np.array(upright), np.array(errors), np.array(asked), np.array(powers))


def _walked(
    upright: NDArray[np.bool_], errors: FloatArray, asked: FloatArray, powers: FloatArray
) -> TwinWalk:
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


def _rows(target: FloatArray, kp: FloatArray, kd: FloatArray) -> FloatArray:
    rows = np.zeros((5, len(target)))
    rows[0], rows[2], rows[3] = target, kp, kd
    return rows


def _reading(twins: Sequence[Twin], order: JointOrder) -> Reading:
    """What the twins report, joints in the policy's order."""
    states = [twin.state() for twin in twins]
    return Reading(
        joint_pos=order.to_policy(np.stack([s.joint_pos for s in states])),
        joint_vel=order.to_policy(np.stack([s.joint_vel for s in states])),
        gyro=np.stack([s.imu_gyro for s in states]),
        gravity=gravity_in_body(np.stack([s.imu_quat for s in states])),
    )


def _motion(twin: Twin) -> tuple[float, float, float, float]:
    """True velocity of the base in its own frame (x, y), the z of gravity in it, and mechanical power."""
    data = twin.plant.data
    body = data.body(twin.robot.spec.base.body)
    rotation = body.xmat.reshape(3, 3)
    velocity = rotation.T @ data.qvel[:3]
    power = np.abs(twin.plant.force * twin.plant.velocity).sum()
    return float(velocity[0]), float(velocity[1]), -float(rotation[2, 2]), float(power)
