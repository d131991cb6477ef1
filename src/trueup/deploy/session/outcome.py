"""Outcome of a run: how it ended, and the figures that a rung checks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from trueup.core.arrays import FloatArray
from trueup.deploy.control.monitors import Watched
from trueup.hardware.driver import RobotState
from trueup.hardware.loop import LoopReport
from trueup.policy.reading import gravity_in_body

Ended = Literal["done", "interrupted", "estop", "tripped"]


@dataclass(frozen=True, kw_only=True)
class RunOutcome:
    """One run.

    ended      "done": time over or ended by the operator; "interrupted": Ctrl-C or SIGTERM; "estop"; "tripped"
    guard      which guard or monitor tripped; `reason` in words
    seconds    that the policy ran, `steps` its control steps
    outside    share of steps with each term outside its training range; `first_outside`: first such value of each
    distance_* RMS z-score of the observations: median and largest; NaN where training's statistics are not known
    tilt_rad   largest angle between the IMU's vertical and its upright; NaN without IMU
    late_*, step_*  ms: from due time to the start of a step, and that a step took: median, 99.9 % and largest
    misses     steps that did not keep the schedule
    tracking   RMS distance of joints from their targets, rad; moved: largest change of a target, rad
    loop       of the timed loop; None if it never began
    """

    ended: Ended
    guard: str = ""
    reason: str = ""
    seconds: float = 0.0
    steps: int = 0
    outside: dict[str, float] = field(default_factory=dict)
    first_outside: dict[str, str] = field(default_factory=dict)
    distance_median: float = float("nan")
    distance_max: float = float("nan")
    tilt_rad: float = float("nan")
    late_ms: tuple[float, float, float] = (0.0, 0.0, 0.0)
    step_ms: tuple[float, float, float] = (0.0, 0.0, 0.0)
    misses: int = 0
    tracking: float = float("nan")
    moved: float = 0.0
    loop: LoopReport | None = None


class RunFigures:
    """Collects the figures of a run, one control step of the policy at a time."""

    def __init__(self) -> None:
        self._late: list[float] = []
        self._step: list[float] = []
        self._distance: list[float] = []
        self._outside: dict[str, int] = {}
        self._first: dict[str, str] = {}
        self._tilt = float("nan")
        self._misses, self._square, self._moved = 0, 0.0, 0.0
        self._low: FloatArray | None = None
        self._high: FloatArray | None = None
        self._before: FloatArray | None = None

    @property
    def steps(self) -> int:
        return len(self._step)

    def add(
        self, state: RobotState, target: FloatArray, watched: Watched, *, late_s: float, step_s: float, missed: bool
    ) -> None:
        """Count one step."""
        self._late.append(late_s)
        self._step.append(step_s)
        self._distance.append(watched.distance)
        self._misses += missed
        for text in watched.outside:
            term = text.partition(" ")[0]
            self._outside[term] = self._outside.get(term, 0) + 1
            self._first.setdefault(term, text)
        if state.imu_quat is not None:
            down = float(gravity_in_body(np.asarray(state.imu_quat, np.float64)[None])[0, 2])
            self._tilt = float(np.fmax(self._tilt, np.arccos(np.clip(-down, -1.0, 1.0))))
        if self._before is not None:
            self._square += float(np.mean((state.joint_pos - self._before) ** 2))
        self._before = target
        self._low = target if self._low is None else np.minimum(self._low, target)
        self._high = target if self._high is None else np.maximum(self._high, target)

    def outcome(self, ended: Ended, guard: str, reason: str, *, dt: float, loop: LoopReport | None) -> RunOutcome:
        """The whole run."""
        n = max(self.steps, 1)
        known = [value for value in self._distance if np.isfinite(value)]
        spread = np.zeros(1) if self._high is None or self._low is None else self._high - self._low
        return RunOutcome(
            ended=ended,
            guard=guard,
            reason=reason,
            seconds=self.steps * dt,
            steps=self.steps,
            outside={term: count / n for term, count in sorted(self._outside.items())},
            first_outside=dict(self._first),
            distance_median=float(np.median(known)) if known else float("nan"),
            distance_max=max(known, default=float("nan")),
            tilt_rad=self._tilt,
            late_ms=_spread_ms(self._late),
            step_ms=_spread_ms(self._step),
            misses=self._misses,
            tracking=float(np.sqrt(self._square / max(self.steps - 1, 1))) if self.steps > 1 else float("nan"),
            moved=float(spread.max(initial=0.0)),
            loop=loop,
        )


def _spread_ms(seconds: list[float]) -> tuple[float, float, float]:
    """Median, 99.9 % and largest, ms."""
    if not seconds:
        return 0.0, 0.0, 0.0
    low, high, most = 1e3 * np.quantile(seconds, (0.5, 0.999, 1.0))
    return float(low), float(high), float(most)
