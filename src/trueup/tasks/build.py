"""Build: from a task and the size of its environment to parts: simulation, observation, action, goal, senses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import msgspec
import mujoco

from trueup.core.errors import TrueupError
from trueup.core.rows import RowRandom
from trueup.models.actuator_file import load_actuator
from trueup.models.delta_net import load_delta
from trueup.policy.action import ActionSpec
from trueup.policy.observation import OWN_SIGNALS, ObservationSpec
from trueup.robot.load import Robot, load_robot
from trueup.tasks.goals.goal import Goal, GoalPlace
from trueup.tasks.sensing.frame import Sense
from trueup.tasks.task import Servo, Task
from trueup.tasks.terrain import Ground
from trueup.world.actuators.net_actuator import NetActuator, with_net
from trueup.world.actuators.target_stages import LearnedDelta
from trueup.world.batch import BatchSim, SimCfg
from trueup.world.engines.foot_sensors import add_foot_sensors
from trueup.world.engines.simulation import Simulation
from trueup.world.fitted.calibration import SimParams
from trueup.world.fitted.posterior import sim_for_fit
from trueup.world.randomization.adr import AdrCfg
from trueup.world.scene.scene import Scene
from trueup.world.terrain import Terrain


@dataclass(frozen=True, kw_only=True)
class EnvCfg:
    """Size and seed of an environment.

    threads   0: all cores
    randomize, pushes   whether the task's are used
    params    folder of a calibration: everything fitted is drawn from its posterior
    posterior False: every row has the calibration's estimate
    actuator  folder of a learned actuator: it drives the joints, with the parameters that it was fitted with
    delta     folder of a delta action: it corrects targets behind the task's own stages
    adr       let the task's ranges grow from the calibrated point by success
    training  ranges, pushes and late costs grow by `ramp_s`; commands come suddenly, whatever their `rate`
    level     of the terrain for every row; None: the curriculum decides
    stagger   let the first episodes end at different times, so that resets spread out
    """

    nenv: int = 512
    threads: int = 0
    seed: int = 0
    first_row: int = 0
    randomize: bool = True
    pushes: bool = True
    params: Path | None = None
    posterior: bool = True
    actuator: Path | None = None
    delta: Path | None = None
    adr: AdrCfg | None = None
    training: bool = False
    level: int | None = None
    stagger: bool = True


class Parts(NamedTuple):
    """What an environment is made of."""

    sim: BatchSim
    observation: ObservationSpec
    action: ActionSpec
    goal: Goal
    sense: Sense


class Changed(NamedTuple):
    """Overrides of a task's simulation.

    max_delay_s  longest command delay that parameters may ask for
    terrain      in the place of the task's
    prepare      changes MuJoCo's model before it is compiled
    """

    max_delay_s: float = SimCfg.max_delay_s
    terrain: Terrain | None = None
    prepare: Callable[[mujoco.MjSpec], None] | None = None


_AS_IT_IS = Changed()


def sim_setup(
    task: Task, env: EnvCfg, fit: SimParams | None = None, changed: Changed = _AS_IT_IS
) -> tuple[Scene, SimCfg]:
    """Scene and settings of a task's simulation, for any engine."""
    scene = task.scene.with_robot(with_servo(load_robot(task.robot), task.servo))
    if changed.terrain is not None:
        scene = replace(scene, terrain=changed.terrain)
    elif task.terrain is not None:
        scene = replace(scene, terrain=Terrain(task.terrain, env.seed))
    cfg = SimCfg(
        nsim=env.nenv,
        threads=env.threads,
        seed=env.seed,
        first_row=env.first_row,
        control_hz=task.rates.control_hz,
        physics_hz=task.rates.physics_hz,
        sensors=task.sensors,
        max_delay_s=changed.max_delay_s,
    )
    return scene, cfg if fit is None else sim_for_fit(cfg, fit)


