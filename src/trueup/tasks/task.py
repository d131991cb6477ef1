"""Task: everything that defines what is to be learned, read from top to bottom."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trueup.core.errors import TrueupError
from trueup.policy.cycle import CycleSpec
from trueup.policy.foreign.layout import Layout
from trueup.policy.observation import Term
from trueup.rl.settings import LearnerCfg, PpoCfg
from trueup.robot.load import Robot
from trueup.tasks.goals.goal import GoalCfg
from trueup.tasks.sensing.frame import Frame
from trueup.tasks.sensing.signals import Signal
from trueup.world.actuators.target_stages import TargetStage
from trueup.world.push import PushCfg
from trueup.world.randomization.randomize import Ranges
from trueup.world.scene.scene import Scene
from trueup.world.sensors import SensorCfg
from trueup.world.terrain import TerrainCfg

Float32 = NDArray[np.float32]


class Reward(NamedTuple):
    """A pure function of a frame that returns (nenv,), and its weight per second; `late`: it grows with the ramp."""

    function: Callable[[Frame], Float32]
    weight: float
    late: bool = False


class CriticTerm(NamedTuple):
    """A signal that only the critic sees, times a scale."""

    signal: str
    scale: float = 1.0


@dataclass(frozen=True, kw_only=True)
class Rates:
    """The policy runs at control_hz, the engine at physics_hz; an episode lasts episode_s."""

    control_hz: float = 50.0
    physics_hz: float = 200.0
    episode_s: float = 20.0


@dataclass(frozen=True, kw_only=True)
class Observations:
    """What the actor sees (it must exist on the robot), how many frames of it, and what the critic sees beside.

    clock_s  period of the signal `clock`
    """

    actor: tuple[Term, ...]
    critic: tuple[CriticTerm, ...] = ()
    history: int = 1
    clock_s: float | None = None


@dataclass(frozen=True, kw_only=True)
class Actions:
    """target = default_pose + scale * action; `controlled_joints` None: every joint.

    relative  last target + scale * action;  residual: reference pose, the command's first columns, + scale * action
    cycle     makes, of the robot with the task's servos and the controlled joints, a gait that is added
    """

    scale: float | tuple[float, ...] = 0.25
    controlled_joints: tuple[str, ...] | None = None
    clip: float = 10.0
    relative: bool = False
    residual: bool = False
    cycle: Callable[[Robot, tuple[str, ...]], CycleSpec] | None = None


@dataclass(frozen=True, kw_only=True)
class Servo:
    """Gains and torque limit for this task, of all joints or of each in the robot's order; None: the robot's own."""

    kp: float | tuple[float, ...] | None = None
    kd: float | tuple[float, ...] | None = None
    torque: float | tuple[float, ...] | None = None


@dataclass(frozen=True, kw_only=True)
class Start:
    """Half-widths of the uniform noise on the state an episode begins in.

    joint_pos about the default pose (rad), joint_vel (rad/s); of a floating base: tilt (rad) about x and y, vel (m/s)
    and spin (rad/s) on each axis; `any_yaw`: heading drawn from the whole circle. `pose`: joints that begin elsewhere
    than in the default pose, rad.
    """

    pose: Mapping[str, float] = field(default_factory=dict)
    joint_pos: float = 0.0
    joint_vel: float = 0.0
    tilt: float = 0.0
    vel: float = 0.0
    spin: float = 0.0
    any_yaw: bool = False


@dataclass(frozen=True, kw_only=True)
class Task:
    """One thing to learn. `score` names the reward term, in [0, 1], that says how well an episode goes."""

    name: str
    robot: str
    rates: Rates
    observations: Observations
    actions: Actions
    goal: GoalCfg
    rewards: Mapping[str, Reward]
    terminations: Mapping[str, Callable[[Frame], NDArray[np.bool_]]]
    score: str
    symmetric: bool = False  # left and right may be exchanged
    signals: Mapping[str, Signal] = field(default_factory=dict)  # of this task, beside `tasks.sensing.signals`
    metrics: Mapping[str, Callable[[Frame], Float32]] = field(default_factory=dict)
    start: Start = field(default_factory=Start)
    servo: Servo = field(default_factory=Servo)
    target_stages: tuple[TargetStage, ...] = ()  # between actions and delay, see `world.actuators.target_stages`
    sensors: SensorCfg = field(default_factory=SensorCfg)
    randomize: Ranges = field(default_factory=dict)
    pushes: PushCfg | None = None
    ramp_s: tuple[float, float] = (0.0, 0.0)  # in training, ranges and pushes grow between these
    terrain: TerrainCfg | None = None
    scene: Scene = field(default_factory=Scene)  # what stands around the robot, further robots included
    learner: LearnerCfg = field(default_factory=PpoCfg)  # settings that are known to learn it
    layout: Layout | None = None  # of a policy trained elsewhere: takes the place of observations and actions

    def __post_init__(self) -> None:
        if self.score not in self.rewards:
            raise TrueupError(f"task {self.name!r}: score {self.score!r} is not one of its rewards")


def error_metric(task: Task) -> str | None:
    """The metric that tells how far a policy is from the task's goal; None for tasks without one."""
    return task.goal.error[0] if task.goal.error is not None and task.goal.error[0] in task.metrics else None


def error_label(task: Task) -> str:
    """Name and unit of the error for people, such as "velocity error, m/s"; empty for tasks without one."""
    name = error_metric(task)
    return "" if name is None or task.goal.error is None else f"{name.replace('_', ' ')}, {task.goal.error[1]}"
