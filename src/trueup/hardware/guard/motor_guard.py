"""MotorGuard: from states and commands to the limited command. No I/O, no clock of its own.

    idle     no command yet: damping. Faults of the state are kept as `not_ready`
    active   from the first command on: every fault of a state or a command is a trip
    tripped  damping, for good

Times are passed in by the caller: `now_s` on one clock that never goes back (in lock-step: the robot's).
"""

from __future__ import annotations

import math
from collections import Counter

import numpy as np

from trueup.core.arrays import FloatArray
from trueup.hardware.driver import RobotState
from trueup.hardware.guard.body import BodyChecks, HealthChecks, tilt_of
from trueup.hardware.guard.cfg import LONGEST_STALE_S, GuardCfg
from trueup.hardware.guard.frozen import FrozenCheck
from trueup.hardware.guard.limiter import CommandChecks, bound_torque, limits_of
from trueup.hardware.guard.readings import GuardFault, ReadingChecks, worst_joint
from trueup.hardware.guard.trip import GuardStatus, Margin, Phase, Trip
from trueup.robot.spec import RobotSpec

_AHEAD = 0.1  # share of a time limit by which one that would pass before the next tick is taken as passed
_CLOCK_LEAK = 0.02  # clocks of robot and guard may differ by so much, seconds a second


