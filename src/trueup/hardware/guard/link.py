"""Link: one guard between its channel to the policy and its driver; the common part of both loops."""

from __future__ import annotations

import contextlib
import math
import os
import socket
import time
from collections import Counter
from collections.abc import Callable

import msgspec
import numpy as np

from trueup.core.errors import TrueupError
from trueup.hardware import wire
from trueup.hardware.driver import Command, Driver, RobotState
from trueup.hardware.guard.motor_guard import MotorGuard
from trueup.hardware.guard.readings import GuardFault
from trueup.hardware.guard.recorder import GuardRecorder
from trueup.hardware.guard.trip import GuardStatus, GuardSummary
from trueup.hardware.wire import Kind, StateReport

_BIN_S, _BINS = 1e-5, 5000
_MOST_FRAMES = 16  # taken in at a time: a policy that never stops sending must not hold up the schedule


class Lateness:
    """Histogram of delays in steps of 10 microseconds up to 50 ms."""

    def __init__(self) -> None:
        self._counts = [0] * _BINS
        self._most = 0.0

    def add(self, seconds: float) -> None:
        """Count one delay."""
        self._counts[min(_BINS - 1, max(0, int(seconds / _BIN_S)))] += 1
        self._most = max(self._most, seconds)

    def milliseconds(self) -> dict[str, float]:
        """Median, 99 %, 99.9 % and the longest."""
        total = np.cumsum(self._counts)
        shares = {"p50": 0.5, "p99": 0.99, "p999": 0.999}
        found = {name: float(np.searchsorted(total, share * total[-1]) + 1) * _BIN_S for name, share in shares.items()}
        return {name: 1e3 * value for name, value in (found | {"max": self._most}).items()}


