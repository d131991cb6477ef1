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
from trueup.robot.load import load_robot
from trueup.sim.twin.firmware import Twin, TwinCfg
from trueup.sim.twin.truth import Truth
from trueup.tasks.commands import VelocityCommand, VelocityCommands
from trueup.tasks.load import load_task
from trueup.tasks.step import Obs
from trueup.train.frozen import Policy

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class TwinWalk:
    """What walking on twins came to: falls, mean error of velocity (m/s) until a fall, mean mechanical power (W)."""

    episodes: int
    falls: int
    error: float
    power: float

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
    factors: Callable[[Truth], NDArray[np.float32]] | None = None,
) -> TwinWalk:
    """One episode on each twin (preset, seed); `make(n)` is the policy for n rows, `factors` what an expert is told."""
    task = load_task(spec.task)
    assert isinstance(task.commands, VelocityCommand)
    n, robot, dt = len(seeds), load_robot(spec.robot), 1.0 / spec.control_hz
    twins = [
        Twin(robot, TwinCfg(preset=str(preset), seed=seed, base="free", command_hz=spec.control_hz))
        for seed in seeds
    ]
    told = np.zeros((n, 0), np.float32) if factors is None else np.stack([factors(t.truth) for t in twins])
    commands = VelocityCommands(task.commands, n, dt, RowRandom(min(seeds), "command", n))
    commands.reset(np.arange(n))
    builder, action_map, policy = ObservationBuilder(spec.observation, n), ActionMap(spec.action), make(n)
    order = JointOrder(spec.observation.joint_names, robot.spec.joint_names)  # a policy of others has its own
    kp, kd = order.to_robot(np.array(spec.kp)), order.to_robot(np.array(spec.kd))
    action = np.zeros((n, len(spec.action.moved)), np.float32)
    target = order.to_policy(np.stack([twin.state().joint_pos for twin in twins]))
    actor = builder.restart(_reading(twins, order), commands.values, action)
    standing, errors, powers = np.ones(n, bool), [], []
    for _ in range(round(seconds / dt)):
        action = np.ascontiguousarray(policy(Obs(actor, actor, told)), np.float32)
        target = action_map.target(action, target)
        for twin, row in zip(twins, order.to_robot(target), strict=True):
            twin.command(_rows(row, kp, kd))
            twin.period()
        found = np.array([_motion(twin) for twin in twins])
        error = np.hypot(*(found[:, :2] - commands.values[:, :2]).T)
        standing &= found[:, 2] < -0.5
        errors += error[standing].tolist()
        powers += found[standing, 3].tolist()
        commands.advance()
        actor = builder.step(_reading(twins, order), commands.values, action_map.observed(action))
    return TwinWalk(
        episodes=n, falls=int((~standing).sum()), error=float(np.mean(errors)), power=float(np.mean(powers))
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
