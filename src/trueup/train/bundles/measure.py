"""Facts of a passport beyond the policy's spec: robot, goal, and the measured range of every observation."""

from __future__ import annotations

import math

import numpy as np

from trueup.core.errors import TrueupError
from trueup.policy.action import JointOrder
from trueup.policy.bundle.passport import (
    GoalFacts,
    Numbers,
    Passport,
    PolicyOrigin,
    RobotIdentity,
    TrainingRange,
    term_facts,
)
from trueup.policy.mlp import PolicySpec
from trueup.policy.normalizer import Float32
from trueup.policy.runner import Policy
from trueup.tasks.env import TaskEnv
from trueup.tasks.sensing.signals import SIGNALS

_TAIL = 0.001  # of every column, on each side, outside low and high


def measure_ranges(env: TaskEnv, policy: Policy, seconds: float) -> tuple[TrainingRange, Float32]:
    """Run a policy and record its observations; returns their ranges, and (2, ncommand) lowest and highest commands.

    A motion is followed to its end, also where that takes longer than `seconds`: its rows are all different.
    """
    obs, seen, goals = env.reset(), [], []
    if env.goal.finished() is not None:
        seconds = max(seconds, env.task.rates.episode_s)
    policy.restart(np.arange(env.nenv))
    for _ in range(math.ceil(seconds / env.control_dt)):
        seen.append(obs.actor.copy())
        goals.append(env.goal.values.copy())
        step = env.step(np.ascontiguousarray(policy(obs), np.float32))
        policy.restart(step.ended)
        obs = step.obs
    rows, commands = np.concatenate(seen), np.concatenate(goals)
    if not np.isfinite(rows).all():
        raise TrueupError("the policy's observations are not finite in its own task")
    low, high = np.quantile(rows, (_TAIL, 1.0 - _TAIL), axis=0)
    parts = (low, high, rows.min(axis=0), rows.max(axis=0), rows.mean(axis=0), rows.std(axis=0))
    names = ("low", "high", "minimum", "maximum", "mean", "std")
    numbers = {name: _numbers(values) for name, values in zip(names, parts, strict=True)}
    ranges = TrainingRange(rows=len(rows), seconds=seconds, randomized=env.cfg.randomize, **numbers)
    bounds = np.stack([commands.min(axis=0), commands.max(axis=0)]) if env.goal.ncommand else np.zeros((2, 0))
    return ranges, bounds.astype(np.float32)


def goal_facts(env: TaskEnv, measured: Float32) -> GoalFacts:
    """Columns and ranges of the task's goal; where it names no ranges, those that were measured."""
    goal, count = env.goal, env.goal.ncommand
    columns = env.task.goal.columns if len(env.task.goal.columns) == count else tuple(f"c{k}" for k in range(count))
    rate = tuple(step / env.control_dt for step in goal.command_step)
    if len(goal.sliders) == count:
        units = tuple(slider.name.rpartition(", ")[2] for slider in goal.sliders)
        low, high = tuple(s.low for s in goal.sliders), tuple(s.high for s in goal.sliders)
        return GoalFacts(columns=columns, units=units, low=low, high=high, rate=rate)
    low, high = (_numbers(row) for row in measured)
    units = ("as the task says",) * count
    return GoalFacts(columns=columns, units=units, low=low, high=high, rate=rate, source="measured")


def make_passport(
    env: TaskEnv,
    spec: PolicySpec,
    goal: GoalFacts,
    origin: PolicyOrigin,
    ranges: TrainingRange | None,
    *,
    signs: tuple[int, ...] = (),
    ranges_missing: str = "",
) -> Passport:
    """The passport of a policy that acts in an environment."""
    robot = env.robot
    order = JointOrder(spec.action.joint_names, robot.spec.joint_names)
    units = {name: signal.unit for name, signal in (SIGNALS | dict(env.task.signals)).items()}
    return Passport(
        policy=spec,
        robot=RobotIdentity(name=robot.spec.name, model_sha256=robot.model_sha256, options=robot.options),
        signs=signs or (1,) * robot.spec.njoint,
        torque_limit=_numbers(order.to_policy(robot.spec.torque_limit)),
        physics_hz=env.task.rates.physics_hz,
        terms=term_facts(spec.observation, units),
        goal=goal,
        ranges=ranges,
        ranges_missing=ranges_missing,
        origin=origin,
    )


def _numbers(values: np.typing.NDArray[np.floating]) -> Numbers:
    return tuple(float(f"{value:.7g}") for value in values)
