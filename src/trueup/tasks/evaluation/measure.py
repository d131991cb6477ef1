"""Measure: metrics, power, swing heights and motion at rest over the control steps of an assessment."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trueup.tasks.env import TaskEnv
from trueup.tasks.sensing.frame import Float32, Frame
from trueup.tasks.terms import rewards

_AT_REST_S = 1.0
_LIFTED_M, _SHORTEST = 0.005, 3  # control steps


class Measure:
    """Is called with the frame of every control step; means are over all steps of all rows.

    means     the task's metrics, and `power`: the sum of |torque x joint velocity|, W
    at_rest   mean horizontal speed of the base (m/s) and mean |joint velocity| (rad/s) of rows that were asked to stand
              still for over a second; None where there were none
    """

    def __init__(self, env: TaskEnv) -> None:
        self._goal, self._functions, self._steps = env.goal, {**env.task.metrics, "power": rewards.energy}, 0
        self._sums = dict.fromkeys(self._functions, 0.0)
        self._row_sums = {name: np.zeros(env.nenv) for name in self._functions}
        self._rest_sums = np.zeros(3)  # rows x steps; their speed; their joint speed
        self.swings = SwingPeaks(env.nenv, len(env.robot.spec.feet))

    def __call__(self, frame: Frame) -> None:
        """Count one control step."""
        self._steps += 1
        for name, function in self._functions.items():
            values = function(frame)
            self._sums[name] += float(values.mean())
            self._row_sums[name] += values
        if frame.foot_height.size:
            self.swings.push(frame.foot_height)
        course = self._goal.course()
        if course is not None:
            rows = ~course.any(axis=1) & (frame.command_age > _AT_REST_S)
            speed = np.hypot(frame.base_vel[rows, 0], frame.base_vel[rows, 1]).sum(dtype=np.float64)
            joints = np.abs(frame.joint_vel[rows]).mean(axis=1).sum(dtype=np.float64)
            self._rest_sums += (np.count_nonzero(rows), speed, joints)

    @property
    def means(self) -> dict[str, float]:
        return {name: total / self._steps for name, total in self._sums.items()}

    def standard_error(self, name: str | None) -> float | None:
        """Of a metric's mean, from the spread of the means of rows; None for one row or an unknown metric."""
        if name is None or name not in self._row_sums or len(self._row_sums[name]) < 2:
            return None
        rows = self._row_sums[name] / self._steps
        return float(rows.std(ddof=1) / np.sqrt(len(rows)))

    @property
    def at_rest(self) -> tuple[float | None, float | None]:
        count, speed, joints = self._rest_sums.tolist()
        return (speed / count, joints / count) if count else (None, None)


class SwingPeaks:
    """Collects the highest point of every swing: a stretch of at least 3 control steps with the sole above 5 mm.

    A swing counts when the foot is down again; one that the end of an episode cuts off does not.
    """

    def __init__(self, nenv: int, nfoot: int) -> None:
        self._peak = np.zeros((nenv, nfoot), np.float32)
        self._steps = np.zeros((nenv, nfoot), np.int64)
        self.peaks: list[float] = []  # of all swings so far, m
        self.rows: list[int] = []  # and whose they were

    def push(self, height: Float32) -> None:
        """Heights (nenv, nfoot) of the soles above the ground after one control step, m."""
        lifted = height > _LIFTED_M
        over = ~lifted & (self._steps >= _SHORTEST)
        self.peaks += self._peak[over].tolist()
        self.rows += np.nonzero(over)[0].tolist()
        self._steps = np.where(lifted, self._steps + 1, 0)
        self._peak = np.where(lifted, np.maximum(self._peak, height), np.float32(0.0))

    def restart(self, rows: NDArray[np.intp]) -> None:
        """Episodes of these rows ended: swings that had begun are dropped."""
        self._steps[rows] = 0
        self._peak[rows] = 0.0

    def median(self) -> float | None:
        """Of all peaks, m; None without a swing."""
        return float(np.median(self.peaks)) if self.peaks else None