def build(task: Task, env: EnvCfg, fit: SimParams | None = None, changed: Changed = _AS_IT_IS) -> Parts:
    """Make the parts of a task; `fit`: a calibration whose parameters the caller sets."""
    scene, cfg = sim_setup(task, env, fit, changed)
    robot, actuator = scene.robot, None
    if env.actuator is not None:
        net = load_actuator(env.actuator)
        cfg, actuator = with_net(cfg, net), NetActuator(net)

    def prepare(spec: mujoco.MjSpec) -> None:
        add_foot_sensors(spec, robot)
        if changed.prepare is not None:
            changed.prepare(spec)

    learned = () if env.delta is None else (LearnedDelta(load_delta(env.delta)),)
    sim = BatchSim(scene, cfg, actuator, prepare, (*task.target_stages, *learned))
    if actuator is not None:
        actuator.prepare(sim)
    return Parts(sim, *sensing(task, env, sim))


def sensing(task: Task, env: EnvCfg, sim: Simulation) -> tuple[ObservationSpec, ActionSpec, Goal, Sense]:
    """Observation, action, goal and signals of a task around a simulation."""
    action = _action_spec(task, sim.robot) if task.layout is None else task.layout.action
    random = RowRandom(env.seed, "command", env.nenv, env.first_row)
    goal = task.goal.start(GoalPlace(sim, action.controlled_joints, random, env.training))
    sense = Sense(
        sim, Ground(sim.scene.terrain), len(action.controlled_joints), goal.ncommand, goal.chain, task.signals
    )
    sense.goal = goal
    return _observation_spec(task, action, goal, sense), action, goal, sense


def _observation_spec(task: Task, action: ActionSpec, goal: Goal, sense: Sense) -> ObservationSpec:
    if task.layout is not None:
        found = task.layout.observation
        ncommand = found.ncommand if any(t.signal == "command" for t in found.terms) else goal.ncommand
        return msgspec.structs.replace(found, command_step=goal.command_step, ncommand=ncommand)
    spec = sense.sim.robot.spec
    others = [term.signal for term in task.observations.actor if term.signal not in OWN_SIGNALS]
    return ObservationSpec(
        joint_names=spec.joint_names,
        default_pose=tuple(spec.default_pose.tolist()),
        terms=task.observations.actor,
        ncommand=goal.ncommand,
        naction=len(action.controlled_joints),
        command_step=goal.command_step,
        clock_step=_clock_step(task),
        history=task.observations.history,
        widths={name: sense.width(name) for name in others},
        chain=goal.chain,
    )


def _clock_step(task: Task) -> float:
    """Share of the clock's period that passes in one control step."""
    period = task.observations.clock_s
    return 0.0 if period is None else 1.0 / (period * task.rates.control_hz)


def with_servo(robot: Robot, servo: Servo) -> Robot:
    """The robot with the gains and the torque limit of a task."""
    joints = robot.spec.joints
    for name in ("kp", "kd", "torque"):
        value = getattr(servo, name)
        if value is None:
            continue
        values = value if isinstance(value, tuple) else (value,) * len(joints)
        if len(values) != len(joints):
            raise TrueupError(f"servo.{name}: {len(values)} numbers for {len(joints)} joints")
        pairs = zip(joints, values, strict=True)
        joints = tuple(msgspec.structs.replace(joint, **{name: each}) for joint, each in pairs)
    return replace(robot, spec=msgspec.structs.replace(robot.spec, joints=joints))


def _action_spec(task: Task, robot: Robot) -> ActionSpec:
    spec = robot.spec
    moved = task.actions.controlled_joints or spec.joint_names
    missing = [name for name in moved if name not in spec.joint_names]
    if missing:
        raise TrueupError(
            f"task {task.name!r} moves joint {missing[0]!r}, which robot {spec.name!r} does not have (its joints: "
            f"{', '.join(spec.joint_names)}): name this robot's joints in `actions.controlled_joints`"
        )
    scale = task.actions.scale
    scales = (scale,) * len(moved) if isinstance(scale, float) else scale
    if len(scales) != len(moved):
        raise TrueupError(f"task {task.name!r}: {len(scales)} action scales for {len(moved)} joints")
    return ActionSpec(
        joint_names=spec.joint_names,
        default_pose=tuple(spec.default_pose.tolist()),
        low=tuple(spec.position_low.tolist()),
        high=tuple(spec.position_high.tolist()),
        controlled_joints=moved,
        scale=scales,
        clip=task.actions.clip,
        relative=task.actions.relative,
        residual=task.actions.residual,
        cycle=None if task.actions.cycle is None else task.actions.cycle(robot, moved),
    )
