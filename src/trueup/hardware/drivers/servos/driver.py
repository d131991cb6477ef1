"""ServoDriver: position servos on a serial line as a `Driver`; `feetech:PORT` and `dynamixel:PORT`.

A servo has its own position loop, so of a command it takes the target position and the gains:

    target_pos   to ticks, within the servo's range
    kp, kd       to counts of its P and D by the scale of the servo map; read back at the first command, sent three
                 times when they change
    target_vel, torque   cannot be sent; what `write` returns has zeros there

`write` returns the sent command in SI, after rounding to ticks and counts. A command whose kp is zero everywhere is
damping, the same as `damp`. Nothing is written before the first command: `connect` only reads. The two threads of a
motor guard may read and write at the same time.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable
from typing import Literal

import numpy as np

from trueup.core.errors import TrueupError
from trueup.hardware.driver import Command, ConnectedWithin, RobotState, connected
from trueup.hardware.drivers.servos.bus import ServoBus
from trueup.hardware.drivers.servos.calibration import ServoMap, Ticks, read_servo_map, with_baud
from trueup.hardware.drivers.servos.dynamixel import DynamixelServos
from trueup.hardware.drivers.servos.dynamixel_protocol import DynamixelCodec
from trueup.hardware.drivers.servos.family import ServoReadings, Servos, number, sendable, servo_cfg
from trueup.hardware.drivers.servos.feetech import FeetechServos
from trueup.hardware.drivers.servos.feetech_protocol import FeetechCodec
from trueup.hardware.drivers.servos.packet import Codec
from trueup.hardware.drivers.servos.port import SerialPort
from trueup.robot.load import Robot
from trueup.robot.spec import RobotSpec

_log = logging.getLogger(__name__)
LEAST_HZ, MOST_READ_HZ = 100.0, 250.0  # of commands for a guard; of states, unless asked otherwise
PATIENCE_S = 0.1  # of `read`, which asks silent servos again until then
_RESENDS = 2  # repetitions of changed gains: sync writes have no answer
Family = Callable[[ServoBus], Servos]


class ServoDriver(ConnectedWithin):
    """A `Driver` for servos on one bus.

    command_hz  rate that suits the bus, for a guard in between
    read_hz     highest rate of states: `read` waits for its turn, so that a loop of reads leaves room for commands
    timeout_s   for an answer, beyond the time its bytes need on the wire

    After `connect`, `bus.asked` and `bus.lost` count requests and lost answers; `trouble` names servos that are silent
    now.
    """

    realtime = True

    def __init__(
        self,
        spec: RobotSpec,
        place: str,
        servos: ServoMap,
        codec: Codec,
        family: Family,
        *,
        command_hz: float,
        read_hz: float,
        timeout_s: float = 0.015,
    ) -> None:
        if np.isnan(servos.kp).any():
            raise TrueupError("the servo map needs scale.kp (N m/rad of one count of P) to send gains")
        self.joint_names, self.command_hz = spec.joint_names, command_hz
        self._place, self._map, self._codec, self._family = place, servos, codec, family
        self._period, self._timeout = 1.0 / read_hz, timeout_s
        self.bus: ServoBus | None = None
        self._servos: Servos | None = None
        self._mode: Literal["idle", "active", "unsure", "safe"] = "idle"
        self._writing = threading.RLock()
        self._gains: tuple[Ticks, Ticks] | None = None
        self._resends = 0
        self._kd = spec.kd
        self._here: Ticks | None = None
        self._sequence, self._due = 0, 0.0
        self._faults: dict[str, str] = {}
        self._has_warned = False

    @property
    def trouble(self) -> str:
        """Servos that did not answer the newest request, as text; "" when all did."""
        error = self.bus.trouble if self.bus is not None else None
        return str(error) if error is not None else ""

    # --- Driver ---
    def connect(self) -> None:
        """Open the port, find every servo, check how it is set up. Nothing is written, nothing moves."""
        if self.bus is not None:
            raise TrueupError("this driver is connected already")
        self.bus = ServoBus(
            SerialPort(self._place, self._map.baud), self._codec, self._map.names, timeout_s=self._timeout
        )
        try:
            self._servos = self._family(self.bus)
            self._servos.check()
        except BaseException:
            self._let_go()
            raise

    def read(self) -> RobotState:
        """Return the next state; lost answers are requested again, servos that stay silent are named.

        `time_s` is when the last answer came; after a loss the first ones are older by the time that took, some 10 ms.
        """
        servos = connected(self._servos)
        now = time.monotonic()
        self._due = max(self._due + self._period, now)
        time.sleep(self._due - now)
        return self._state(servos.read(PATIENCE_S))

    def write(self, command: Command) -> Command:
        """Send a command; return it as sent."""
        target, kp, kd = sendable(command, self.joint_names)
        self._warn_of_what_is_left_out(command)
        if not kp.any():
            return self.damp()
        servos, n = connected(self._servos), len(target)
        p = self._map.counts(kp, self._map.kp, servos.most_gain)
        d = self._map.counts(kd, self._map.kd, servos.most_gain)
        goals = self._map.ticks(target)
        with self._writing:
            if self._mode != "active":
                self._mode = "unsure"
                servos.enable(goals, p, d)
                self._mode, self._gains, self._resends = "active", (p, d), 0
            self._send_gains(servos, p, d)
            servos.set_goals(goals)
        sent_kd = np.where(d >= 0, d * np.nan_to_num(self._map.kd), 0.0)
        zero = np.zeros(n)
        pos = self._map.radians(goals)
        return Command(target_pos=pos, target_vel=zero, kp=p * self._map.kp, kd=sent_kd, torque=zero.copy())

    def damp(self) -> Command:
        """The safe state of the option `safe`: brake, hold softly or go limp."""
        servos = connected(self._servos)
        with self._writing:
            is_first = self._mode != "safe"
            if is_first:
                if self._here is None:
                    self._state(servos.read(PATIENCE_S))
                self._mode = "unsure"
            assert self._here is not None
            d = self._map.counts(self._kd, self._map.kd, servos.most_gain)
            servos.damp(self._here, d, is_first=is_first)
            self._mode = "safe"
        zero = [np.zeros(len(self.joint_names)) for _ in range(4)]
        return Command(
            target_pos=self._map.radians(self._here), target_vel=zero[0], kp=zero[1], kd=zero[2], torque=zero[3]
        )

    def close(self) -> None:
        """Damp (unless nothing was ever written) and close the port. Safe to call twice."""
        if self._servos is not None and self._mode != "idle":
            try:
                self.damp()
                self._servos.release()
            except TrueupError as error:
                _log.error("damping at the end failed: %s", error)
        self._let_go()

    # --- parts ---
    def _send_gains(self, servos: Servos, p: Ticks, d: Ticks) -> None:
        """Send gains that have changed, now and with the next commands."""
        if self._gains is None or (p != self._gains[0]).any() or (d != self._gains[1]).any():
            self._gains, self._resends = (p, d), 1 + _RESENDS
        if self._resends:
            self._resends -= 1
            servos.set_gains(p, d)

    def _state(self, readings: ServoReadings) -> RobotState:
        servos = self._map
        self._sequence += 1
        self._here = np.rint(readings.position).astype(np.int64)
        if readings.faults != self._faults:
            _log.warning("servos report faults: %s", readings.faults or "none any more")
            self._faults = readings.faults
        return RobotState(
            sequence=self._sequence,
            time_s=time.monotonic(),
            joint_pos=servos.radians(readings.position),
            joint_vel=servos.sign * readings.velocity / servos.ticks_per_rad,
            joint_torque=servos.sign * readings.load * servos.torque,
            joint_temperature=readings.temperature,
            voltage=readings.voltage,
        )

    def _warn_of_what_is_left_out(self, command: Command) -> None:
        if not self._has_warned and (np.any(command.torque) or np.any(command.target_vel)):
            self._has_warned = True
            _log.warning("position servos take no torque and no velocity: both are left out of commands")

    def _let_go(self) -> None:
        if self.bus is not None:
            with contextlib.suppress(TrueupError, OSError):
                self.bus.close()
        self.bus, self._servos, self._mode, self._gains, self._here = None, None, "idle", None, None


def make_feetech(
    robot: Robot,
    command_hz: float,
    place: str,
    *,
    map: str = "",
    calibration: str = "",
    baud: str = "",
    safe: str = "damp",
    torque: str = "1",
    soft_torque: str = "0.2",
    acceleration: str = "254",
    read_hz: str = "",
    timeout_ms: str = "15",
) -> ServoDriver:
    """Driver of STS servos at a serial port, not yet connected. Options: docs/drivers/feetech.md."""
    servos = with_baud(read_servo_map(robot, "feetech", map, calibration), baud)
    cfg = servo_cfg(safe=safe, torque=torque, soft_torque=soft_torque, acceleration=acceleration)
    limit = robot.spec.torque_limit
    rates = _rates(command_hz, read_hz, timeout_ms)
    return ServoDriver(
        robot.spec, place, servos, FeetechCodec(), lambda bus: FeetechServos(bus, servos, cfg, limit), **rates
    )


def make_dynamixel(
    robot: Robot,
    command_hz: float,
    place: str,
    *,
    map: str = "",
    calibration: str = "",
    baud: str = "",
    safe: str = "damp",
    torque: str = "1",
    soft_torque: str = "0.2",
    watchdog_s: str = "0.5",
    read_hz: str = "",
    timeout_ms: str = "15",
) -> ServoDriver:
    """Driver of X series servos at a serial port, not yet connected. Options: docs/drivers/dynamixel.md."""
    servos = with_baud(read_servo_map(robot, "dynamixel", map, calibration), baud)
    cfg = servo_cfg(safe=safe, torque=torque, soft_torque=soft_torque, watchdog_s=watchdog_s)
    rates = _rates(command_hz, read_hz, timeout_ms)
    return ServoDriver(
        robot.spec, place, servos, DynamixelCodec(), lambda bus: DynamixelServos(bus, servos, cfg), **rates
    )


def _rates(command_hz: float, read_hz: str, timeout_ms: str) -> dict[str, float]:
    """Rates and the time for an answer. States come up to twice as often as commands: a loop never waits for one."""
    command_hz = max(command_hz, LEAST_HZ)
    reads = number("read_hz", read_hz) if read_hz else min(2.0 * command_hz, MOST_READ_HZ)
    timeout_s = 1e-3 * number("timeout_ms", timeout_ms)
    if not (1.0 <= reads <= 1000.0 and 0.0005 <= timeout_s <= 1.0):
        raise TrueupError(f"read_hz is 1 to 1000, timeout_ms 0.5 to 1000, found {reads:g} and {timeout_ms}")
    return {"command_hz": command_hz, "read_hz": reads, "timeout_s": timeout_s}