class GuardLink:
    """Carries states to the policy and commands to the robot, both through the guard, and records them."""

    def __init__(self, guard: MotorGuard, driver: Driver, channel: socket.socket, recorder: GuardRecorder) -> None:
        self.guard, self.driver, self.channel, self.recorder = guard, driver, channel, recorder
        self._parent = os.getppid()
        self.is_deaf = False  # the policy's end of the channel is closed
        self.said_goodbye = False
        self.lateness, self.missed, self.ticks, self.states = Lateness(), 0, 0, 0
        self.driver_s = self._write_max_s = 0.0  # in the driver's write and damp: all of it, the longest
        self._end_s = math.inf
        self._sequence = 0  # of the policy's newest command
        self._answered = 0
        self._pending: RobotState | None = None  # a state that no command has followed yet
        self._sent = np.zeros((wire.COMMAND_ROWS, guard.spec.njoint))
        self._told: Counter[str] = Counter()
        self._derate, self._phase, self._damped_s = 1.0, "", 0.0

    def is_over(self, now: float) -> bool:
        """Whether the policy has disconnected, or its process ended long enough ago."""
        return self.said_goodbye or now >= self._end_s

    # --- from the policy ---
    def take_frames(self, now: float) -> bool:
        """Receive waiting frames of the policy; True if there was a command or a request to damp."""
        has_come = False
        for _ in range(0 if self.is_deaf else _MOST_FRAMES):
            try:
                data = self.channel.recv(wire.MAX_FRAME_BYTES, socket.MSG_DONTWAIT)
            except BlockingIOError:
                break
            except OSError:
                data = b""
            if not data:
                self._lose_policy(now)
                return True
            has_come |= self.take(data, now)
        return has_come

    def take(self, data: bytes, now: float) -> bool:
        """Handle one frame."""
        try:
            frame = wire.decode(data)
            if frame.kind is Kind.COMMAND:
                rows = wire.command_rows(frame)
                self._sequence = frame.sequence
                self.guard.command(rows, now, sent_s=frame.time_s)
            elif frame.kind is Kind.DAMP:
                self.guard.stop(GuardFault("stop", "damping was asked for"), now)
            elif frame.kind is Kind.BYE:
                self.said_goodbye = True
            else:
                raise TrueupError(f"a policy sends no {frame.kind.name}")
        except TrueupError:
            self.guard.clips["bad_frames"] += 1
            return False
        return True

    def look_for_policy(self, now: float) -> None:
        """Detect that the policy's process has ended while a child of it keeps the channel open."""
        if os.getppid() != self._parent and not self.is_deaf:
            self._lose_policy(now)

    def _lose_policy(self, now: float) -> None:
        self.is_deaf = True
        self._end_s = now + self.guard.cfg.linger_s
        if not self.said_goodbye:
            self.guard.stop(GuardFault("silence", "the policy's process has ended"), now)

    # --- to the robot ---
    def send(self, now: float) -> None:
        """Send the limited command or damping; any exception of the driver is a trip."""
        self.ticks += 1
        rows = self.guard.tick(now)
        if rows is not None:
            try:
                self._drive(self.driver.write, wire.command_of(rows))
            except Exception as error:
                self.guard.stop(GuardFault("driver", f"the driver failed: {error}"), now)
                rows = None
        if rows is None:
            self.damp()
        if self._pending is not None:
            self.recorder.row(self._pending, self._sent)
            self._pending = None
        if self.guard.trip is not None and self._phase != "tripped":
            self.report(now)  # before the answer: a policy that waits for it learns of the trip
        if self._sequence != self._answered:
            self._answered = self._sequence
            self._tell(wire.encode_rows(self._sequence, now, self._sent))

    def damp(self) -> None:
        """Send damping once."""
        try:
            self._drive(self.driver.damp)
            if self.guard.trip is not None and not self._damped_s:
                self._damped_s = time.monotonic()
        except Exception as error:
            self.guard.stop(GuardFault("driver", f"the driver failed: {error}"), time.monotonic())

    def _drive(self, send: Callable[..., Command], *what: Command) -> None:
        """Let the driver send; note what was sent and how long it held us."""
        began = time.monotonic()
        try:
            sent = send(*what)
        finally:
            took = time.monotonic() - began
            self.driver_s += took
            self._write_max_s = max(self._write_max_s, took)
        self._sent = np.stack([sent.target_pos, sent.target_vel, sent.kp, sent.kd, sent.torque])

    # --- from the robot ---
    def observe(self, state: RobotState, arrived: float) -> bool:
        """Check a state, record it, pass it to the policy if it is valid; True if it is."""
        self.states += 1
        if self._pending is not None:
            self.recorder.row(self._pending, self._sent)
        try:
            is_good = self.guard.observe(state, arrived)
        except Exception as error:  # a state of wrong types
            self.guard.stop(GuardFault("implausible", f"a report cannot be read: {error}"), arrived)
            return False
        self._pending = state
        if is_good:
            self._tell(wire.encode_report(_report(state, self._sequence)))
        return is_good

    # --- to the policy ---
    def report(self, now: float) -> None:
        """Send the guard's status to the policy, and record changes."""
        guard = self.guard
        self._tell(wire.encode_message(Kind.STATUS, self._sequence, now, self.status(now)))
        clips = guard.clips - self._told
        if clips:
            self.recorder.event("clips", now, counts=dict(clips))
            self._told = Counter(guard.clips)
        if guard.derate != self._derate:
            self.recorder.event("derate", now, share=guard.derate)
            self._derate = guard.derate
        if guard.phase != self._phase:
            self.recorder.event("phase", now, phase=guard.phase)
            self._phase = guard.phase
            if guard.trip is not None:
                trip = guard.trip
                self.recorder.event("trip", trip.time_s, guard=trip.guard, reason=trip.reason, damped_s=self._damped_s)

    def status(self, now: float) -> GuardStatus:
        """Status of the guard and of this link."""
        latency = {f"late_{name}": value for name, value in self.lateness.milliseconds().items()}
        latency |= {"write_max": 1e3 * self._write_max_s, "missed": float(self.missed)}
        status = self.guard.status(now)
        return msgspec.structs.replace(status, latency=latency, unrecorded=self.recorder.dropped)

    def finish(self, now: float, tap: dict[str, int]) -> None:
        """Record and send the summary, the last frame."""
        self.report(now)
        status, rows = self.status(now), self.recorder.rows
        summary = GuardSummary(status=status, ticks=self.ticks, states=self.states, rows=rows, tap=tap)
        self.recorder.event("summary", now, **msgspec.to_builtins(summary))
        self.recorder.close({"trip": "" if status.trip is None else status.trip.reason})
        summary = msgspec.structs.replace(summary, rows=self.recorder.rows)
        self._tell(wire.encode_message(Kind.SUMMARY, self._sequence, now, summary))

    def welcome(self, name: str, command_hz: float) -> None:
        """Describe the robot to the policy."""
        welcome = wire.Welcome(
            joint_names=self.guard.spec.joint_names,
            name=name,
            lockstep=not self.driver.realtime,
            has_imu=self.guard.spec.imu is not None,
            command_hz=command_hz,
            physics_hz=command_hz,
            sends_gains=bool(getattr(self.driver, "sends_gains", True)),
        )
        self._tell(wire.encode_welcome(0, time.monotonic(), welcome))

    def _tell(self, frame: bytes) -> None:
        """Send without waiting; frames that the policy does not receive are lost."""
        if not self.is_deaf:
            with contextlib.suppress(OSError):
                self.channel.send(frame, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)


def _report(state: RobotState, acknowledged: int) -> StateReport:
    parts = [state.joint_pos, state.joint_vel, state.joint_torque, state.joint_temperature]
    has_imu = state.imu_quat is not None and state.imu_gyro is not None and state.imu_acc is not None
    imu = [part for part in (state.imu_quat, state.imu_gyro, state.imu_acc) if part is not None and has_imu]
    numbers = np.concatenate([*parts, *imu])
    sequence = state.sequence & 0xFFFFFFFF
    return StateReport(sequence, state.time_s, len(state.joint_pos), has_imu, acknowledged, state.voltage, numbers)
