"""Rollouts of seconds and of minutes: does a model stay bounded, or drift away?

The commands of a held-out log are played to its end and back, again and again. The first and the last passage have the
same commands: where they differ, the model drifts. The robot's own distance from its commands sets the bound.
"""

from __future__ import annotations

import math
from dataclasses import replace

import msgspec
import numpy as np
from numpy.typing import NDArray

from trueup.calibrate.actuator.model import Actuator
from trueup.calibrate.data.cutting import gain_pieces
from trueup.data.log import Log
from trueup.data.resample import rate_of
from trueup.robot.load import Robot
from trueup.world.batch import SimCfg
from trueup.world.replay.playback import Recorded, joint_seen, play, set_gains
from trueup.world.replay.replay import at_rate

FloatArray = NDArray[np.float64]
_TWICE, _SLACK_RAD = 2.0, 0.1
_MOST_DRIFT_RAD = 0.1


class LongRun(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A model over a long time.

    drift        root mean square difference between the last and the first passage over the same commands, rad
    reach        largest distance of a joint from its command, rad; reach_robot: that of the robot in the log
    bounded      finite, little drift, and not more than twice as far from its commands as the robot
    """

    seconds: float
    drift: float
    reach: float
    reach_robot: float
    bounded: bool


def long_run(robot: Robot, log: Log, actuator: Actuator, sim: SimCfg, seconds: float) -> LongRun:
    """Play a log's commands to and fro for `seconds`."""
    batch = actuator.simulation(robot, at_rate(robot, replace(sim, nsim=1), rate_of(log)))
    rate = 1.0 / batch.control_dt
    once = log["target_pos"][: max(2, round(0.25 * seconds * rate))]  # at least two passages to and fro
    period = np.concatenate([once, once[::-1]])
    turns = max(2, math.ceil(seconds * rate / len(period)))
    targets = np.tile(period, (turns, 1))
    recorded = Recorded(
        pos=log["joint_pos"][:1],
        vel=np.zeros((1, robot.spec.njoint)),
        past=np.zeros((1, 0, robot.spec.njoint)),
        target=targets[None],
        kp=_longest_gain(log, "target_kp"),
        kd=_longest_gain(log, "target_kd"),
    )
    set_gains(batch, recorded)
    actuator.apply(batch)
    moved = joint_seen(batch, play(batch, recorded, record=("qpos",))["qpos"])[0]
    robot_reach = float(np.abs(log["joint_pos"][: len(once)] - once).max())
    diverged = bool(batch.diverged.any())
    return judged_run(moved, targets, len(once), len(period), rate, robot_reach, diverged=diverged)


def _longest_gain(log: Log, name: str) -> FloatArray | None:
    """(1, njoint) the gain that was in force longest; None: the log does not say."""
    if name not in log:
        return None
    first, _ = max(gain_pieces(log), key=lambda piece: piece[1] - piece[0])
    return log[name][first : first + 1]


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
    """From positions and commands (T, njoint) of whole periods to a verdict; the first half second settles."""
    settle = min(once // 2, round(0.5 * rate))
    moved = np.where(np.isfinite(moved), np.clip(moved, -1e3, 1e3), 1e3)
    first, last = moved[settle:once], moved[len(moved) - period + settle : len(moved) - period + once]
    reach = float(np.abs(moved - targets).max())
    drift = float(np.sqrt(((last - first) ** 2).mean()))
    near = reach <= _TWICE * robot_reach + _SLACK_RAD and drift <= _MOST_DRIFT_RAD
    return LongRun(
        seconds=len(moved) / rate, drift=drift, reach=reach, reach_robot=robot_reach, bounded=near and not diverged
    )
