"""One recording while it runs: what happens in each tick, and how it went.

A tick reads the state, checks it, sends the plan's command for this point of the schedule and appends both as a row.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from trueup.core.errors import TrueupError
from trueup.hardware.driver import Command, Driver, RobotState
from trueup.hardware.loop import LoopReport
from trueup.hardware.watch import Watch, WatchCfg
from trueup.record.sink import RowSink
from trueup.robot.excitation.plan import Plan, join_plans
from trueup.robot.spec import RobotSpec

Ended = Literal["done", "aborted", "interrupted", "failed"]
PROGRESS_S = 0.1  # between two calls of the progress callback
_OPTIONAL = ("joint_torque", "joint_temperature", "voltage", "imu_quat", "imu_gyro", "imu_acc")


@dataclass(frozen=True, kw_only=True)
class RecordCfg:
    """How a recording is run: when it is given up."""

    watch: WatchCfg = field(default_factory=WatchCfg)


class RecordingProgress(NamedTuple):
    """Where a recording is: phase "approach", "plan" or "home", seconds of it all, rows in the log."""

    phase: str
    seconds: float
    total_s: float
    rows: int


@dataclass(frozen=True, kw_only=True)
class RecordResult:
    """How a recording went.

    ended         "done"; "aborted" by the watch; "interrupted" by the user; "failed": the driver or the disk
    reason        in words, empty when done
    rows          in the log; `phases`: first row of each phase
    stale_ticks   without a new state: nothing was sent and nothing logged
    loop          timing; None if the loop never started
    """

    ended: Ended
    reason: str
    rows: int
    phases: dict[str, int]
    stale_ticks: int
    loop: LoopReport | None


class Recording:
    """The state of one recording; `tick` is called by the loop."""

    def __init__(
        self,
        spec: RobotSpec,
        driver: Driver,
        parts: Mapping[str, Plan | None],
        first: RobotState,
        writer: RowSink,
        cfg: RecordCfg,
        on_progress: Callable[[RecordingProgress], None] | None,
    ) -> None:
        self._spec, self._driver, self._writer, self._stale_s = spec, driver, writer, cfg.watch.stale_s
        self._plan = join_plans(*parts.values())
        lengths = {name: len(plan) for name, plan in parts.items() if plan is not None}
        self._ends = dict(zip(lengths, itertools.accumulate(lengths.values()), strict=True))  # row after each part
        self._watch = Watch(spec, cfg.watch, period_s=self._plan.dt, start=first.joint_pos)
        # What the robot does not measure is absent or NaN in its first state.
        values = {name: getattr(first, name) for name in _OPTIONAL}
        there = [name for name, value in values.items() if value is not None and np.isfinite(value).all()]
        self._signals = ("joint_pos", "joint_vel", *there)
        self._ahead: RobotState | None = first
        self._last: RobotState | None = None
        self._fresh_s = time.perf_counter()
        self._on_progress, self._progress_s = on_progress, 0.0
        self._rows = self._stale_ticks = 0
        self._phases: dict[str, int] = {}
        self._ended: Ended | None = None
        self._reason = ""

    def align(self) -> None:
        """Start the schedule at the arrival of a state, so that commands follow their states closely.

        In lock-step no further state comes before the first command: the one at hand is the first.
        """
        if self._driver.realtime:
            self._driver.read()  # may have waited for long: the next one is fresh
            self._ahead = self._driver.read()
        self._fresh_s = time.perf_counter()

    def tick(self, k: int) -> bool:
        """Do point k of the schedule; False when there is nothing left to do."""
        if k >= len(self._plan):
            return False
        try:
            state = self._ahead or self._driver.read()
            self._ahead = None
            if self._is_stale(state):
                return self._ended is None
            self._do(k, state)
        except TrueupError as error:
            self.end("failed", str(error))
        self._progress(k)
        return self._ended is None and k + 1 < len(self._plan)

    def end(self, ended: Ended, reason: str) -> None:
        """Note how it ended; the first reason stays."""
        if self._ended is None:
            self._ended, self._reason = ended, reason

    def result(self, loop: LoopReport | None) -> RecordResult:
        return RecordResult(
            ended=self._ended or "done",
            reason=self._reason,
            rows=self._rows,
            phases=dict(self._phases),
            stale_ticks=self._stale_ticks,
            loop=loop,
        )

    def _is_stale(self, state: RobotState) -> bool:
        """Whether this state was seen before. Then nothing is sent: the log would not have the command."""
        now = time.perf_counter()
        silent_s, allowed_s = now - self._fresh_s, self._stale_s
        is_new = self._last is None or state.sequence > self._last.sequence
        if not self._driver.realtime and not is_new:  # nothing moves on by itself: waiting would not help
            self.end("aborted", f"no new state after a command: number {state.sequence} came again")
        elif self._driver.realtime and self._last is not None and silent_s > allowed_s:
            self.end("aborted", f"no new state for {1e3 * silent_s:.0f} ms (allowed: {1e3 * allowed_s:.0f} ms)")
        if not is_new:
            self._stale_ticks += 1
            return True
        if self._last is not None:
            self._check_clock(self._last.time_s, state.time_s)
        self._fresh_s, self._last = now, state
        return False

    def _check_clock(self, before_s: float, now_s: float) -> None:
        step, period = now_s - before_s, self._plan.dt
        if step <= 0.0:
            raise TrueupError(f"the robot's clock went from {before_s:.6f} s to {now_s:.6f} s")
        if not self._driver.realtime and abs(step - period) > 0.01 * period:
            steps = f"the driver moves on by {1e3 * step:.3f} ms a command and the plan by {1e3 * period:.3f} ms"
            raise TrueupError(f"{steps}; open both with the same rate")

    def _do(self, k: int, state: RobotState) -> None:
        """Answer a new state with the plan's command, or with damping, and log the two."""
        fault = self._watch.check(state) if self._ended is None else None
        if fault is not None:
            self.end("aborted", fault)
        if self._ended is not None:
            self._append(k, state, self._driver.damp())
            return
        zero = np.zeros(self._spec.njoint)
        speed = zero if self._plan.target_vel is None else self._plan.target_vel[k]
        target, kp, kd = self._plan.target_pos[k], self._spec.kp, self._spec.kd
        try:
            sent = self._driver.write(Command(target_pos=target, target_vel=speed, kp=kp, kd=kd, torque=zero))
        except TrueupError:
            self._append(k, state, self._driver.damp())
            raise
        self._watch.told(sent.target_pos)
        self._append(k, state, sent)

    def _append(self, k: int, state: RobotState, sent: Command) -> None:
        values: dict[str, ArrayLike] = {name: getattr(state, name) for name in self._signals}
        self._writer.append(
            state.time_s,
            **values,
            target_pos=sent.target_pos,
            target_vel=sent.target_vel,
            target_torque=sent.torque,
            target_kp=sent.kp,
            target_kd=sent.kd,
        )
        self._phases.setdefault(self._phase(k), self._rows)
        self._rows += 1

    def _phase(self, k: int) -> str:
        return next(name for name, end in self._ends.items() if k < end)

    def _progress(self, k: int) -> None:
        now = time.perf_counter()
        if self._on_progress is None or (now < self._progress_s and self._ended is None and k + 1 < len(self._plan)):
            return
        self._progress_s = now + PROGRESS_S
        total = len(self._plan) * self._plan.dt
        self._on_progress(RecordingProgress(self._phase(k), (k + 1) * self._plan.dt, total, self._rows))
