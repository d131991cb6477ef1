"""Targets that a humanoid's policy is recorded on: hidden twins and the second engine, one evaluation loop for all.

A target is a driver in lock-step at 200 Hz. What it measures goes into the log: encoders, IMU, commands; beside it the
true pose of the base, as motion capture would give it, for scores and for the runs `with odometry`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from trueup.data.log import Log
from trueup.hardware.driver import Command, RobotState
from trueup.hardware.twin_cfg import TwinCfg
from trueup.motion.rotations import conjugate, rotate
from trueup.policy.action import JointOrder
from trueup.policy.mlp import PolicySpec
from trueup.robot.load import Robot, load_robot
from trueup.tasks.build import EnvCfg, build
from trueup.tasks.evaluation.evaluate import evaluate
from trueup.tasks.evaluation.worlds import DriverWorld
from trueup.tasks.goals.tracking import Tracking
from trueup.tasks.sensing.reference import follower
from trueup.tasks.task import Task
from trueup.twin.firmware import Twin
from trueup.world.batch import SimCfg
from trueup.world.engines.choose import make_sim

HZ = 200.0
FALLEN = -0.5  # z of gravity in the base frame: beyond 60 degrees
_BEFORE_FALL_S = 0.7  # that are cut off: the robot is falling
_NOISE_S = 0.2  # time constant of exploration
FloatArray = NDArray[np.float64]
Act = Callable[[NDArray[np.float32]], NDArray[np.floating]]


class _FallenError(Exception):
    """Ends an episode."""


@dataclass(frozen=True, kw_only=True)
class Target:
    """`preset` of a twin and its seed, or `sapien` with a delay (s) and dry friction (share of the torque limit).

    noise  of the actions in most recorded episodes
    """

    preset: str
    seed: int = 0
    delay_s: float = 0.0
    friction_share: float = 0.0
    noise: float = 0.1

    @property
    def name(self) -> str:
        more = f"-{1e3 * self.delay_s:.0f}ms-{100 * self.friction_share:.0f}%" if self.delay_s else ""
        return f"{self.preset}{more}" if self.preset == "sapien" else f"{self.preset}-{self.seed}"


class TwinDriver:
    """A twin without its process; `base` is its true pose and velocity."""

    realtime = False

    def __init__(self, robot: Robot, target: Target) -> None:
        self.twin = Twin(robot, TwinCfg(preset=target.preset, seed=target.seed, base="free", command_hz=HZ))
        self.joint_names, self.rows = robot.spec.joint_names, Rows()

    def read(self) -> RobotState:
        self._state = self.twin.state()
        return self._state

    def write(self, command: Command) -> Command:
        parts = (command.target_pos, command.target_vel, command.kp, command.kd, command.torque)
        data = self.twin.plant.data
        self.rows.add(self._state, command, data.qpos[:7], data.qvel[:6])
        self.twin.command(np.stack(parts))
        self.twin.period()
        return command


class SapienDriver:
    """The second engine as a robot: readings with the noise of the twins."""

    realtime = False

    def __init__(self, robot: Robot, target: Target) -> None:
        cfg = SimCfg(control_hz=HZ, physics_hz=HZ, seed=target.seed)
        self.sim = make_sim("sapien", robot, cfg)
        self.sim.params.set("delay", np.array(target.delay_s))
        if target.friction_share:
            self.sim.params.set("friction", target.friction_share * robot.spec.torque_limit)
        self.joint_names, self.rows = robot.spec.joint_names, Rows()
        self._random, self._steps, self._spec = np.random.default_rng(target.seed), 0, robot.spec
        self._gains: FloatArray = np.zeros(0)

    def read(self) -> RobotState:
        noise, n = self._random.normal, len(self.joint_names)
        pos, vel = self.sim.joint_pos[0] + noise(0, 5e-4, n), self.sim.joint_vel[0] + noise(0, 0.02, n)
        self._state = RobotState(
            sequence=self._steps,
            time_s=self._steps / HZ,
            joint_pos=pos,
            joint_vel=vel,
            joint_torque=self.sim.joint_torque[0],
            joint_temperature=np.full(n, 25.0),
            voltage=24.0,
            imu_quat=self.sim.motion.of().base_pose[0, 3:],
            imu_gyro=self.sim.motion.of().base_vel[0, 3:] + noise(0, 0.005, 3),
            imu_acc=np.zeros(3),
        )
        return self._state

    def write(self, command: Command) -> Command:
        motion = self.sim.motion.of()
        self.rows.add(self._state, command, motion.base_pose[0], motion.base_vel[0])
        gains = np.concatenate([command.kp, command.kd])
        if not np.array_equal(gains, self._gains):
            self.sim.params.set("kp", command.kp)
            self.sim.params.set("kd", command.kd)
            self._gains = gains
        self.sim.step(command.target_pos)
        self._steps += 1
        return command


class Rows:
    """What a driver measured and sent, row by row."""

    def __init__(self) -> None:
        self.kept: list[dict[str, FloatArray]] = []

    def add(self, state: RobotState, command: Command, pose: FloatArray, velocity: FloatArray) -> None:
        self.kept.append(
            {
                "joint_pos": state.joint_pos,
                "joint_vel": state.joint_vel,
                "target_pos": command.target_pos.copy(),
                "target_kp": command.kp,
                "target_kd": command.kd,
                "imu_quat": state.imu_quat,
                "imu_gyro": state.imu_gyro,
                "base_pos": pose[:3].copy(),
                "base_quat": pose[3:7].copy(),
                "base_vel": velocity[:3].copy(),
            }
        )

    def log(self, names: tuple[str, ...], first: int, last: int) -> Log:
        signals = {name: np.array([row[name] for row in self.kept[first:last]]) for name in self.kept[0]}
        return Log(joint_names=names, time=np.arange(last - first) / HZ, signals=signals)


@dataclass(frozen=True, kw_only=True)
class Episode:
    """One run of a policy on a target: its log until the end or the fall, and how far its bodies were.

    global_mm, mpjpe_mm  mean distance of the tracked bodies from the motion, in the world and from the root
    """

    log: Log
    fell_s: float | None
    global_mm: float
    mpjpe_mm: float

    @property
    def seconds(self) -> float:
        return float(self.log.time[-1])


def without_base(log: Log) -> Log:
    """Encoders and IMU only."""
    return replace(log, signals={k: v for k, v in log.signals.items() if not k.startswith("base_")})


def open_target(robot: Robot, target: Target) -> TwinDriver | SapienDriver:
    return SapienDriver(robot, target) if target.preset == "sapien" else TwinDriver(robot, target)


def roll(
    target: Target, act: Act, spec: PolicySpec, task: Task, episode: int, *, noise: float = 0.0, seconds: float = 0.0
) -> Episode:
    """Let a policy follow its motion on a target from its standing pose; `noise` on actions, correlated over 0.2 s."""
    robot = load_robot(spec.robot)
    driver = open_target(robot, target)
    goal = build(replace(task, randomize={}, pushes=None), EnvCfg(nenv=1, threads=1)).goal
    assert isinstance(goal, Tracking)
    order = JointOrder(spec.observation.joint_names, robot.spec.joint_names)
    kp, kd = (order.to_robot(np.array(part)) for part in (spec.kp, spec.kd))
    world = DriverWorld(
        robot.spec, [driver], kp, kd, 1.0 / spec.control_hz, follow=follower(goal, order), writes=round(HZ / 50)
    )
    goal.reset(np.arange(1))
    # a policy of our own begins in the reference: nothing balances the robot until then
    own = spec.action.residual
    first = goal.reference.held if own else goal.reference.joint_pos
    _ramp(world, first[goal.at[0]], (0.2 if own else 0.6) + 0.02 * (episode % 10))
    begun = len(driver.rows.kept)
    random, drift = np.random.default_rng([target.seed, episode]), np.zeros(len(spec.action.controlled_joints))
    share = np.exp(-1.0 / (spec.control_hz * _NOISE_S))

    def noisy(obs: NDArray[np.float32]) -> NDArray[np.float32]:
        drift[:] = share * drift + np.sqrt(1 - share**2) * random.normal(0.0, noise, len(drift))
        return np.asarray(act(obs) + drift, np.float32)

    def watch(frame: object, actor: object, standing: object) -> None:
        if world.reading().gravity[0, 2] > FALLEN:
            raise _FallenError

    seconds = seconds or task.rates.episode_s - 0.04
    bare = replace(task, terminations={}, metrics={})
    stood = False
    with suppress(_FallenError):
        evaluate(world, noisy, spec, bare, goal, seconds, watch=watch, begun=True)
        stood = True
    last = len(driver.rows.kept)
    fell = None if stood else (last - begun) / HZ
    stop = last if stood else max(last - round(_BEFORE_FALL_S * HZ), begun + 2)
    log = driver.rows.log(robot.spec.joint_names, begun, stop)
    return Episode(log=log, fell_s=fell, **_errors(goal, log, spec.control_hz))


def _ramp(world: DriverWorld, pose: FloatArray, seconds: float) -> None:
    """From the pose that the robot stands in to the motion's first, as an operator does."""
    first = world.reading().joint_pos[0]
    count = round(seconds / world.control_dt)
    for k in range(1, count + 1):
        world.step((first + min(1.0, 1.5 * k / count) * (pose - first))[None])


