"""Disturbances within a trial, row by row: pushes, motors that warm up, steering."""

from __future__ import annotations

import numpy as np

from trueup.core.arrays import FloatArray
from trueup.core.rows import RowRandom
from trueup.evaluate.scenarios.scenario import Heat, Shove
from trueup.motion.rotations import yaw_of
from trueup.tasks.goals.goal import Goal
from trueup.world.engines.simulation import Simulation

_STEER, _MOST_TURN = 1.0, 0.5  # 1/s, rad/s
_HEAT_EVERY = 5  # control steps


class Shover:
    """Pushes the trunk; call `advance` before every control step."""

    def __init__(self, cfg: Shove, sim: Simulation) -> None:
        self._cfg, self._sim, self._dt = cfg, sim, sim.control_dt
        self._random = RowRandom(sim.cfg.seed, "shove", sim.nsim, sim.cfg.first_row)
        self._hold = max(1, round(cfg.seconds / self._dt))
        self._force = np.zeros((sim.nsim, 3))
        self._wait = self._pauses(np.arange(sim.nsim))

    def advance(self) -> None:
        """Begin and end pushes."""
        self._wait -= 1
        begin, end = np.flatnonzero(self._wait == 0), np.flatnonzero(self._wait == -self._hold)
        if len(begin):
            pose = self._sim.motion.of(None).base_pose
            assert pose is not None
            angle = yaw_of(pose[begin, 3:]) + self._turned(begin)
            self._force[begin, 0], self._force[begin, 1] = np.cos(angle), np.sin(angle)
            self._force[begin] *= self._cfg.newton
        if len(end):
            self._force[end] = 0.0
            self._wait[end] = self._pauses(end)
        if len(begin) or len(end):
            self._sim.base_force[:] = self._force

    def _turned(self, rows: np.ndarray[tuple[int], np.dtype[np.intp]]) -> FloatArray:
        """Angle of each push against the heading: left or right, ahead or back, or any."""
        unit = self._random.uniform(1, rows)[:, 0]
        if self._cfg.direction == "any":
            return 2.0 * np.pi * unit
        side = np.where(unit < 0.5, 0.0, np.pi)
        return side + (0.5 * np.pi if self._cfg.direction == "sideways" else 0.0)

    def _pauses(self, rows: np.ndarray[tuple[int], np.dtype[np.intp]]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        low, high = self._cfg.every_s
        seconds = low + (high - low) * self._random.uniform(1, rows)[:, 0]
        return np.maximum(1, np.round(seconds / self._dt)).astype(np.int64)


class Heater:
    """Lets torque limits follow the heat of the motors (`Heat`); call `advance` after every control step.

    heat  (nrow, njoint), 1: the continuous limit
    """

    def __init__(self, cfg: Heat, sim: Simulation) -> None:
        self._cfg, self._sim, self._steps = cfg, sim, 0
        self._limit = sim.params.get("torque_limit")
        low, high = cfg.start if isinstance(cfg.start, tuple) else (cfg.start, cfg.start)
        random = RowRandom(sim.cfg.seed, "heat", sim.nsim, sim.cfg.first_row)
        self.heat = np.repeat(low + (high - low) * random.uniform(1), self._limit.shape[1], axis=1)
        self._write()

    def advance(self) -> None:
        """Integrate the heat over one control step."""
        loss = np.square(self._sim.joint_torque / (self._cfg.continuous * self._limit))
        self.heat += (loss - self.heat) * (self._sim.control_dt / self._cfg.time_s)
        self._steps += 1
        if self._steps % _HEAT_EVERY == 0:
            self._write()

    def _write(self) -> None:
        share = np.clip(1.0 - self._cfg.derate * (self.heat - 1.0), self._cfg.floor, 1.0)
        self._sim.params.set("torque_limit", share * self._limit)


class Steerer:
    """Sets the turn command that brings robots back to their start heading."""

    def __init__(self, goal: Goal, sim: Simulation) -> None:
        self._goal, self._sim = goal, sim
        self._most = min(_MOST_TURN, goal.sliders[2].high)
        self._start = self._yaw()

    def advance(self) -> None:
        """Update the turn command."""
        away = self._start - self._yaw()
        turn = _STEER * np.arctan2(np.sin(away), np.cos(away))
        self._goal.values[:, 2] = np.clip(turn, -self._most, self._most)

    def _yaw(self) -> FloatArray:
        pose = self._sim.motion.of(None).base_pose
        assert pose is not None
        return yaw_of(pose[:, 3:])
