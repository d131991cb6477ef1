"""Interface of servos of any protocol: options, readings, and the steps from `check` to `release`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol, cast

from trueup.core.arrays import FloatArray
from trueup.core.errors import TrueupError
from trueup.hardware.driver import Command
from trueup.hardware.drivers.servos.calibration import Ticks

SafeState = Literal["damp", "hold", "limp"]


@dataclass(frozen=True, kw_only=True)
class ServoCfg:
    """How servos are driven.

    safe          what `damp` does. "damp": no torque but that of braking; "hold": hold where it is with `soft_torque`;
                  "limp": torque off, which drops an arm
    torque        largest share of each joint's torque limit
    soft_torque   share of the servo's full torque in the safe state
    acceleration  Feetech: of moves to a goal, in 8.7 deg/s^2; 0: none
    watchdog_s    Dynamixel: silence after which the servo itself stops (Bus Watchdog); 0: never
    """

    safe: SafeState = "damp"
    torque: float = 1.0
    soft_torque: float = 0.2
    acceleration: int = 254
    watchdog_s: float = 0.5

    def __post_init__(self) -> None:
        if self.safe not in ("damp", "hold", "limp"):
            raise TrueupError(f"safe is damp, hold or limp, found {self.safe!r}", place="safe")
        for name in ("torque", "soft_torque"):
            if not 0.0 < getattr(self, name) <= 1.0:
                raise TrueupError(f"{name} is a share between 0 and 1, found {getattr(self, name)}", place=name)
        if not 0 <= self.acceleration <= 254:
            raise TrueupError(f"acceleration lies between 0 and 254, found {self.acceleration}", place="acceleration")
        if not 0.0 <= self.watchdog_s <= 2.54:
            raise TrueupError(f"watchdog_s lies between 0 and 2.54 s, found {self.watchdog_s}", place="watchdog_s")


def servo_cfg(safe: str, **numbers: str) -> ServoCfg:
    """Parse the options of a reference."""
    values: dict[str, Any] = {name: number(name, text) for name, text in numbers.items()}
    if "acceleration" in values:
        values["acceleration"] = round(values["acceleration"])
    return ServoCfg(safe=cast(SafeState, safe), **values)


def number(name: str, text: str) -> float:
    """An option's text as a finite number."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise TrueupError(f"option {name!r} takes a number, found {text!r}", place=name)
    return value


def sendable(command: Command, joint_names: tuple[str, ...]) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Target, kp and kd of a command; numbers that cannot be sent are refused first."""
    target, _, kp, kd, _ = command.finite_rows(joint_names)
    if (kp < 0.0).any() or (kd < 0.0).any():
        raise TrueupError("gains must not be negative: nothing was sent", place="kp, kd")
    return target, kp, kd


class ServoReadings(NamedTuple):
    """One report of all servos in joint order: ticks, ticks/s, counts of load, deg C; the lowest voltage; faults."""

    position: FloatArray
    velocity: FloatArray
    load: FloatArray
    temperature: FloatArray
    voltage: float
    faults: dict[str, str]


class Servos(Protocol):
    """Servos behind a bus. Gains are counts of the P and D registers; -1 leaves a register as it is."""

    most_gain: int

    def check(self) -> None:
        """Find every servo and refuse those in another operating mode. Writes nothing."""

    def read(self, patience_s: float) -> ServoReadings:
        """Read the state of all servos; silent ones are read again, at least twice and until `patience_s`."""

    def enable(self, goals: Ticks, p: Ticks, d: Ticks) -> None:
        """Enable torque at these goals and gains; values are read back."""

    def set_gains(self, p: Ticks, d: Ticks) -> None:
        """Send gains."""

    def set_goals(self, goals: Ticks) -> None:
        """Send goals."""

    def damp(self, here: Ticks, d: Ticks, *, is_first: bool) -> None:
        """Enter the safe state at the present positions `here`. The first call reads values back."""

    def release(self) -> None:
        """Restore servos in the safe state to what other programs expect."""
