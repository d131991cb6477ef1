"""Control tables: addresses, sizes and signs of the registers that are used of an STS3215 and of the X series.

STS    Feetech, "magnetic encoder STS memory table"; LeRobot's tables have the same addresses. Signs are a bit of their
       own (sign and magnitude): bit 15 of positions and velocities, bit 10 of the load, bit 11 of the homing offset.
X      ROBOTIS e-manual, control tables of XL430, XM430, XM540, XL330: two's complement.
"""

from __future__ import annotations

from dataclasses import dataclass

from trueup.core.errors import TrueupError


@dataclass(frozen=True)
class Register:
    """Bytes of a control table, low byte first.

    sign_bit  bit that makes the value negative (sign and magnitude)
    signed    two's complement
    """

    address: int
    size: int
    sign_bit: int | None = None
    signed: bool = False

    def encode(self, value: int) -> bytes:
        """A value as the servo stores it."""
        if self.sign_bit is not None and value < 0:
            value = -value | 1 << self.sign_bit
        try:
            return value.to_bytes(self.size, "little", signed=self.signed)
        except OverflowError:
            raise TrueupError(f"{value} does not fit into register {self.address} ({self.size} bytes)") from None

    def decode(self, block: bytes | bytearray, start: int) -> int:
        """The value in a block of registers that begins at address `start`."""
        at = self.address - start
        value = int.from_bytes(block[at : at + self.size], "little", signed=self.signed)
        if self.sign_bit is None or not value >> self.sign_bit & 1:
            return value
        return -(value & ~(1 << self.sign_bit))


class STS:
    """Feetech STS3215."""

    MODEL = Register(3, 2)
    MIN_POSITION, MAX_POSITION = Register(9, 2), Register(11, 2)
    MAX_TORQUE = Register(16, 2)
    PHASE = Register(18, 1)
    P_GAIN, D_GAIN, I_GAIN = Register(21, 1), Register(22, 1), Register(23, 1)
    RESOLUTION = Register(30, 1)
    HOMING_OFFSET = Register(31, 2, sign_bit=11)
    MODE = Register(33, 1)
    TORQUE_ENABLE, ACCELERATION = Register(40, 1), Register(41, 1)
    GOAL_POSITION, GOAL_TIME = Register(42, 2, sign_bit=15), Register(44, 2)
    GOAL_VELOCITY, TORQUE_LIMIT = Register(46, 2, sign_bit=15), Register(48, 2)
    LOCK = Register(55, 1)
    POSITION, VELOCITY = Register(56, 2, sign_bit=15), Register(58, 2, sign_bit=15)
    LOAD, VOLTAGE, TEMPERATURE = Register(60, 2, sign_bit=10), Register(62, 1), Register(63, 1)
    STATUS, MOVING = Register(65, 1), Register(66, 1)

    MODEL_NUMBER = 777
    STATE = (56, 8)  # position, velocity, load, voltage, temperature: first address and length
    SET_UP = (18, 16)  # phase to mode
    DRIVE = (40, 10)  # torque enable to torque limit
    FREE, HOLD, DAMP = 0, 1, 2  # of TORQUE_ENABLE
    FULL = 1000  # load and torque limits count in 0.1 %
    FINE_SPEED, MULTI_TURN = 0x04, 0x10  # bits of PHASE: velocities in 1 step/s instead of 50; more than one turn
    COARSE_STEP = 50
    BAUDS = (1_000_000, 500_000, 250_000, 128_000, 115_200, 76_800, 57_600, 38_400)


class X:
    """Dynamixel X series."""

    MODEL = Register(0, 2)
    MODE = Register(11, 1)
    HOMING_OFFSET = Register(20, 4, signed=True)
    PWM_LIMIT = Register(36, 2)
    MAX_POSITION, MIN_POSITION = Register(48, 4), Register(52, 4)
    TORQUE_ENABLE = Register(64, 1)
    HARDWARE_ERROR = Register(70, 1)
    D_GAIN, I_GAIN, P_GAIN = Register(80, 2), Register(82, 2), Register(84, 2)
    WATCHDOG = Register(98, 1, signed=True)
    GOAL_PWM = Register(100, 2, signed=True)
    PROFILE_ACCELERATION, PROFILE_VELOCITY = Register(108, 4), Register(112, 4)
    GOAL_POSITION = Register(116, 4, signed=True)
    CURRENT, VELOCITY = Register(126, 2, signed=True), Register(128, 4, signed=True)
    POSITION = Register(132, 4, signed=True)
    VOLTAGE, TEMPERATURE = Register(144, 2), Register(146, 1)

    STATE = (126, 21)  # current (load on XL430), velocity, position, ..., voltage, temperature
    RAM = 64  # registers below are stored for good, and locked while the torque is on
    POSITION_MODES = (3, 4, 5)  # one turn, several turns, current-based
    MOST_GAIN = 16383
    RPM_STEP = 0.229  # of velocities
    WATCHDOG_STEP_S = 0.02
    BAUDS = (57_600, 1_000_000, 115_200, 2_000_000, 3_000_000, 4_000_000, 9_600)
