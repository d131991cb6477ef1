"""Trials of a model on its own: is it bounded over minutes, and does it predict a controller's behaviour?

Long runs: the commands of a held-out log are played forwards and backwards, repeatedly. The first and the last
pass have the same commands: where they differ, the model drifts. The robot's own distance from its commands sets the
bound.

Closed loop: an outer loop reads joint positions and corrects the command, u = r + a (r - q) + b int (r - q) dt, |u - r|
bounded, on the model and on the twin. The corrections depend on the actuators' response, so errors of the model feed
back, as they do under a policy. Twins only: such commands cannot be rehearsed before they move a robot.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import msgspec
import numpy as np

from trueup.calibrate.actuator.model import Actuator
from trueup.calibrate.data.cutting import gain_pieces
from trueup.core.arrays import FloatArray
from trueup.core.errors import TrueupError
from trueup.data.log import Log
from trueup.data.resample import rate_of
from trueup.hardware.driver import Command
from trueup.hardware.drivers.open import open_driver
from trueup.robot.excitation.excitation import ExcitationCfg, excite
from trueup.robot.excitation.plan import min_jerk
from trueup.robot.load import Robot
from trueup.world.batch import SimCfg
from trueup.world.replay.playback import RecordedStretch, begin, joint_seen, play, set_gains
from trueup.world.replay.replay import at_rate

Servo = Callable[[FloatArray], FloatArray]  # command -> position after a control step
_A, _B, MOST_RAD = 0.5, 2.0, 0.3  # of the outer loop: gains (1, 1/s) and most correction (rad)
_RATE_HZ = 50.0
_MOVE_S, _SETTLE_S = 1.5, 0.5
_TWICE, _SLACK_RAD = 2.0, 0.1
_MOST_DRIFT_RAD = 0.1


class LongRun(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A model over a long time.

    drift        root mean square difference between the last and the first pass over the same commands, rad
    reach        largest distance of a joint from its command, rad; reach_robot: that of the robot in the log
    bounded      finite, little drift, and not more than twice as far from its commands as the robot
    """

    seconds: float
    drift: float
    reach: float
    reach_robot: float
    bounded: bool


def long_run(robot: Robot, log: Log, actuator: Actuator, sim: SimCfg, seconds: float) -> LongRun:
    """Play a log's commands forwards and backwards for `seconds`."""
    batch = actuator.simulation(robot, at_rate(robot, replace(sim, nsim=1), rate_of(log)))
    rate = 1.0 / batch.control_dt
    once = log["target_pos"][: max(2, round(0.25 * seconds * rate))]  # at least two passes each way
    period = np.concatenate([once, once[::-1]])
    targets = np.tile(period, (max(2, math.ceil(seconds * rate / len(period))), 1))
    first, _ = max(gain_pieces(log), key=lambda piece: piece[1] - piece[0])  # the gains used longest
    recorded = RecordedStretch(
        pos=log["joint_pos"][:1],
        vel=np.zeros((1, robot.spec.njoint)),
        past=np.zeros((1, 0, robot.spec.njoint)),
        target=targets[None],
        kp=log["target_kp"][first : first + 1] if "target_kp" in log else None,
        kd=log["target_kd"][first : first + 1] if "target_kd" in log else None,
    )
    set_gains(batch, recorded)
    actuator.apply(batch)
    moved = joint_seen(batch, play(batch, recorded, record=("qpos",))["qpos"])[0]
    robot_reach = float(np.abs(log["joint_pos"][: len(once)] - once).max())
    diverged = bool(batch.diverged.any())
    return judged_run(moved, targets, len(once), len(period), rate, robot_reach, diverged=diverged)