class MotorGuard:
    """The guards and the limiter of one robot.

    control_hz  rate of the policy
    period_s    between two calls of `tick`
    realtime    False: lock-step, where states have no age and the policy cannot be silent
    """

    def __init__(
        self, spec: RobotSpec, cfg: GuardCfg, *, control_hz: float, period_s: float, realtime: bool = True
    ) -> None:
        self.spec, self.cfg, self._realtime, self._period_s = spec, cfg, realtime, period_s
        self.trip: Trip | None = None
        self.newest: RobotState | None = None  # that passed the checks
        self.clips: Counter[str] = Counter()
        self.hint = ""  # why no state comes, in the driver's words
        self.stale_s, self.silence_s = cfg.stale_limit_s(control_hz), cfg.silence_limit_s(control_hz)
        self._limits = limits_of(spec, cfg)
        self._commands = CommandChecks(spec, cfg, self._limits, control_hz)
        self._readings, self._health = ReadingChecks(spec, cfg), HealthChecks(spec, cfg)
        self._frozen = FrozenCheck(spec, cfg)
        self._body: BodyChecks | None = None  # from the first command on
        self._fault: GuardFault | None = GuardFault("stale", "no state has come from the robot yet")
        self._accepted: FloatArray | None = None
        self._arrived_s = self._commanded_s = -math.inf
        self._offset_s = math.inf  # smallest arrival time minus robot time so far
        self._late_s = self._clock_s = 0.0  # how late the newest report came; the robot's clock in it
        self._most_excused = [
            min(2.0 / control_hz, max(0.0, LONGEST_STALE_S - limit)) for limit in (self.stale_s, self.silence_s)
        ]
        self._state_excused_s = self._command_excused_s = 0.0  # slept through since the newest of each
        self._asked = np.zeros(spec.njoint)  # share of the torque limit in the last command

    # --- in ---
    def observe(self, state: RobotState, arrived_s: float) -> bool:
        """Check a report; True if it passed and is the newest."""
        verdict = self._readings.check(state)
        if verdict in ("new", "bridged"):
            verdict = self._time(state, arrived_s) or verdict
        if isinstance(verdict, GuardFault):
            self._find(verdict, arrived_s)
            if self.trip is None and verdict.guard in ("clock", "jump"):
                self._restart()
            return False
        if verdict == "repeated":
            self.clips["repeated"] += 1
            return False
        if verdict == "bridged":
            self.clips["bridged"] += 1
            return False
        self.newest = state
        fault = self._frozen.check(state) or self._health.check(state)
        if fault is None and self._body is not None:
            fault = self._body.check(state)
        self._find(fault, arrived_s)
        return True

    def command(self, rows: FloatArray, now_s: float, *, sent_s: float = math.inf) -> None:
        """Take a command (5, n) of the policy; the first one makes the guard active.

        sent_s  when the policy sent it, on the clock of `now_s`: one that waited here while this process was not run is
                as old as it is. What cannot be (in lock-step: the policy's clock is another) counts as sent now
        """
        if self.trip is not None:
            return
        self._commanded_s = sent_s if self._commanded_s <= sent_s <= now_s else now_s
        self._command_excused_s = min(self._command_excused_s, now_s - self._commanded_s)
        if self._accepted is None:
            if self._fault is not None or self.newest is None:
                self.stop(self._fault or GuardFault("stale", "no state"), now_s)
                return
            start = self.newest.joint_pos
            self._body = BodyChecks(self.spec, self.cfg, period_s=self._period_s, start=start)
            self._commands.start(start, now_s)
        assert self.newest is not None
        accepted = self._commands.accept(rows, self.newest.joint_pos, now_s)
        if isinstance(accepted, GuardFault):
            self.stop(accepted, now_s)
            return
        self._accepted = accepted.rows
        self.clips.update(accepted.clips)

    def stop(self, fault: GuardFault, now_s: float) -> None:
        """Trip; the first reason is kept."""
        if self.trip is None:
            self.trip = Trip(guard=fault.guard, reason=fault.reason, time_s=now_s)

    def excuse(self, stalled_s: float) -> None:
        """Take note that the guard itself was not run for a while: the whole computer may have stood still.

        Who had no chance to be heard is not silent: robot and policy get that time, two control periods at most and
        0.1 s in all, until they are heard again (the robot: in time).
        """
        most_of_state, most_of_command = self._most_excused
        self._state_excused_s = min(self._state_excused_s + stalled_s, most_of_state)
        self._command_excused_s = min(self._command_excused_s + stalled_s, most_of_command)

    # --- out ---
    def tick(self, now_s: float) -> FloatArray | None:
        """Return the limited rows (5, n) to send now, None for damping."""
        if self._accepted is None or self.trip is not None:
            return None
        fault = self._age(now_s)
        if fault is not None:
            self.stop(fault, now_s)
            return None
        assert self.newest is not None
        assert self._body is not None
        pos, vel = self.newest.joint_pos, self.newest.joint_vel
        sent = bound_torque(self._accepted, pos, vel, self._limits, self._health.derate)
        self.clips.update(sent.clips)
        self._body.told(self._accepted)
        self._frozen.told(sent.push)
        self._asked = np.abs(sent.push - sent.rows[3] * vel) / self._limits.torque
        return sent.rows

    @property
    def phase(self) -> Phase:
        return "tripped" if self.trip is not None else "idle" if self._accepted is None else "active"

    def not_ready(self, now_s: float) -> str:
        """Why a first command would trip now; "" if it would not."""
        fault = self._fault or self._age(now_s)
        return "" if fault is None or self.phase != "idle" else fault.reason

    @property
    def derate(self) -> float:
        return self._health.derate

    def status(self, now_s: float) -> GuardStatus:
        """The guard's status."""
        return GuardStatus(
            phase=self.phase,
            trip=self.trip,
            not_ready=self.not_ready(now_s),
            clips=dict(self.clips),
            derate=self.derate,
            margins=self._margins(now_s),
        )

    # --- age ---
    def _restart(self) -> None:
        """Forget the reports so far: a robot at rest was moved by hand, or switched off and on."""
        self._readings.restart()
        self._arrived_s, self._offset_s = -math.inf, math.inf

    def _time(self, state: RobotState, arrived_s: float) -> GuardFault | None:
        """Record when a new report came, and its delay beyond that of the fastest report.

        A robot's clock that advances by far more than ours is broken, or this computer was suspended.
        """
        offset = arrived_s - state.time_s
        waited = arrived_s - self._arrived_s if self._arrived_s > -math.inf else 0.0
        skipped = self._arrived_s - self._clock_s - offset  # its clock's advance beyond ours since the last report
        self._clock_s = state.time_s
        if self._realtime and skipped > LONGEST_STALE_S:
            return GuardFault("clock", f"the robot's clock advanced by {skipped:.3f} s more than ours between reports")
        self._offset_s = min(self._offset_s + _CLOCK_LEAK * waited, offset)
        self._arrived_s, self._late_s = arrived_s, offset - self._offset_s
        self._state_excused_s = min(self._state_excused_s, self._late_s)  # waiting frames come late
        return None

    def _age(self, now_s: float) -> GuardFault | None:
        if not self._realtime:
            return None
        waited, late = now_s - self._arrived_s, self._late_s
        ahead = min(self._period_s, _AHEAD * self.stale_s) - self._state_excused_s
        if waited + late + ahead > self.stale_s:
            came = f", which came {1e3 * late:.0f} ms late" if late > 1e-3 else ""
            allowed = f"(allowed until damping: {1e3 * self.stale_s:.0f} ms in all)"
            why = f"; the driver says: {self.hint}" if self.hint else ""
            return GuardFault(
                "stale", f"no new state for {1e3 * waited:.0f} ms since the last one{came} {allowed}{why}"
            )
        silent = now_s - self._commanded_s
        ahead = min(self._period_s, _AHEAD * self.silence_s) - self._command_excused_s
        if self._accepted is not None and silent + ahead > self.silence_s:
            allowed = f"(allowed until damping: {1e3 * self.silence_s:.0f} ms)"
            return GuardFault("silence", f"the policy has been silent for {1e3 * silent:.0f} ms {allowed}")
        return None

    def _find(self, fault: GuardFault | None, now_s: float) -> None:
        """Record a fault: an active guard trips, an idle one is not ready."""
        self._fault = fault
        if fault is not None and self._accepted is not None:
            self.stop(fault, now_s)

    # --- margins ---
    def _margins(self, now_s: float) -> dict[str, Margin]:
        state, cfg, spec = self.newest, self.cfg, self.spec
        if state is None:
            return {}
        inside = np.minimum(state.joint_pos - spec.position_low, spec.position_high - state.joint_pos)
        speed, heat = np.abs(state.joint_vel) / spec.velocity_limit, np.nan_to_num(state.joint_temperature, nan=-273.0)
        margins = {
            "position": self._margin(-inside, cfg.position_margin_rad),
            "velocity": self._margin(speed, cfg.velocity_fraction),
            "torque": self._margin(self._asked, cfg.torque_fraction),
        }
        if heat.max() > -273.0:
            margins["temperature"] = self._margin(heat, cfg.temperature_stop_c)
        if cfg.voltage_stop is not None and not math.isnan(state.voltage):
            margins["voltage"] = Margin(value=state.voltage, limit=cfg.voltage_stop)
        if cfg.tilt_rad is not None and state.imu_quat is not None:
            margins["tilt"] = Margin(value=tilt_of(state.imu_quat), limit=cfg.tilt_rad)
        if self._realtime:
            margins["stale"] = Margin(value=now_s - self._arrived_s + self._late_s, limit=self.stale_s)
            if self._accepted is not None:
                margins["silence"] = Margin(value=now_s - self._commanded_s, limit=self.silence_s)
        return margins

    def _margin(self, values: FloatArray, limit: float) -> Margin:
        j, _ = worst_joint(self.spec, values)
        return Margin(value=float(values[j]), limit=limit, joint=self.spec.joint_names[j])
