"""A bus of emulated servos in real time: bytes in, registers, the twin's physics, bytes out.

Registers are bytes, as in the servo. Goals, gains and torque limits become commands of the twin; what the twin measures
becomes registers once per command period. Answers leave when the last byte would have passed a wire of the bus' speed.
Until torque is first switched (on, off or to braking) the arm is held where it starts, as by a hand.
"""

from __future__ import annotations

import select
import time
from collections import Counter, deque
from collections.abc import Sequence

import numpy as np

from trueup.core.arrays import FloatArray
from trueup.core.errors import TrueupError
from trueup.hardware.drivers.servos.calibration import ServoMap
from trueup.hardware.drivers.servos.packet import (
    BROADCAST,
    PING,
    READ,
    SYNC_READ,
    SYNC_WRITE,
    WRITE,
    Codec,
    Reply,
    ServoPacket,
)
from trueup.hardware.twin_cfg import ServeCfg
from trueup.twin.firmware import Twin
from trueup.twin.real_time import ServedTwin
from trueup.twin.speak.pty_line import PtyLine
from trueup.twin.speak.servo_table import Drive, ServoTable

RETURN_DELAY_S = 50e-6  # from the last byte of a question to the first of the answer
_MOST_UNREAD = 2048  # bytes that made no packet so far


