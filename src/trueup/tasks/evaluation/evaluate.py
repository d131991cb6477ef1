"""One evaluation loop: a policy for a whole episode on any World, scored by the task's own functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trueup.policy.action import ActionMap, JointOrder
from trueup.policy.mlp import PolicySpec
from trueup.policy.observation import ObservationBuilder
from trueup.policy.reading import Reading
from trueup.tasks.evaluation.worlds import World
from trueup.tasks.goals.goal import Goal
from trueup.tasks.sensing.frame import Frame
from trueup.tasks.task import Task

Float32 = NDArray[np.float32]
Function = Callable[[Frame], NDArray[np.generic]]


@dataclass(frozen=True, kw_only=True)
class Played:
    """An episode of every row, (steps, nrow) each.

    standing   no termination of the task has come so far
    metrics    the task's metrics that this world can measure; `power` is the sum of |torque x joint velocity|, W
    commands   (steps, nrow, ncommand) as they were given
    unknown    terminations and metrics that need signals which this world does not have
    """

    standing: NDArray[np.bool_]
    metrics: Mapping[str, Float32]
    commands: Float32
    unknown: tuple[str, ...]

    @property
    def falls(self) -> int:
        """Rows in which a termination came."""
        return int((~self.standing[-1]).sum())

    def mean(self, name: str) -> float:
        """Mean of a metric over all steps before a termination."""
        return float(self.metrics[name][self.standing].mean())


def evaluate(
    world: World,
    act: Callable[[Float32], NDArray[np.floating]],
    spec: PolicySpec,
    task: Task,
    goal: Goal,
    seconds: float,
) -> Played:
    """Run `act` (observations to actions, both float32) in every row of a world, which is where its robots are now."""
    rows, frame = np.arange(world.nrow), world.frame
    goal.reset(rows)
    builder, mapping = ObservationBuilder(spec.observation, world.nrow), ActionMap(spec.action)
    order = JointOrder(spec.observation.joint_names, world.robot.joint_names)
    action = np.zeros((world.nrow, len(spec.action.moved)), np.float32)
    seen = _in_order(world.reading(), order)
    target = np.asarray(seen.joint_pos, np.float64)
    actor = builder.restart(seen, goal.values, action)
    frame.asked, frame.command, frame.command_age = goal.values, builder.command, goal.age
    frame.action = frame.last_action = action
    judges, unknown = _judges(task, frame)
    standing, kept, commands = np.ones(world.nrow, bool), [], []
    for _ in range(round(seconds / world.control_dt)):
        action = np.ascontiguousarray(act(actor), np.float32)
        frame.last_action, frame.action = frame.action, mapping.observed(action)
        target = np.asarray(mapping.target(action, target), np.float64)
        world.step(order.to_robot(target))
        for function in judges.ends.values():
            standing = standing & ~np.asarray(function(frame), bool)
        values = {name: np.asarray(function(frame), np.float32) for name, function in judges.metrics.items()}
        kept.append(values | {"standing": standing})
        commands.append(goal.values.copy())
        goal.advance()
        actor = builder.step(_in_order(world.reading(), order), goal.values, mapping.observed(action))
    return Played(
        standing=np.array([step.pop("standing") for step in kept]),
        metrics={name: np.array([step[name] for step in kept]) for name in judges.metrics},
        commands=np.array(commands),
        unknown=unknown,
    )


@dataclass(frozen=True)
class _Judges:
    ends: dict[str, Function]
    metrics: dict[str, Function]


def _judges(task: Task, frame: Frame) -> tuple[_Judges, tuple[str, ...]]:
    """Terminations and metrics whose signals a world has; the others by name."""
    ends: dict[str, Function] = dict(task.terminations)
    metrics: dict[str, Function] = {**task.metrics, "power": _power}
    unknown = [name for name, function in (ends | metrics).items() if not _can(function, frame)]
    for name in unknown:
        ends.pop(name, None)
        metrics.pop(name, None)
    return _Judges(ends, metrics), tuple(unknown)


def _can(function: Function, frame: Frame) -> bool:
    try:
        function(frame)
    except AttributeError:
        return False
    return True


def _power(frame: Frame) -> Float32:
    out: Float32 = np.abs(frame.joint_torque * frame.joint_vel).sum(axis=1)
    return out


def _in_order(reading: Reading, order: JointOrder) -> Reading:
    return Reading(
        joint_pos=order.to_policy(np.asarray(reading.joint_pos)),
        joint_vel=order.to_policy(np.asarray(reading.joint_vel)),
        gyro=reading.gyro,
        gravity=reading.gravity,
        others=reading.others,
    )
