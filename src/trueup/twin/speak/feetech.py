"""A twin of an arm on Feetech STS3215 servos, at a pseudo-terminal: what `--driver feetech:PORT` talks to.

Emulated: control table, sync read and write, read, write, ping, position loop with P, D, torque limit and angle limits,
encoder steps, braking output. Not: acceleration profile, overload protection, heat of the electronics; a servo whose
torque is off moves as one that brakes, because the model's joint damping contains the motor's own.
"""

from __future__ import annotations

from collections.abc import Sequence

from trueup.hardware.drivers.servos.calibration import ServoMap, read_servo_map
from trueup.hardware.drivers.servos.feetech_protocol import FeetechCodec
from trueup.hardware.drivers.servos.registers import STS
from trueup.hardware.twin_cfg import ServeCfg
from trueup.twin.firmware import Twin
from trueup.twin.speak.servo_bus import ServoBusSpeaker
from trueup.twin.speak.servo_table import Drive, ServoTable

_SIZE = 256
_READ_ONLY = 56
_MIDDLE = 128  # written to Torque_Enable: makes the present position the middle; not emulated


class FeetechSpeaker(ServoBusSpeaker):
    """STS3215 servos by the robot's `feetech.toml`."""

    def __init__(self, twin: Twin, cfg: ServeCfg) -> None:
        servos = read_servo_map(twin.robot, "feetech")
        super().__init__(twin, cfg, FeetechCodec(), servos, [_table(servos, j) for j in range(len(servos.ids))])
        for table in self._tables.values():
            table.put(STS.GOAL_POSITION, table.get(STS.POSITION))

    def _write(self, table: ServoTable, address: int, data: bytes) -> int:
        """Everything below the measurements can be written; other addresses are passed over, as the servo does."""
        before = table.get(STS.TORQUE_ENABLE)
        room = data[: max(0, _READ_ONLY - address)]
        table.bytes[address : address + len(room)] = room
        if address <= STS.TORQUE_ENABLE.address < address + len(room):
            self._is_held = False
            if table.get(STS.TORQUE_ENABLE) == _MIDDLE:
                table.put(STS.TORQUE_ENABLE, before)
        return 0

    def _measure(self, table: ServoTable, counts: Sequence[int], volts: float, celsius: float) -> None:
        tick, speed, load = counts
        table.put(STS.POSITION, tick % 4096)
        table.put(STS.VELOCITY, max(-32767, min(32767, speed)))
        is_on = table.get(STS.TORQUE_ENABLE) == STS.HOLD or self._is_held
        table.put(STS.LOAD, max(-STS.FULL, min(STS.FULL, load)) if is_on else 0)
        table.put(STS.VOLTAGE, max(0, min(255, round(10.0 * volts))))
        table.put(STS.TEMPERATURE, max(0, min(255, round(celsius))))
        table.put(STS.MOVING, int(abs(speed) > 0))

    def _drive(self, table: ServoTable, j: int) -> Drive:
        servos = self._map
        goal = max(table.get(STS.MIN_POSITION), min(table.get(STS.MAX_POSITION), table.get(STS.GOAL_POSITION)))
        if table.get(STS.TORQUE_ENABLE) != STS.HOLD:
            return Drive(0.0, 0.0, goal, 0.0)
        share = min(table.get(STS.TORQUE_LIMIT), table.get(STS.MAX_TORQUE), STS.FULL) / STS.FULL
        kd = table.get(STS.D_GAIN) * servos.kd[j] if servos.kd[j] > 0.0 else 0.0
        return Drive(table.get(STS.P_GAIN) * servos.kp[j], kd, goal, share * STS.FULL * servos.torque[j])


def _table(servos: ServoMap, j: int) -> ServoTable:
    """A servo as it is after power-up: torque off, vendor's gains."""
    values = [
        (STS.MODEL, STS.MODEL_NUMBER),
        (STS.MIN_POSITION, 0),
        (STS.MAX_POSITION, 4095),
        (STS.MAX_TORQUE, STS.FULL),
        (STS.PHASE, 12),
        (STS.P_GAIN, 32),
        (STS.D_GAIN, 32),
        (STS.RESOLUTION, 1),
        (STS.HOMING_OFFSET, servos.servos[j].homing_offset or 0),
        (STS.TORQUE_LIMIT, STS.FULL),
        (STS.LOCK, 1),
    ]
    table = ServoTable(_SIZE, values)
    table.bytes[0:3] = bytes((3, 10, 0))  # firmware 3.10, low byte first
    table.bytes[5] = servos.ids[j]
    return table
