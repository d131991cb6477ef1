"""The control table of an emulated servo, and its drive of the motor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from trueup.hardware.drivers.servos.registers import Register


class Drive(NamedTuple):
    """Drive of one servo by its registers: gains, goal (tick), torque limit (N m)."""

    kp: float
    kd: float
    goal: float
    torque_limit: float


class ServoTable:
    """The control table of one servo."""

    def __init__(self, size: int, values: Sequence[tuple[Register, int]]) -> None:
        self.bytes = bytearray(size)
        for register, value in values:
            self.put(register, value)

    def get(self, register: Register) -> int:
        """A register's value."""
        return register.decode(self.bytes, 0)

    def put(self, register: Register, value: int) -> None:
        """Set a register."""
        self.bytes[register.address : register.address + register.size] = register.encode(value)
