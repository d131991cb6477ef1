"""Session: one run on a robot or twin, from the pose it is found in to damping, on an absolute schedule.

ramp    from the measured pose to the policy's default pose, gains growing, then a moment of rest
policy  read, observe, act, bound, send, record; monitors and the operator may stop it at every step
exit    damping at once; or, after an orderly end, back to the default pose and softly down ("sit"), then damping

Whatever happens, an exception, a signal or a trip, the driver is told to damp before this returns.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

import numpy as np

from trueup.core.arrays import FloatArray
from trueup.core.errors import TrueupError
from trueup.core.stop import stop_on_signal
from trueup.deploy.control.controller import Controller, ControlStep, PolicyError
from trueup.deploy.control.goal import AskedGoal
from trueup.deploy.control.monitors import MonitorCfg, Monitors, Watched
from trueup.deploy.control.motions import Ramp, fade, plan_ramp
from trueup.deploy.session.controls import Controls
from trueup.deploy.session.outcome import Ended, RunFigures, RunOutcome
from trueup.deploy.session.recording import PHASES, RowWriter, state_columns
from trueup.deploy.session.undisturbed import undisturbed
from trueup.hardware.driver import Command, Driver, RobotState
from trueup.hardware.loop import LoopReport, damp_surely, run_ticks

_log = logging.getLogger(__name__)
_NOTHING = Watched(0, float("nan"), (), "")


@dataclass(frozen=True, kw_only=True)
class DeploySessionCfg:
    """Options of a run.

    seconds     that the policy runs; None: until the operator ends it
    ramp_s      least time of the ramp; rest_s: in the default pose after it
    ramp_gain   of the policy's gains during the ramp: 2, as a policy's own are often too soft to stand up with
    reach_rad   largest distance of a joint from the default pose after the ramp: the policy starts no farther away
    gain        of the policy's gains that are commanded
    on_exit     after an orderly end: damping at once, or "sit": `still_s` of standing still under the policy, back to
                the default pose, then softly down within `sit_s`
    """

    seconds: float | None = None
    ramp_s: float = 2.0
    rest_s: float = 1.0
    ramp_gain: float = 2.0
    reach_rad: float = 0.5
    gain: float = 1.0
    on_exit: Literal["damp", "sit"] = "damp"
    still_s: float = 1.5
    sit_s: float = 2.0
    monitors: MonitorCfg = field(default_factory=MonitorCfg)

    def __post_init__(self) -> None:
        if self.seconds is not None and not self.seconds > 0.0:
            raise TrueupError(f"a run takes some time, found {self.seconds} s", place="--seconds")
        if not 0.0 < self.gain <= 1.0:
            raise TrueupError(f"gain is a share of the policy's gains, above 0 and up to 1, found {self.gain}")


class Live(Protocol):
    """Live pages of a run, whose operator may stop it (`deploy.telemetry`)."""

    @property
    def stop_requested(self) -> bool: ...
    def show(self, time_s: float, state: RobotState, command: Command, goal: AskedGoal, phase: str) -> None: ...


class DeploySession:
    """One run; `run` returns when the robot is damped. The driver must be connected and stays open."""

    def __init__(
        self,
        controller: Controller,
        driver: Driver,
        goal: AskedGoal,
        cfg: DeploySessionCfg | None = None,
        *,
        controls: Sequence[Controls] = (),
        writer: RowWriter | None = None,
        live: Live | None = None,
    ) -> None:
        self.cfg = cfg or DeploySessionCfg()
        self.first_tick_s = float("nan")  # time.perf_counter() of the first command
        self._controller, self._driver, self._goal = controller, driver, goal
        self._controls, self._writer, self._live = tuple(controls), writer, live
        self._monitors = Monitors(controller.passport, self.cfg.monitors)
        self._dt = 1.0 / controller.control_hz
        self._most_steps = None if self.cfg.seconds is None else round(self.cfg.seconds / self._dt)
        self._ramp: Ramp | None = None
        self._policy_from = -1  # tick at which the policy began
        self._start_s, self._last_tick = 0.0, -1
        self._figures = RunFigures()
        self._target: FloatArray = controller.default_pose
        self._ended: tuple[Ended, str, str] | None = None
        self._ahead: RobotState | None = None

    def run(self) -> RunOutcome:
        """Execute the run; damps at every exit."""
        loop: LoopReport | None = None
        with stop_on_signal() as stop, undisturbed(realtime=self._driver.realtime):
            try:
                self._align()
                loop = run_ticks(self._tick, stop, self._dt if self._driver.realtime else 0.0)
                self._end(*(("interrupted", "", "ended by a signal") if stop.is_set() else ("done", "", "")))
                if self.cfg.on_exit == "sit" and self._ended and self._ended[0] in ("done", "interrupted"):
                    self._sit()
            finally:
                damp_surely(self._driver)
        assert self._ended is not None
        return self._figures.outcome(*self._ended, dt=self._dt, loop=loop)

    # --- ticks ---
    def _align(self) -> None:
        """Start the schedule right after a new state, so that states are fresh when they are used."""
        self._ahead = self._driver.read()
        if self._driver.realtime:
            self._ahead = self._driver.read()
        self._ramp = self._ramp_from(self._ahead.joint_pos, self.cfg.ramp_s)
        self._start_s = time.perf_counter()

    def _ramp_from(self, start: FloatArray, least_s: float) -> Ramp:
        return plan_ramp(
            start,
            self._controller.default_pose,
            control_hz=self._controller.control_hz,
            least_s=least_s,
            rest_s=self.cfg.rest_s,
            stiffness=self.cfg.ramp_gain,
        )

    def _tick(self, k: int) -> bool:
        """One point of the schedule; False ends the loop."""
        began = time.perf_counter()
        late = began - self._start_s - k * self._dt if self._driver.realtime else 0.0
        missed = k > self._last_tick + 1 or late > self._dt
        self._last_tick = k
        try:
            state = self._ahead or self._driver.read()
            self._ahead = None
            if self._policy_from < 0:
                self._ramp_tick(k, state, began, late)
            else:
                self._policy_tick(k, state, began, late, missed)
            self._operator()
        except TrueupError as error:
            self._fail(error)
        return self._ended is None

    def _ramp_tick(self, k: int, state: RobotState, began: float, late: float) -> None:
        assert self._ramp is not None
        command = self._ramp.command(self._controller, k, self.cfg.gain)
        if k == 0:
            self.first_tick_s = time.perf_counter()
        sent = self._driver.write(command)
        self._record(k, "ramp", state, sent, began=began, late=late)
        if k + 1 >= self._ramp.steps + self._ramp.rest:
            self._begin_policy(k + 1, state)

    def _begin_policy(self, k: int, state: RobotState) -> None:
        away = np.abs(state.joint_pos - self._controller.default_pose)
        j = int(np.argmax(away))
        if not away[j] <= self.cfg.reach_rad:
            name, at = self._controller.joint_names[j], state.joint_pos[j]
            asked = self._controller.default_pose[j]
            text = f"{name} is at {at:.3f} rad after the ramp, the policy starts at {asked:.3f} (allowed: "
            self._end("tripped", "start pose", f"{text}{self.cfg.reach_rad:g} rad away); is it blocked or too weak?")
            return
        self._policy_from = k
        self._controller.restart(self._controller.default_pose)

    def _policy_tick(self, k: int, state: RobotState, began: float, late: float, missed: bool) -> None:
        asked = self._goal.values
        step = self._controller.step(state, asked)
        watched = self._monitors.watch(step, missed=missed)
        took = time.perf_counter() - began
        if watched.reason:
            self._record(k, "policy", state, None, step, watched, began=began, late=late)
            self._end("tripped", "monitor", watched.reason)
            return
        sent = self._driver.write(self._controller.command(step.target, self.cfg.gain))
        self._target = step.target
        self._record(k, "policy", state, sent, step, watched, began=began, late=late)
        self._figures.add(state, step.target, watched, late_s=late, step_s=took, missed=missed)
        if self._most_steps is not None and self._figures.steps >= self._most_steps:
            self._end("done", "", "")

    def _operator(self, *, sits: bool = False) -> None:
        """Keys, gamepad, live page; once it sits down, all that is left to ask for is the emergency stop."""
        for controls in self._controls:
            wish = controls.poll(self._goal)
            if wish == "end" and not sits:
                self._end("done", "", "ended by the operator")
            elif wish and wish != "end":
                self._end("estop", "operator", wish)
        if self._live is not None and self._live.stop_requested:
            self._end("estop", "operator", "emergency stop on the live page")

    # --- leaving ---
    def _sit(self) -> None:
        """Stand still, go back to the default pose, then softly down; a trip, an error or the emergency stop ends it.

        Those are then how the run ended.
        """
        ended, self._ended = self._ended, None
        first = self._last_tick + 1
        still = round(self.cfg.still_s / self._dt) if self._policy_from >= 0 else 0
        steps, ramps = max(1, round(self.cfg.sit_s / self._dt)), list[Ramp]()

        def tick(k: int) -> bool:
            state, began = self._driver.read(), time.perf_counter()
            self._operator(sits=True)
            self._goal.rest()
            if self._ended is not None:
                return False
            if k < still:
                step = self._controller.step(state, self._goal.values)
                watched = self._monitors.watch(step)
                if watched.reason:
                    self._end("tripped", "monitor", watched.reason)
                    return False
                sent = self._driver.write(self._controller.command(step.target, self.cfg.gain))
                self._target = step.target
                self._record(first + k, "policy", state, sent, step, watched, began=began, late=0.0)
                return True
            if not ramps:
                start = self._target if still else state.joint_pos
                ramps.append(self._ramp_from(start, 1.0)._replace(first=1.0 / self.cfg.ramp_gain))
            share = 1.0 - (k - still - ramps[0].steps) / steps
            if share > 1.0:
                command = ramps[0].command(self._controller, k - still, self.cfg.gain)
            else:
                command = fade(self._controller, self._controller.default_pose, share, self.cfg.gain)
            self._record(first + k, "exit", state, self._driver.write(command), began=began, late=0.0)
            return share > 0.0

        try:
            run_ticks(tick, threading.Event(), self._dt if self._driver.realtime else 0.0)
        except TrueupError as error:
            _log.warning("sitting down was cut short: %s", error)
            self._fail(error)
        if ended is not None:
            self._end(*ended)

    def _fail(self, error: TrueupError) -> None:
        """Policy, guard or driver stopped it."""
        trip = getattr(error, "trip", None) or getattr(self._driver, "trip", None)
        if isinstance(error, PolicyError):
            self._end("tripped", "policy", str(error))
        else:
            self._end("tripped", getattr(trip, "guard", "driver"), getattr(trip, "reason", str(error)))

    def _end(self, ended: Ended, guard: str, reason: str) -> None:
        """Record why the run ended; the first reason is kept."""
        if self._ended is None:
            self._ended = (ended, guard, reason)

    # --- out ---
    def _record(
        self,
        k: int,
        phase: str,
        state: RobotState,
        sent: Command | None,
        step: ControlStep | None = None,
        watched: Watched = _NOTHING,
        *,
        began: float,
        late: float,
    ) -> None:
        now = time.perf_counter()
        if self._live is not None and sent is not None:
            self._live.show(now - self._start_s, state, sent, self._goal, phase)
        if self._writer is None:
            return
        columns = state_columns(state) | {
            "tick": k, "phase": PHASES.index(phase), "restart": k == self._policy_from, "wall_s": began - self._start_s,
            "late_s": late, "step_s": now - began, "flags": watched.flags, "distance": watched.distance,
            "guard": getattr(self._driver, "trip", None) is not None, "asked": self._goal.values,
        }  # fmt: skip
        if step is not None:
            columns |= step._asdict()
        if sent is not None:
            columns |= {"sent_pos": sent.target_pos, "sent_kp": sent.kp, "sent_kd": sent.kd}
        self._writer.add(**columns)
