"""Logs as a learned actuator's training sees them: laid end to end on one clock, with the noise of their encoders.

A window is a start row from which enough rows of the same log follow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from trueup.calibrate.data.holdout import by_gain
from trueup.calibrate.data.noise import position_noise
from trueup.calibrate.data.prepare import in_order
from trueup.data.log import Log
from trueup.data.resample import at_rate, common_rate
from trueup.robot.load import Robot
from trueup.world.replay import tracks as sim_tracks

FloatArray = NDArray[np.float64]
Rows = NDArray[np.intp]


@dataclass(frozen=True, kw_only=True)
class Tracks(sim_tracks.Tracks):
    """Logs end to end; noise (njoint,) of the encoders, rad."""

    noise: FloatArray


def make_tracks(robot: Robot, logs: Sequence[Log]) -> Tracks:
    """Lay logs end to end on one clock, cut where gains change for long."""
    ordered = [in_order(robot, log) for log in logs]
    rate = common_rate(ordered)
    parts = [part for log in ordered for part in by_gain(at_rate(log, rate))]
    laid = sim_tracks.lay_tracks(robot, parts)
    noise = np.sqrt(np.mean([position_noise(part["joint_pos"]) ** 2 for part in parts], axis=0))
    return Tracks(noise=noise, **{one.name: getattr(laid, one.name) for one in fields(laid)})
