"""Meter: metrics of trials, accumulated row by row while the policy acts, until a row falls.

Names and units of the numbers of a trial are in `METRICS`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueup.core.arrays import FloatArray
from trueup.evaluate.trials.world import TrialWorld
from trueup.motion.rotations import yaw_of
from trueup.tasks.evaluation.measure import SwingPeaks
from trueup.tasks.sensing.frame import Float32, Frame
from trueup.tasks.task import Task, error_metric
from trueup.tasks.terms import rewards

GRAVITY = 9.81
CONTINUOUS = 0.35  # of the torque limit: assumed continuous torque of a motor whose spec has none
_SETTLE_S = 1.0  # after the start
_GIVEN_S = {"settled_distance": 1.5, "object_distance": 4.0}  # after a goal was given, by its error: to get there
_NEAR_LIMIT, _SLOW = 0.95, 0.05
METRICS = {  # name -> what, unit; smaller is better unless it says otherwise
    "error": ("error of what was asked", ""),
    "turn_error": ("error of the turning rate", "rad/s"),
    "distance": ("way made good, of what was asked", "1"),
    "seconds": ("time until a fall", "s"),
    "power": ("mechanical power, sum of |torque x speed|", "W"),
    "energy": ("mechanical energy", "J"),
    "cost_of_transport": ("power / (m g v)", "1"),
    "slip": ("speed of feet on the ground", "m/s"),
    "torque": ("rms torque of the hardest-working joint, of its limit", "1"),
    "at_limit": ("share of torques at the limit", "1"),
    "thermal": ("mean square torque against the continuous one, hottest joint", "1"),
    "clearance": ("highest point of a swing, median", "m"),
    "jerkiness": ("rms acceleration of joint targets", "rad/s^2"),
    "joint_margin": ("least distance to a joint stop, of the range", "1"),
    "outside": ("observations outside the training range", "1"),
    "uneven": ("longest minus shortest stance of the feet", "1"),
    "lean": ("side of a fall: 1 left, -1 right", "1"),
}


class Meter:
    """Called with every control step of trials; `table` gives the metrics of each, (nrow,) by name."""

    def __init__(self, world: TrialWorld, task: Task, ranges: tuple[FloatArray, FloatArray] | None = None) -> None:
        """`ranges`: low and high (nactor,) of the observations in training, or None."""
        self._world, self._ranges, self._dt = world, ranges, world.control_dt
        nrow, njoint, nfoot = world.nrow, world.robot.njoint, len(world.robot.feet) if world.sim.free_base else 0
        self._error = error_metric(task) or ""
        self._metric = task.metrics.get(self._error)
        self._given_s = _GIVEN_S.get(self._error)
        self._follows = world.goal.course() is not None
        names = ("steps", "counted", "error", "turn_error", "power", "speed", "slip", "stance", "outside", "at_limit")
        self._sum = {name: np.zeros(nrow) for name in names}
        self._square, self._jerk = np.zeros((nrow, njoint)), np.zeros(nrow)
        self._margin, self._lean = np.full(nrow, np.inf), np.zeros(nrow)
        self._contact = np.zeros((nrow, nfoot))
        self._swings = SwingPeaks(nrow, nfoot)
        self._up = np.ones(nrow, bool)
        self._steps = 0
        pose = world.base()
        self._first = None if pose is None else pose.copy()
        self._last = None if pose is None else pose[:, :2].copy()
        self._limit = world.robot.torque_limit
        low, high = world.robot.position_low, world.robot.position_high
        self._low, self._range = low, high - low
        self._targets: list[FloatArray] = []
        self._asked = np.zeros((nrow, 2))

    def __call__(self, frame: Frame, actor: Float32, standing: NDArray[np.bool_]) -> None:
        """Count one control step."""
        world, up = self._world, standing & ~self._world.diverged
        self._fell(frame, self._up & ~up)
        self._up, add = up, self._add
        self._steps += 1
        add("steps", up)
        self._count_error(frame, up)
        add("power", np.where(up, rewards.energy(frame), 0.0))
        share = np.abs(frame.joint_torque) / world.torque_limit
        add("at_limit", np.where(up, (share > _NEAR_LIMIT).mean(axis=1), 0.0))
        self._square += np.square(frame.joint_torque, dtype=np.float64) * up[:, None]
        room = np.minimum(frame.joint_pos - self._low, self._low + self._range - frame.joint_pos) / self._range
        self._margin = np.where(up, np.minimum(self._margin, room.min(axis=1)), self._margin)
        self._jerk += np.where(up, self._second_difference(), 0.0)
        if self._ranges is not None:
            low, high = self._ranges
            add("outside", np.where(up, ((actor < low) | (actor > high)).mean(axis=1), 0.0))
        if self._first is not None:
            self._walk(frame, up)

    def table(self) -> dict[str, FloatArray]:
        """Numbers of each trial; NaN where there is none."""
        total, steps = self._sum, np.maximum(self._sum["steps"], 1.0)
        counted = np.where(total["counted"] > 0, total["counted"], np.nan)
        power, time = total["power"] / steps, total["steps"] * self._dt
        out = {
            "error": total["error"] / counted,
            "seconds": time,
            "power": power,
            "energy": total["power"] * self._dt,
            "torque": np.sqrt(self._square / steps[:, None] / self._limit**2).max(axis=1),
            "at_limit": total["at_limit"] / steps,
            "thermal": (self._square / steps[:, None] / (CONTINUOUS * self._limit) ** 2).max(axis=1),
            "jerkiness": np.sqrt(self._jerk / np.maximum(steps - 2.0, 1.0)),
            "joint_margin": self._margin,
        }
        if self._ranges is not None:
            out["outside"] = total["outside"] / steps
        return out if self._first is None else out | self._walked(power, steps, counted)

    # --- of one step ---
    def _add(self, name: str, values: NDArray[Any]) -> None:
        self._sum[name] += values

    def _count_error(self, frame: Frame, up: NDArray[np.bool_]) -> None:
        if self._metric is None:
            return
        # of a tool the task's own metric mixes rows
        error = rewards.tool_distance(frame) if self._error == "settled_distance" else self._metric(frame)
        counted = np.full(len(up), self._steps * self._dt > _SETTLE_S)
        if self._given_s is not None:
            counted = frame.command_age > self._given_s
        self._add("counted", up & counted)
        self._add("error", np.where(up & counted, error, 0.0))
        if self._follows:
            self._add("turn_error", np.where(up & counted, rewards.turn_error(frame), 0.0))

    def _second_difference(self) -> FloatArray:
        """Mean square over the joints of the targets' acceleration, (nrow,) (rad/s^2)^2."""
        self._targets = [*self._targets[-2:], self._world.target]
        if len(self._targets) < 3:
            return np.zeros(self._world.nrow)
        before, now, after = self._targets
        return np.square((after - 2.0 * now + before) / self._dt**2).mean(axis=1)

    def _walk(self, frame: Frame, up: NDArray[np.bool_]) -> None:
        pose = self._world.base()
        assert pose is not None
        assert self._last is not None
        self._last[up] = pose[up, :2]
        course = self._world.goal.course()
        if course is not None:
            self._asked += np.where(up[:, None], course[:, :2] * self._dt, 0.0)
        speed = np.hypot(frame.base_vel[:, 0], frame.base_vel[:, 1])
        self._add("speed", np.where(up, speed, 0.0))
        if not self._contact.shape[1]:
            return
        touching = frame.foot_contact & up[:, None]
        sliding = np.hypot(frame.foot_vel[:, :, 0], frame.foot_vel[:, :, 1])
        self._add("slip", (sliding * touching).sum(axis=1))
        self._add("stance", touching.sum(axis=1))
        self._contact += touching
        self._swings.push(np.where(up[:, None], frame.foot_height, np.float32(0.0)))

    def _fell(self, frame: Frame, fell: NDArray[np.bool_]) -> None:
        if fell.any():
            self._swings.restart(np.flatnonzero(fell))
            if self._first is not None:
                self._lean[fell] = np.sign(frame.gravity[fell, 1])  # gravity points to the side it fell to

    # --- of whole trials ---
    def _walked(self, power: FloatArray, steps: FloatArray, counted: FloatArray) -> dict[str, FloatArray]:
        total, nrow = self._sum, self._world.nrow
        speed = total["speed"] / steps
        out = {
            "turn_error": total["turn_error"] / counted,
            "distance": self._made_good(),
            "cost_of_transport": np.where(
                speed > _SLOW, power / (self._world.mass * GRAVITY * np.maximum(speed, _SLOW)), np.nan
            ),
            "lean": self._lean,
        }
        if self._contact.shape[1]:
            peaks, rows = np.array(self._swings.peaks), np.array(self._swings.rows, np.intp)
            out["clearance"] = np.array([_median(peaks[rows == k]) for k in range(nrow)])
            out["slip"] = total["slip"] / np.maximum(total["stance"], 1.0)
            out["uneven"] = np.ptp(self._contact / steps[:, None], axis=1)
        return out

    def _made_good(self) -> FloatArray:
        """Distance along the commanded course, as a share of the whole; NaN without a constant command."""
        assert self._first is not None
        assert self._last is not None
        command = self._world.command
        if command is None or not np.hypot(command[0, 0], command[0, 1]) or (command[0, 2] and not self._steered):
            return np.full(self._world.nrow, np.nan)
        yaw = yaw_of(self._first[:, 3:]) + np.arctan2(command[:, 1], command[:, 0])
        way = ((self._last - self._first[:, :2]) * np.stack([np.cos(yaw), np.sin(yaw)], axis=1)).sum(axis=1)
        whole: FloatArray = np.hypot(command[:, 0], command[:, 1]) * self._steps * self._dt
        return way / whole

    @property
    def _steered(self) -> bool:
        return self._world.scenario.heading


def _median(values: FloatArray) -> float:
    return float(np.median(values)) if len(values) else np.nan
