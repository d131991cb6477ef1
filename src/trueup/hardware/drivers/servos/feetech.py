"""Feetech STS servos: registers of state, goals, gains and torque, and their safe state.

In the safe state "damp" the servo's own damping output (Torque_Enable 2) brakes the motor by its windings. Before that
the goal is set to the present position and the torque limit lowered, so that firmware that does not know the value 2
holds softly instead. Gains lie in memory that survives power-off unless the lock is on; it is put on first.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

import numpy as np

from trueup.core.arrays import FloatArray
from trueup.core.errors import TrueupError
from trueup.hardware.drivers.servos.bus import NotTakenError, ServoBus
from trueup.hardware.drivers.servos.calibration import ServoMap, Ticks
from trueup.hardware.drivers.servos.family import ServoCfg, ServoReadings
from trueup.hardware.drivers.servos.packet import Reply
from trueup.hardware.drivers.servos.registers import STS

_log = logging.getLogger(__name__)
_STATE = (STS.POSITION, STS.VELOCITY, STS.LOAD, STS.VOLTAGE, STS.TEMPERATURE)


class FeetechServos:
    """STS servos of a map. `torque_limit` is each joint's, N m."""

    most_gain = 254

    def __init__(self, bus: ServoBus, servos: ServoMap, cfg: ServoCfg, torque_limit: FloatArray) -> None:
        self._bus, self._map, self._cfg = bus, servos, cfg
        self._speed_step = np.ones(len(servos.ids))
        self._found_d = np.zeros(len(servos.ids), np.int64)
        counts = servos.counts(cfg.torque * torque_limit, servos.torque, STS.FULL)
        self._torque = np.where(counts < 0, round(cfg.torque * STS.FULL), counts)

    def check(self) -> None:
        """Find the servos; refuse another mode than position, several turns, and another homing offset."""
        models = self._bus.find(STS.MODEL.address, STS.BAUDS)
        for servo, model in models.items():
            if model != STS.MODEL_NUMBER:
                _log.warning(
                    "servo %d (%s) has model number %d, no STS3215 (777)", servo, self._map.names[servo], model
                )
        start, length = STS.SET_UP
        for j, (servo, reply) in enumerate(self._in_order(self._bus.read_all(start, length))):
            phase, mode = STS.PHASE.decode(reply, start), STS.MODE.decode(reply, start)
            offset, wanted = STS.HOMING_OFFSET.decode(reply, start), self._map.servos[j].homing_offset
            if mode != 0:
                raise self._refused(servo, f"is in mode {mode}; position mode (register 33) is 0")
            if phase & STS.MULTI_TURN:
                raise self._refused(servo, "counts several turns: clear bit 4 of Phase (register 18)")
            if wanted is not None and offset != wanted:
                raise self._refused(
                    servo, f"holds homing offset {offset}, the calibration says {wanted}: calibrate anew"
                )
            self._speed_step[j] = 1.0 if phase & STS.FINE_SPEED else STS.COARSE_STEP

    def read(self, patience_s: float) -> ServoReadings:
        """Ask all servos for position, velocity, load, voltage and temperature."""
        start, length = STS.STATE
        replies = self._bus.read_all(start, length, patience_s=patience_s)
        rows = [[register.decode(replies[servo].data, start) for register in _STATE] for servo in self._map.ids]
        position, velocity, load, voltage, temperature = np.array(rows, dtype=np.float64).T
        faults = {self._map.names[servo]: self._bus.codec.errors(replies[servo].error) for servo in self._map.ids}
        return ServoReadings(
            position, velocity * self._speed_step, load, temperature, 0.1 * float(voltage.min()), _present(faults)
        )

    def enable(self, goals: Ticks, p: Ticks, d: Ticks) -> None:
        """Lock the memory, set gains, then goal and torque limit, then torque."""
        self._bus.set_all(STS.LOCK.address, self._same(b"\x01"), "the lock of its memory")
        found = self._in_order(self._bus.read_all(STS.P_GAIN.address, 3, is_urgent=True))
        self._found_d = np.array([row[1] for _, row in found])
        self._bus.set_all(STS.P_GAIN.address, self._gain_rows(p, d), "gains")
        self._drive(goals, self._torque)
        self._bus.set_all(STS.TORQUE_ENABLE.address, self._same(bytes((STS.HOLD,))), "torque")

    def set_gains(self, p: Ticks, d: Ticks) -> None:
        """P, D (as found where -1) and I = 0."""
        self._bus.write_all(STS.P_GAIN.address, self._gain_rows(p, d))

    def set_goals(self, goals: Ticks) -> None:
        rows = {servo: STS.GOAL_POSITION.encode(int(goal)) for servo, goal in zip(self._map.ids, goals, strict=True)}
        self._bus.write_all(STS.GOAL_POSITION.address, rows)

    def damp(self, here: Ticks, d: Ticks, *, is_first: bool) -> None:
        wanted = {"damp": STS.DAMP, "hold": STS.HOLD, "limp": STS.FREE}[self._cfg.safe]
        if wanted != STS.FREE and is_first:
            self._drive(here, np.full(len(here), round(self._cfg.soft_torque * STS.FULL)))
        rows = self._same(bytes((wanted,)))
        self._bus.write_all(STS.TORQUE_ENABLE.address, rows)
        if is_first:
            try:
                self._bus.set_all(STS.TORQUE_ENABLE.address, rows, f"the safe state {self._cfg.safe!r}")
            except NotTakenError as error:
                if self._cfg.safe != "damp":
                    raise
                _log.warning("%s; it holds with %g of its torque instead", error, self._cfg.soft_torque)

    def release(self) -> None:
        """Does nothing: a servo keeps braking or holding."""

    def _drive(self, goals: Ticks, torque: Ticks) -> None:
        """Acceleration, goal, no time, full speed and torque limit in one packet."""
        rows = {
            servo: STS.ACCELERATION.encode(self._cfg.acceleration)
            + STS.GOAL_POSITION.encode(int(goals[j]))
            + STS.GOAL_TIME.encode(0)
            + STS.GOAL_VELOCITY.encode(0)
            + STS.TORQUE_LIMIT.encode(int(torque[j]))
            for j, servo in enumerate(self._map.ids)
        }
        self._bus.write_all(STS.ACCELERATION.address, rows)

    def _gain_rows(self, p: Ticks, d: Ticks) -> dict[int, bytes]:
        d = np.where(d < 0, self._found_d, d)
        return {servo: bytes((int(p[j]), int(d[j]), 0)) for j, servo in enumerate(self._map.ids)}

    def _same(self, row: bytes) -> dict[int, bytes]:
        return dict.fromkeys(self._map.ids, row)

    def _in_order(self, replies: Mapping[int, Reply]) -> list[tuple[int, bytes]]:
        return [(servo, replies[servo].data) for servo in self._map.ids]

    def _refused(self, servo: int, message: str) -> TrueupError:
        return TrueupError(f"servo {servo} ({self._map.names[servo]}) {message}", file=self._bus.port.place)


def _present(faults: dict[str, str]) -> dict[str, str]:
    return {joint: fault for joint, fault in faults.items() if fault}