def _errors(goal: Tracking, log: Log, control_hz: float) -> dict[str, float]:
    """Distances of the tracked bodies from the motion, which begins where the robot does."""
    every = round(HZ / control_hz)
    rows = np.arange(every, len(log), every)
    at = np.minimum(goal.reference.first[0] + np.arange(1, len(rows) + 1), goal.reference.last[0])
    quat = log["base_quat"][rows]
    placed = goal.tree.place(log["base_pos"][rows], quat, log["joint_pos"][rows])
    own = placed.pos[:, goal.tracked].astype(float)
    asked = goal.reference.pos[at].astype(float)
    shift = (own[:1, :1] - asked[:1, :1]) * (1.0, 1.0, 0.0)
    world = np.linalg.norm(own - asked - shift, axis=2)
    turn, wanted = (conjugate(np.asarray(q, float))[:, None] for q in (quat, goal.reference.root_quat[at]))
    relative = rotate(turn, own - own[:, :1]) - rotate(wanted, asked - asked[:, :1])
    local = np.linalg.norm(relative, axis=2)
    return {"global_mm": float(1e3 * world.mean()), "mpjpe_mm": float(1e3 * local.mean())}


def save(log: Log, path: Path) -> None:
    from trueup.data.files import write_log_file

    path.parent.mkdir(parents=True, exist_ok=True)
    write_log_file(log, path)
