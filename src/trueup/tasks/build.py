"""Build: from a task to its parts: simulation, specs of observation and action, commands, senses."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import msgspec
import mujoco

from trueup.core.errors import TrueupError
from trueup.core.rows import RowRandom
from trueup.models.actuator_file import load_actuator
from trueup.policy.action import ActionSpec
from trueup.policy.chain import Chain
from trueup.policy.observation import ObservationSpec
from trueup.robot.load import Robot, load_robot
from trueup.tasks.goals.commands import (
    Commands,
    NoCommand,
    PoseCommand,
    PoseCommands,
    VelocityCommand,
    VelocityCommands,
)
from trueup.tasks.sense import Sense, add_sensors
from trueup.tasks.task import Servo, Task
from trueup.tasks.terms.arm import arm_chain, reachable_poses
from trueup.tasks.terrain.ground import Ground
from trueup.world.actuators.net_actuator import NetActuator, with_net
from trueup.world.batch import BatchSim, SimCfg
from trueup.world.fitted.calibration import SimParams
from trueup.world.fitted.posterior import sim_for_fit
from trueup.world.terrain import Terrain


class Parts(NamedTuple):
    """What an environment is made of."""

    sim: BatchSim
    observation: ObservationSpec
    action: ActionSpec
    commands: Commands
    sense: Sense


def build(
    task: Task,
    nenv: int,
    threads: int,
    seed: int,
    first_row: int,
    learned: Path | None = None,
    fit: SimParams | None = None,
) -> Parts:
    """Make the parts of a task; `learned` is the folder of an actuator net, `fit` has parameters to be set later."""
    robot = with_servo(load_robot(task.robot), task.servo)
    cfg = SimCfg(
        nsim=nenv,
        threads=threads,
        seed=seed,
        first_row=first_row,
        control_hz=task.rates.control_hz,
        physics_hz=task.rates.physics_hz,
        sensors=task.sensors,
    )
    if fit is not None:
        cfg = sim_for_fit(cfg, fit)

    terrain = None if task.terrain is None else Terrain(task.terrain, seed)

    def prepare(spec: mujoco.MjSpec) -> None:
        if terrain is not None:
            terrain.add_to(spec)
        add_sensors(spec, robot)

    if learned is None:
        sim = BatchSim(robot, cfg, prepare=prepare)
    else:
        net = load_actuator(learned)
        actuator = NetActuator(net)
        sim = BatchSim(robot, with_net(cfg, net), actuator, prepare)
        actuator.prepare(sim)
    action = _action_spec(task, robot) if task.layout is None else task.layout.action
    random = RowRandom(seed, "command", nenv, first_row)
    chain: Chain | None = None
    commands: Commands
    match task.commands:
        case NoCommand():
            commands = Commands(nenv)
        case VelocityCommand() as velocity:
            commands = VelocityCommands(velocity, nenv, sim.control_dt, random)
        case PoseCommand() as pose:
            chain = arm_chain(sim.model, robot)
            table = reachable_poses(chain, robot, action.moved, pose, seed)
            commands = PoseCommands(pose, table, nenv, sim.control_dt, random)
    ground = Ground(terrain)
    observation = _observation_spec(task, robot, action, sim.control_dt, commands, ground, chain)
    sense = Sense(sim, ground, len(action.moved), commands.ncommand, chain)
    return Parts(sim, observation, action, commands, sense)


def _observation_spec(
    task: Task,
    robot: Robot,
    action: ActionSpec,
    control_dt: float,
    commands: Commands,
    ground: Ground,
    chain: Chain | None,
) -> ObservationSpec:
    command_step = _command_step(task, control_dt)
    if task.layout is not None:
        return msgspec.structs.replace(task.layout.observation, command_step=command_step)
    return ObservationSpec(
        joint_names=robot.spec.joint_names,
        default_pose=tuple(robot.spec.default_pose.tolist()),
        terms=task.observations.actor,
        ncommand=commands.ncommand,
        naction=len(action.moved),
        command_step=command_step,
        history=task.observations.history,
        nheight=ground.grid[0] * ground.grid[1],
        chain=chain,
    )


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
        joints = tuple(
            msgspec.structs.replace(joint, **{name: each}) for joint, each in zip(joints, values, strict=True)
        )
    if joints is robot.spec.joints:
        return robot
    return replace(robot, spec=msgspec.structs.replace(robot.spec, joints=joints))


def _command_step(task: Task, dt: float) -> tuple[float, ...]:
    commands = task.commands
    if not isinstance(commands, VelocityCommand) or commands.rate is None:
        return ()
    return tuple(rate * dt for rate in commands.rate)


def _action_spec(task: Task, robot: Robot) -> ActionSpec:
    spec = robot.spec
    moved = task.actions.moved or spec.joint_names
    scale = task.actions.scale
    scales = (scale,) * len(moved) if isinstance(scale, float) else scale
    if len(scales) != len(moved):
        raise TrueupError(f"task {task.name!r}: {len(scales)} action scales for {len(moved)} joints")
    return ActionSpec(
        joint_names=spec.joint_names,
        default_pose=tuple(spec.default_pose.tolist()),
        low=tuple(spec.position_low.tolist()),
        high=tuple(spec.position_high.tolist()),
        moved=moved,
        scale=scales,
        clip=task.actions.clip,
        relative=task.actions.relative,
    )
