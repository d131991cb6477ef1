"""A twin of an arm on Dynamixel X servos, at a pseudo-terminal: what `--driver dynamixel:PORT` talks to.

Emulated: control table with stored registers locked while the torque is on, sync read and write, read, write, ping,
position loop with P, D, Goal PWM and position limits, Bus Watchdog, encoder steps. Not: velocity and current modes,
profiles, indirect addresses, bulk and fast instructions, shutdown on errors.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from trueup.hardware.drivers.servos.calibration import ServoMap, read_servo_map
from trueup.hardware.drivers.servos.dynamixel_protocol import DynamixelCodec
from trueup.hardware.drivers.servos.registers import X
from trueup.hardware.twin_cfg import ServeCfg
from trueup.twin.firmware import Twin
from trueup.twin.speak.servo_bus import ServoBusSpeaker
from trueup.twin.speak.servo_table import Drive, ServoTable

_SIZE = 1024
_MODEL, _FIRMWARE, _PWM = 1060, 45, 885  # of an XL430-W250
_ACCESS_ERROR = 7
_GOALS = range(X.GOAL_PWM.address, X.GOAL_POSITION.address + X.GOAL_POSITION.size)
_READ_ONLY = range(120, 148)


class DynamixelSpeaker(ServoBusSpeaker):
    """X servos by the robot's `dynamixel.toml`."""

    address_bytes = 2

    def __init__(self, twin: Twin, cfg: ServeCfg) -> None:
        servos = read_servo_map(twin.robot, "dynamixel")
        self._torque_limit = twin.robot.spec.torque_limit
        self._speed_step = X.RPM_STEP / 60.0 * servos.ticks_per_rad * 6.283185307179586
        tables = [_table(servos, j) for j in range(len(servos.ids))]
        self._index = {id(table): j for j, table in enumerate(tables)}
        super().__init__(twin, cfg, DynamixelCodec(), servos, tables)

    def _write(self, table: ServoTable, address: int, data: bytes) -> int:
        """Refuse what is stored while the torque is on, what is measured, and goals after the watchdog's stop."""
        is_on, ends = bool(table.get(X.TORQUE_ENABLE)), address + len(data)
        if ends > _SIZE or (is_on and address < X.RAM) or (address in _READ_ONLY):
            return _ACCESS_ERROR
        if table.get(X.WATCHDOG) < 0 and address in _GOALS:
            return _ACCESS_ERROR
        table.bytes[address:ends] = data
        if address <= X.TORQUE_ENABLE.address < ends:
            self._is_held = False
            if table.get(X.TORQUE_ENABLE) and not is_on:
                table.put(X.GOAL_POSITION, table.get(X.POSITION))
        return 0

    def _model(self, table: ServoTable) -> bytes:
        return X.MODEL.encode(table.get(X.MODEL)) + bytes((_FIRMWARE,))

    def _measure(self, table: ServoTable, counts: Sequence[int], volts: float, celsius: float) -> None:
        tick, speed, current = counts
        is_on = bool(table.get(X.TORQUE_ENABLE)) or self._is_held
        table.put(X.POSITION, tick)
        table.put(X.VELOCITY, round(speed / self._speed_step[self._index[id(table)]]))
        table.put(X.CURRENT, max(-32768, min(32767, current)) if is_on else 0)
        table.put(X.VOLTAGE, round(10.0 * volts))
        table.put(X.TEMPERATURE, max(0, min(255, round(celsius))))
        patience = table.get(X.WATCHDOG) * X.WATCHDOG_STEP_S
        if is_on and patience > 0.0 and time.monotonic() - self.heard_at > patience:
            table.put(X.WATCHDOG, -1)
            table.put(X.GOAL_POSITION, tick)  # stops where it is

    def _drive(self, table: ServoTable, j: int) -> Drive:
        servos = self._map
        goal = max(table.get(X.MIN_POSITION), min(table.get(X.MAX_POSITION), table.get(X.GOAL_POSITION)))
        if not table.get(X.TORQUE_ENABLE):
            return Drive(0.0, 0.0, goal, 0.0)
        kd = table.get(X.D_GAIN) * servos.kd[j] if servos.kd[j] > 0.0 else 0.0
        share = min(abs(table.get(X.GOAL_PWM)), table.get(X.PWM_LIMIT)) / _PWM
        return Drive(table.get(X.P_GAIN) * servos.kp[j], kd, goal, share * self._torque_limit[j])


def _table(servos: ServoMap, j: int) -> ServoTable:
    """A servo as it is after power-up: torque off, vendor's gains, position mode."""
    values = [
        (X.MODEL, _MODEL),
        (X.MODE, 3),
        (X.HOMING_OFFSET, servos.servos[j].homing_offset or 0),
        (X.PWM_LIMIT, _PWM),
        (X.MAX_POSITION, 4095),
        (X.D_GAIN, 4000),
        (X.P_GAIN, 640),
        (X.GOAL_PWM, _PWM),
    ]
    table = ServoTable(_SIZE, values)
    table.bytes[6:9] = bytes((_FIRMWARE, servos.ids[j], 3))  # baud code 3: 1 Mbit/s
    table.bytes[68] = 2  # answers everything
    return table
