"""Dynamixel X servos: registers of state, goals, gains and torque, and their safe state.

In the safe state "damp" the torque stays on with P = I = 0: of the position loop only D is left, which brakes. While
the torque is on, the servo's own Bus Watchdog stops it when no packet comes for a while (the host died); after a
pause of our own it is cleared before the next goal, because a servo stopped by it accepts none.
"""

from __future__ import annotations

import time

import numpy as np

from trueup.core.arrays import FloatArray
from trueup.core.errors import TrueupError
from trueup.hardware.drivers.servos.bus import ServoBus
from trueup.hardware.drivers.servos.calibration import ServoMap, Ticks
from trueup.hardware.drivers.servos.family import ServoCfg, ServoReadings
from trueup.hardware.drivers.servos.registers import Register, X

_STATE = (X.POSITION, X.VELOCITY, X.CURRENT, X.VOLTAGE, X.TEMPERATURE)
_GAINS = X.D_GAIN.address, 6  # D, I, P


class DynamixelServos:
    """X servos of a map."""

    most_gain = X.MOST_GAIN

    def __init__(self, bus: ServoBus, servos: ServoMap, cfg: ServoCfg) -> None:
        self._bus, self._map, self._cfg = bus, servos, cfg
        n = len(servos.ids)
        self._found_gains: dict[int, bytes] = {}
        self._found_d = self._pwm_limit = np.zeros(n, np.int64)
        self._speed_step = X.RPM_STEP / 60.0 * servos.ticks_per_rad * 2.0 * np.pi  # ticks/s of the joint a count

    def check(self) -> None:
        """Find the servos; refuse another mode than position, hardware errors, and another homing offset."""
        self._bus.find(X.MODEL.address, X.BAUDS)
        mode, offset, error = (self._get(register) for register in (X.MODE, X.HOMING_OFFSET, X.HARDWARE_ERROR))
        for j, servo in enumerate(self._map.servos):
            name = f"servo {servo.id} ({servo.joint})"
            if mode[j] not in X.POSITION_MODES:
                raise self._refused(f"{name} is in mode {mode[j]}; position modes (register 11) are 3, 4 and 5")
            if error[j]:
                raise self._refused(f"{name} reports hardware error {error[j]:#04x} (register 70): mend, reboot")
            if servo.homing_offset is not None and offset[j] != servo.homing_offset:
                found = f"{name} holds homing offset {offset[j]}, the calibration says {servo.homing_offset}"
                raise self._refused(f"{found}: calibrate anew")
        self._found_gains = {servo: reply.data for servo, reply in self._bus.read_all(*_GAINS).items()}
        self._found_d, self._pwm_limit = self._get(X.D_GAIN), self._get(X.PWM_LIMIT)

    def read(self, patience_s: float) -> ServoReadings:
        """Ask all servos for current, velocity, position, voltage and temperature."""
        start, length = X.STATE
        replies = self._bus.read_all(start, length, patience_s=patience_s)
        rows = [[register.decode(replies[servo].data, start) for register in _STATE] for servo in self._map.ids]
        position, velocity, current, voltage, temperature = np.array(rows, dtype=np.float64).T
        faults = {self._map.names[servo]: self._bus.codec.errors(replies[servo].error) for servo in self._map.ids}
        present = {joint: fault for joint, fault in faults.items() if fault}
        return ServoReadings(
            position, velocity * self._speed_step, current, temperature, 0.1 * float(voltage.min()), present
        )

    def enable(self, goals: Ticks, p: Ticks, d: Ticks) -> None:
        """Gains, no profile, PWM limit and goal; then torque, and the watchdog."""
        self._write(X.WATCHDOG, np.zeros(len(goals), np.int64))
        self._bus.set_all(_GAINS[0], self._gain_rows(p, d), "gains")
        self._bus.write_all(X.PROFILE_ACCELERATION.address, dict.fromkeys(self._map.ids, bytes(8)))
        self._write(X.GOAL_PWM, np.rint(self._cfg.torque * self._pwm_limit).astype(np.int64))
        self._write(X.GOAL_POSITION, goals)
        self._bus.set_all(X.TORQUE_ENABLE.address, self._rows(X.TORQUE_ENABLE, np.ones_like(goals)), "torque")
        self._arm()

    def set_gains(self, p: Ticks, d: Ticks) -> None:
        """P, D (as found where -1) and I = 0."""
        self._bus.write_all(_GAINS[0], self._gain_rows(p, d))

    def set_goals(self, goals: Ticks) -> None:
        """Send goals; after a pause in which the watchdog may have stopped the servos, clear it first."""
        if self._cfg.watchdog_s and time.monotonic() - self._bus.sent_at > 0.5 * self._cfg.watchdog_s:
            self._write(X.WATCHDOG, np.zeros(len(goals), np.int64))
            self._arm()
        self._write(X.GOAL_POSITION, goals)

    def damp(self, here: Ticks, d: Ticks, *, is_first: bool) -> None:
        if self._cfg.safe == "limp":
            rows = self._rows(X.TORQUE_ENABLE, np.zeros_like(here))
            self._settled(X.TORQUE_ENABLE.address, rows, is_first)
            return
        if is_first:
            self._write(X.WATCHDOG, np.zeros_like(here))
            self._write(X.GOAL_PWM, np.rint(self._cfg.soft_torque * self._pwm_limit).astype(np.int64))
            self._write(X.GOAL_POSITION, here)
        if self._cfg.safe == "damp":
            self._settled(_GAINS[0], self._gain_rows(np.zeros_like(here), d), is_first)
        self._settled(X.TORQUE_ENABLE.address, self._rows(X.TORQUE_ENABLE, np.ones_like(here)), is_first)

    def release(self) -> None:
        """After braking: torque off, gains as they were found."""
        if self._cfg.safe == "hold":
            return
        off = self._rows(X.TORQUE_ENABLE, np.zeros(len(self._map.ids), np.int64))
        self._bus.set_all(X.TORQUE_ENABLE.address, off, "torque off")
        self._bus.set_all(_GAINS[0], self._found_gains, "gains")

    def _arm(self) -> None:
        """Switch on the servos' own watchdog."""
        counts = round(self._cfg.watchdog_s / X.WATCHDOG_STEP_S)
        if counts:
            self._write(X.WATCHDOG, np.full(len(self._map.ids), counts))

    def _settled(self, address: int, rows: dict[int, bytes], is_first: bool) -> None:
        """Write, the first time with reading back."""
        self._bus.write_all(address, rows)
        if is_first:
            self._bus.set_all(address, rows, f"the safe state {self._cfg.safe!r}")

    def _gain_rows(self, p: Ticks, d: Ticks) -> dict[int, bytes]:
        d = np.where(d < 0, self._found_d, d)
        still = X.I_GAIN.encode(0)
        return {
            servo: X.D_GAIN.encode(int(d[j])) + still + X.P_GAIN.encode(int(p[j]))
            for j, servo in enumerate(self._map.ids)
        }

    def _get(self, register: Register) -> Ticks:
        replies = self._bus.read_all(register.address, register.size)
        return np.array([register.decode(replies[servo].data, register.address) for servo in self._map.ids], np.int64)

    def _write(self, register: Register, values: Ticks | FloatArray) -> None:
        self._bus.write_all(register.address, self._rows(register, values))

    def _rows(self, register: Register, values: Ticks | FloatArray) -> dict[int, bytes]:
        return {servo: register.encode(int(value)) for servo, value in zip(self._map.ids, values, strict=True)}

    def _refused(self, message: str) -> TrueupError:
        return TrueupError(message, file=self._bus.port.place)
