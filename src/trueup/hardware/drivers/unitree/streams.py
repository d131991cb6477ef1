"""Received messages: states with their clock, and commands of other programs."""

from __future__ import annotations

import time

import numpy as np

from trueup.core.errors import TrueupError
from trueup.hardware.driver import Command, RobotState
from trueup.hardware.drivers.dds import DdsBus
from trueup.hardware.drivers.unitree.codec import decode_command, decode_state, observed_command
from trueup.hardware.drivers.unitree.crc import is_sound
from trueup.hardware.drivers.unitree.motors import MotorWiring

LOW_CMD, LOW_STATE, BMS_STATE = "rt/lowcmd", "rt/lowstate", "rt/lf/bmsstate"
_FRESH_S = 0.1  # a command of others that is older is not in force
_BMS_EVERY = 25  # reports between looks at the battery's topic


class TickClock:
    """Seconds from a counter of milliseconds that has 32 bits and wraps after 49.7 days."""

    def __init__(self) -> None:
        self._tick: int | None = None
        self._milliseconds = 0

    def advance(self, tick: int) -> float | None:
        """Seconds on the robot's clock, 0 at its start; None for a tick that is older than the one before."""
        if self._tick is None:
            self._tick = self._milliseconds = tick
            return tick * 1e-3
        step = (tick - self._tick + 2**31) % 2**32 - 2**31
        if step < 0:
            return None
        self._tick = tick
        self._milliseconds += step
        return self._milliseconds * 1e-3


class StateStream:
    """The newest LowState. Frames with a wrong checksum or an older tick are dropped and counted."""

    def __init__(self, bus: DdsBus, wiring: MotorWiring, *, check_crc: bool) -> None:
        self._wiring, self._check = wiring, check_crc
        self._inbox = bus.inbox(LOW_STATE, wiring.family.low_state.sample)
        bms = wiring.family.bms_state
        self._battery = None if bms is None else bus.inbox(BMS_STATE, bms.sample, depth=1)
        self._battery_v = np.nan
        self._clock = TickClock()
        self._looks = 0
        self.sequence = 0  # sound reports so far
        self.bad, self.old = 0, 0
        self.mode_machine = 0

    def next(self, timeout_s: float) -> RobotState | None:
        """The newest state that came since the last call, waiting for one; None when none came in time."""
        end = time.monotonic() + timeout_s
        while True:
            state = self._take()
            if state is not None:
                return state
            if not self._inbox.wait(left := end - time.monotonic()) and left <= 0.0:
                return None

    def _take(self) -> RobotState | None:
        newest = None
        for sample in self._inbox.take():
            try:
                record = self._wiring.family.low_state.from_cdr(sample.cdr)
            except TrueupError:
                self.bad += 1
                continue
            if self._check and not is_sound(record):
                self.bad += 1
                continue
            time_s = self._clock.advance(int(record["tick"][0]))
            if time_s is None:
                self.old += 1
                continue
            self.sequence += 1
            newest = record, time_s
        if newest is None:
            return None
        record, time_s = newest
        if self._wiring.family.bms_state is not None:
            self.mode_machine = int(record["mode_machine"][0])
            self._look_at_battery()
        return decode_state(self._wiring, record, sequence=self.sequence, time_s=time_s, battery_v=self._battery_v)

    def _look_at_battery(self) -> None:
        bms = self._wiring.family.bms_state
        if self._looks % _BMS_EVERY == 0 and self._battery is not None and bms is not None:
            for sample in self._battery.take():
                self._battery_v = float(bms.from_cdr(sample.cdr)["bmsvoltage"][0, 0]) * 1e-3
        self._looks += 1


class CommandStream:
    """LowCmd of other programs."""

    def __init__(self, bus: DdsBus, wiring: MotorWiring) -> None:
        self._wiring = wiring
        self._inbox = bus.inbox(LOW_CMD, wiring.family.low_cmd.sample, others_only=True)
        self._newest: Command | None = None
        self._came_at = -np.inf
        self.sender = ""
        self.count, self.bad = 0, 0

    def look(self) -> bool:
        """Receive waiting messages; True if there were any, valid or not."""
        samples = self._inbox.take()
        self.count += len(samples)
        for sample in samples:
            try:
                record = self._wiring.family.low_cmd.from_cdr(sample.cdr)
            except TrueupError:
                self.bad += 1
                continue
            if is_sound(record):
                self._newest = observed_command(decode_command(self._wiring, record))
                self._came_at = time.monotonic()
            else:
                self.bad += 1
        if samples:
            self.sender = self._inbox.sender(samples[-1])
        return bool(samples)

    def wait_for_quiet(self, quiet_s: float, timeout_s: float) -> bool:
        """Wait until no command has come for a while; False if they keep coming."""
        end, since = time.monotonic() + timeout_s, time.monotonic()
        while time.monotonic() - since < quiet_s:
            if self.look():
                since = time.monotonic()
            if time.monotonic() > end:
                return False
            self._inbox.wait(quiet_s / 10)
        return True

    def in_force(self) -> Command | None:
        """The newest command of other programs, None when none came lately."""
        return self._newest if time.monotonic() - self._came_at < _FRESH_S else None