class ServoBusSpeaker(ServedTwin):
    """A twin behind a servo bus; protocols fill in `_write`, `_measure` and `_drive`.

    address_bytes  of an address or length in instructions

    `instructions` counts what was understood, by code.
    """

    address_bytes = 1

    def __init__(self, twin: Twin, cfg: ServeCfg, codec: Codec, servos: ServoMap, tables: Sequence[ServoTable]) -> None:
        if cfg.lockstep:
            raise TrueupError("a serial line has no lock-step: leave --lockstep out")
        if np.isnan(servos.kp).any():
            raise TrueupError("a twin's servos need scale.kp in the servo map")
        super().__init__(twin, cfg)
        self._codec, self._map = codec, servos
        self._tables = dict(zip(servos.ids, tables, strict=True))
        self._line = PtyLine(cfg.place)
        self.reference = f"{codec.name}:{self._line.port}"
        self._unread = b""
        self.instructions: Counter[int] = Counter()
        self._outbox: deque[tuple[float, bytes]] = deque()
        self._is_held = True
        self._has_changed = False
        self._position = np.zeros(len(servos.ids))
        self.heard_at = time.monotonic()
        self._take_reading()

    # --- of a protocol ---
    def _write(self, table: ServoTable, address: int, data: bytes) -> int:
        """Write registers; returns the error of the answer."""
        raise NotImplementedError

    def _measure(self, table: ServoTable, counts: Sequence[int], volts: float, celsius: float) -> None:
        """Set the registers of a measurement: `counts` are tick, ticks/s and load."""
        raise NotImplementedError

    def _drive(self, table: ServoTable, j: int) -> Drive:
        """Drive of motor j by its registers."""
        raise NotImplementedError

    def _model(self, table: ServoTable) -> bytes:
        """Data of the answer to a ping."""
        return b""

    # --- time ---
    def close(self) -> None:
        """Pull the cable. Safe to call twice."""
        self._line.close()
        super().close()

    def _report(self) -> None:
        """Measure, and give the motors the registers' command."""
        self._take_reading()
        self._command(0.0)

    def _listen_until(self, due: float, began: float) -> None:
        """Take in and send out bytes until the period ends; a twin that is behind its clock listens all the same."""
        while True:
            now = time.perf_counter()
            ready = [self._outbox.popleft()[1] for due_s, _ in list(self._outbox) if due_s <= now]
            if ready:
                self._line.write(b"".join(ready))
            until = min(due, self._outbox[0][0]) if self._outbox else due
            if select.select([self._line], [], [], max(0.0, until - now))[0]:
                ahead = self._steps_since(began)
                self._receive(self._line.read())
                if self._has_changed:
                    self._command(ahead)
            if now >= due:
                return

    # --- bytes ---
    def _receive(self, data: bytes) -> None:
        """Act on the instructions in what came; at another speed than the bus' own nobody understands anything."""
        if self._line.baud() not in (None, self._map.baud):
            return
        for part in self._arrived(data):
            self._unread = (self._unread + part)[-_MOST_UNREAD:]
            packets, end = self._codec.scan(self._unread)
            self._unread = self._unread[end:]
            for packet in packets:
                self.heard_at = time.monotonic()
                self.instructions[packet.code] += 1
                self._answer(packet)

    def _answer(self, packet: ServoPacket) -> None:
        replies = self._obey(packet)
        if not replies:
            return
        packets = [self._codec.status(reply) for reply in replies]
        size = len(self._codec.encode(packet)) + sum(map(len, packets))
        due = time.perf_counter() + 10.0 * size / self._map.baud + RETURN_DELAY_S * len(packets)
        for answer in packets:
            for copy in self._sent(answer):
                self._outbox.append((due, copy))

    def _obey(self, packet: ServoPacket) -> list[Reply]:
        """Execute an instruction; returns the servos' answers."""
        k, data = self.address_bytes, packet.data
        address, length = int.from_bytes(data[:k], "little"), int.from_bytes(data[k : 2 * k], "little")
        if packet.code == SYNC_READ:
            return [self._read(servo, address, length) for servo in data[2 * k :] if servo in self._tables]
        if packet.code == SYNC_WRITE:
            rest = data[2 * k :]
            for at in range(0, len(rest) - length, length + 1):
                if rest[at] in self._tables:
                    self._store(rest[at], address, rest[at + 1 : at + 1 + length])
            return []
        everyone = packet.id == BROADCAST
        addressed = [servo for servo in self._tables if everyone or servo == packet.id]
        if packet.code == PING:
            return [Reply(servo, 0, self._model(self._tables[servo])) for servo in addressed]
        if packet.code == READ and not everyone:
            return [self._read(servo, address, length) for servo in addressed]
        if packet.code == WRITE:
            replies = [Reply(servo, self._store(servo, address, data[k:]), b"") for servo in addressed]
            return [] if everyone else replies
        return []

    def _read(self, servo: int, address: int, length: int) -> Reply:
        return Reply(servo, 0, bytes(self._tables[servo].bytes[address : address + length]).ljust(length, b"\0"))

    def _store(self, servo: int, address: int, data: bytes) -> int:
        self._has_changed = True
        return self._write(self._tables[servo], address, data)

    # --- physics ---
    def _take_reading(self) -> None:
        """Set the registers of what is measured, as a servo's electronics would see it."""
        state, servos = self.twin.state(), self._map
        self._position = state.joint_pos
        ticks = np.rint(self._exact_ticks(state.joint_pos))
        speed = np.rint(servos.sign * state.joint_vel * servos.ticks_per_rad)
        load = np.rint(np.nan_to_num(servos.sign * state.joint_torque / servos.torque))
        supply = self.twin.truth.supply  # a battery sags by the same share at the servos' own voltage
        volts = servos.voltage * (1.0 if supply is None else state.voltage / supply.voltage)
        rows = np.stack([ticks, speed, load]).T.astype(np.int64)
        for table, row, celsius in zip(self._tables.values(), rows, state.joint_temperature, strict=True):
            self._measure(table, row.tolist(), volts, float(celsius))

    def _command(self, ahead_steps: float) -> None:
        """Give the twin what the registers ask for; a torque limit brings the target closer to where the joint is."""
        self._has_changed = False
        if self._is_held:
            return
        drives = np.array([self._drive(table, j) for j, table in enumerate(self._tables.values())])
        kp, kd, goal, limit = drives.T
        target = self._map.radians(goal)
        reach = limit / np.maximum(kp, 1e-9)
        near = self._position + np.clip(target - self._position, -reach, reach)
        spec = self.twin.robot.spec
        inside = (target >= spec.position_low) & (target <= spec.position_high)
        near = np.where(inside, np.clip(near, spec.position_low, spec.position_high), near)
        zero = np.zeros_like(kp)
        rows = np.stack(
            [np.where(kp > 0.0, near, np.clip(self._position, spec.position_low, spec.position_high)), zero]
        )
        rows = np.concatenate([rows, np.stack([kp, kd, zero])])
        self._give(rows, ahead_steps)

    def _exact_ticks(self, position: FloatArray) -> FloatArray:
        servos = self._map
        return np.array([servo.zero for servo in servos.servos]) + servos.sign * position * servos.ticks_per_rad
