"""One evaluation loop: a policy for a whole episode on any World, scored by the task's own functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from trueup.policy.action import ActionMap, JointOrder
from trueup.policy.mlp import PolicySpec
from trueup.policy.observation import ObservationBuilder
from trueup.policy.reading import Reading
from trueup.tasks.evaluation.worlds import World
from trueup.tasks.goals.goal import Goal
from trueup.tasks.sensing.frame import Float32, Frame
from trueup.tasks.task import Task
from trueup.tasks.terms.rewards import energy

Function = Callable[[Frame], NDArray[np.generic]]
Watch = Callable[[Frame, Float32, NDArray[np.bool_]], None]


@dataclass(frozen=True, kw_only=True)
class Played:
    """An episode of every row, (steps, nrow) each.

    standing   no termination of the task has occurred so far
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
        """Rows in which a termination occurred."""
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
    *,
    command: NDArray[np.floating] | None = None,
    watch: Watch | None = None,
    begun: bool = False,
) -> Played:
    """Run `act` (observations to actions, both float32) in every row of a world, which is where its robots are now.

    command  held throughout, (ncommand,) or (nrow, ncommand); None: as the goal draws it
    watch    called after every control step with the frame, the observations (nrow, nactor) that led to it and the rows
             (nrow,) in which no termination has come
    begun    the goal was drawn together with the start states
    """
    rows, frame = np.arange(world.nrow), world.frame
    if not begun:
        goal.reset(rows)
    if command is not None:
        goal.hold(command)
    builder, mapping = ObservationBuilder(spec.observation, world.nrow), ActionMap(spec.action)
    order = JointOrder(spec.observation.joint_names, world.robot.joint_names)
    action = np.zeros((world.nrow, len(spec.action.controlled_joints)), np.float32)
    seen = _in_order(world.reading(), order)
    target = np.asarray(seen.joint_pos, np.float64)
    actor = builder.restart(seen, goal.values, action)
    frame.asked, frame.command, frame.command_age = goal.values, builder.command, goal.age
    frame.phase = builder.phase
    frame.action = frame.last_action = action
    functions: dict[str, Function] = {**task.terminations, **task.metrics, "power": energy}
    unknown = tuple(name for name, function in functions.items() if not _knows(frame, function))
    known = {name: function for name, function in functions.items() if name not in unknown}
    ends = [name for name in task.terminations if name in known]
    standing, kept, commands = [np.ones(world.nrow, bool)], [], []
    for _ in range(round(seconds / world.control_dt)):
        action = np.ascontiguousarray(act(actor), np.float32)
        frame.last_action, frame.action = frame.action, mapping.observed(action)
        target = np.asarray(mapping.target(action, target, builder.command, builder.phase), np.float64)
        world.step(order.to_robot(target))
        kept.append({name: np.asarray(function(frame), np.float32) for name, function in known.items()})
        standing.append(standing[-1] & ~np.any([kept[-1][name] for name in ends], axis=0))
        commands.append(goal.values.copy())
        if watch is not None:
            watch(frame, actor, standing[-1])
        goal.advance()
        actor = builder.step(_in_order(world.reading(), order), goal.values, mapping.observed(action))
    return Played(
        standing=np.array(standing[1:]),
        metrics={name: np.array([step[name] for step in kept]) for name in known if name not in ends},
        commands=np.array(commands),
        unknown=unknown,
    )


def _knows(frame: Frame, function: Function) -> bool:
    """Whether this world has the signals that a function reads."""
    try:
        function(frame)
    except AttributeError:
        return False
    return True


def _in_order(reading: Reading, order: JointOrder) -> Reading:
    joint_pos, joint_vel = (order.to_policy(np.asarray(part)) for part in (reading.joint_pos, reading.joint_vel))
    return replace(reading, joint_pos=joint_pos, joint_vel=joint_vel)