def judged_run(
    moved: FloatArray,
    targets: FloatArray,
    once: int,
    period: int,
    rate: float,
    robot_reach: float,
    *,
    diverged: bool = False,
) -> LongRun:
    """Evaluate positions and commands (T, njoint) of whole periods, without the first half second."""
    settle = min(once // 2, round(0.5 * rate))
    moved = np.where(np.isfinite(moved), np.clip(moved, -1e3, 1e3), 1e3)
    first, last = moved[settle:once], moved[len(moved) - period + settle : len(moved) - period + once]
    reach = float(np.abs(moved - targets).max())
    drift = float(np.sqrt(((last - first) ** 2).mean()))
    near = reach <= _TWICE * robot_reach + _SLACK_RAD and drift <= _MOST_DRIFT_RAD
    return LongRun(
        seconds=len(moved) / rate, drift=drift, reach=reach, reach_robot=robot_reach, bounded=near and not diverged
    )


class Tracked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The controller on model and twin: root mean squares, rad, mean over joints.

    difference   of model minus twin; model, twin: tracking error on each
    """

    difference: float
    model: float
    twin: float


class TwinRun(NamedTuple):
    """The twin's motion under the controller, (T, njoint) each, and its start."""

    reference: FloatArray
    joint_pos: FloatArray
    start_pos: FloatArray


def run_on_twin(robot: Robot, driver: str, seconds: float = 8.0) -> TwinRun:
    """Run the controller on a twin in lock-step, on a motion of no fit."""
    spec = robot.spec
    if not driver.startswith("twin:"):
        raise TrueupError(
            f"the closed-loop check moves the robot with commands that cannot be rehearsed: it runs on twins "
            f"(twin:PRESET?seed=N) only, found {driver!r}"
        )
    motion = ExcitationCfg(kind="random_holds", seconds=seconds, rate_hz=200.0, seed=4242)
    reference = excite(spec, motion).target_pos[:: round(200.0 / _RATE_HZ)]
    link, zero = open_driver(driver, robot, command_hz=_RATE_HZ, lockstep=True), np.zeros(spec.njoint)

    def servo(command: FloatArray) -> FloatArray:
        inside = np.clip(command, spec.position_low, spec.position_high)
        link.write(Command(target_pos=inside, target_vel=zero, kp=spec.kp, kd=spec.kd, torque=zero))
        return link.read().joint_pos

    link.connect()
    try:
        begin = link.read().joint_pos
        for t in range(round((_MOVE_S + _SETTLE_S) * _RATE_HZ)):  # slow move to the reference's start
            servo(begin + (reference[0] - begin) * min_jerk(t / (_MOVE_S * _RATE_HZ)))
        start = link.read().joint_pos
        return TwinRun(reference, track(reference, start, servo), start)
    finally:
        link.close()


def predict(robot: Robot, actuator: Actuator, sim: SimCfg, recorded: TwinRun) -> Tracked:
    """Run the same controller on the model and compare."""
    batch = actuator.simulation(robot, at_rate(robot, replace(sim, nsim=1), _RATE_HZ))
    actuator.apply(batch)
    none, still = np.zeros((1, 0, robot.spec.njoint)), np.zeros((1, robot.spec.njoint))
    begin(batch, RecordedStretch(pos=recorded.start_pos[None], vel=still, past=none, target=none))
    for _ in range(round(_SETTLE_S * _RATE_HZ)):
        batch.step(recorded.reference[0])

    def servo(command: FloatArray) -> FloatArray:
        batch.step(np.clip(command, robot.spec.position_low, robot.spec.position_high))
        return batch.joint_pos[0] + batch.encoder_bias[0]

    moved = track(recorded.reference, recorded.start_pos, servo)
    return Tracked(
        difference=_rms(moved - recorded.joint_pos),
        model=_rms(moved - recorded.reference),
        twin=_rms(recorded.joint_pos - recorded.reference),
    )


def track(reference: FloatArray, start: FloatArray, servo: Servo) -> FloatArray:
    """Run the outer loop; returns the position after every command, (T, njoint)."""
    position, total = start, np.zeros_like(start)
    moved = np.empty_like(reference)
    for t, wanted in enumerate(reference):
        error = wanted - position
        total = np.clip(total + _B * error / _RATE_HZ, -MOST_RAD, MOST_RAD)
        position = servo(wanted + np.clip(_A * error + total, -MOST_RAD, MOST_RAD))
        moved[t] = position
    return moved


def _rms(error: FloatArray) -> float:
    bounded = np.where(np.isfinite(error), np.clip(error, -10.0, 10.0), 10.0)
    return float(np.sqrt((bounded**2).mean(axis=0)).mean())
