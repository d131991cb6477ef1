"""Measure: metrics, power, swing heights and motion at rest over the control steps of an assessment."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trueup.tasks.env import TaskEnv
from trueup.tasks.sensing.frame import Frame
from trueup.tasks.terms import rewards
from trueup.tasks.terms.gait import SwingPeaks

_AT_REST_S = 1.0


class Measure:
    """Is called with the frame of every control step; means are over all steps of all rows.

    Power is the sum of |torque x joint velocity|. A row is at rest when it was asked to stand still for over a second.
    """

    def __init__(self, env: TaskEnv) -> None:
        self._task = env.task
        self._steps = 0
        self._sums = dict.fromkeys((*env.task.metrics, "power"), 0.0)
        self._goal = env.goal
        self._at_rest = np.zeros(3)  # rows x steps; their speed; their joint speed
        self.swings = SwingPeaks(env.nenv, len(env.robot.spec.feet))

    def __call__(self, frame: Frame) -> None:
        """Count one control step."""
        self._steps += 1
        for name, function in self._task.metrics.items():
            self._sums[name] += float(function(frame).mean())
        self._sums["power"] += float(rewards.energy(frame).mean())
        if frame.foot_height.size:
            self.swings.push(frame.foot_height)
        course = self._goal.course()
        if course is not None:
            self._rest(frame, course)

    def restart(self, rows: NDArray[np.intp]) -> None:
        """Episodes of these rows ended."""
        self.swings.restart(rows)

    @property
    def metrics(self) -> dict[str, float]:
        """Means of the task's metrics."""
        return {name: self._sums[name] / self._steps for name in self._task.metrics}

    @property
    def power_w(self) -> float:
        return self._sums["power"] / self._steps

    @property
    def rest_speed(self) -> float | None:
        """Mean horizontal speed of the base at rest, m/s."""
        return float(self._at_rest[1] / self._at_rest[0]) if self._at_rest[0] else None

    @property
    def rest_joint_speed(self) -> float | None:
        """Mean |joint velocity| at rest, rad/s."""
        return float(self._at_rest[2] / self._at_rest[0]) if self._at_rest[0] else None

    def _rest(self, frame: Frame, course: NDArray[np.float32]) -> None:
        rows = ~course.any(axis=1) & (frame.command_age > _AT_REST_S)
        speed = np.hypot(frame.base_vel[rows, 0], frame.base_vel[rows, 1]).sum(dtype=np.float64)
        joints = np.abs(frame.joint_vel[rows]).mean(axis=1).sum(dtype=np.float64)
        self._at_rest += (np.count_nonzero(rows), speed, joints)
