"""UnitreeDriver: go2, b2 and g1 over DDS.

unitree:eth0                    the network interface that the robot is wired to
unitree:lo?domain=7             a twin: `trueup twin serve go2 --speak unitree --place lo?domain=7`
unitree:eth0?listen=1           reads states and other programs' commands, sends nothing

Reading and writing may go on in two threads. States with a wrong checksum are dropped (`bad_states`).
"""

from __future__ import annotations

import contextlib
import threading
import time
from dataclasses import dataclass

import msgspec
import numpy as np

from trueup.core.errors import TrueupError
from trueup.hardware.driver import Command, ConnectedWithin, RobotState, connected, damping
from trueup.hardware.drivers.dds import DdsBus, Outbox
from trueup.hardware.drivers.unitree.codec import encode_command, sent_rows
from trueup.hardware.drivers.unitree.crc import stamp
from trueup.hardware.drivers.unitree.motors import wiring_of
from trueup.hardware.drivers.unitree.streams import LOW_CMD, LOW_STATE, CommandStream, StateStream
from trueup.hardware.drivers.unitree.switcher import release_sport_mode
from trueup.robot.load import Robot

_QUIET_S, _QUIET_WITHIN_S = 0.1, 3.0  # of others' commands after release
_STILL_RAD_S, _STILL_S, _LIE_DOWN_S = 0.2, 0.3, 6.0
_LAST_DAMPINGS = 10  # commands at close, one a period


@dataclass(frozen=True, kw_only=True)
class UnitreeCfg:
    """Options of the driver, as they stand behind the question mark."""

    domain: int = 0
    """DDS domain; robots use 0."""
    release: bool = True
    """End the robot's sport mode first; 0: you did that yourself."""
    stand_down: bool = True
    """Quadrupeds lie down before sport mode is ended; 0: the robot hangs or lies."""
    listen: bool = False
    """Send nothing, ever."""
    crc: bool = True
    """Drop states whose checksum is wrong; 0: for firmware that does not fill it in."""
    timeout: float = 0.5
    """Seconds without a state after which `read` gives up."""
    connect: float = 5.0
    """Seconds for the robot to be found, and for each of its services to answer."""


class UnitreeDriver(ConnectedWithin):
    """A `Driver` for Unitree robots.

    other_commander  who else has sent LowCmd since `connect`, in words; None: nobody. Set by `read`.
    """

    def __init__(self, robot: Robot, command_hz: float, place: str, cfg: UnitreeCfg | None = None) -> None:
        if not place:
            raise TrueupError("a Unitree robot needs a network interface: unitree:eth0", place="unitree:")
        self.joint_names = robot.spec.joint_names
        self.realtime = True
        self.command_hz = command_hz
        self.other_commander: str | None = None
        self.released = ""  # name of the motion service that was ended
        self._spec, self._place, self._cfg = robot.spec, place, cfg or UnitreeCfg()
        self._wiring = wiring_of(robot.spec)
        self._reading = threading.Lock()
        self._bus: DdsBus | None = None
        self._out: Outbox | None = None
        self._sent = 0

    # --- Driver ---
    def connect(self) -> None:
        """Find the robot and end its sport mode; nothing is commanded."""
        if self._bus is not None:
            raise TrueupError("this driver is connected already")
        bus = self._bus = DdsBus(self._place, self._cfg.domain, "unitree")
        try:
            self._states = StateStream(bus, self._wiring, check_crc=self._cfg.crc)
            self._others = CommandStream(bus, self._wiring)
            if self._states.next(self._cfg.connect) is None:
                raise self._silent(self._cfg.connect)
            if not self._cfg.listen:
                self._take_over(bus)
        except BaseException:
            self._let_go()
            raise

    def read(self) -> RobotState:
        connected(self._bus)
        with self._reading:
            state = self._states.next(self._cfg.timeout)
            if self._others.look() and not self._cfg.listen and self.other_commander is None:
                self.other_commander = f"{self._others.sender} sends {LOW_CMD} on {connected(self._bus).place}"
        if state is None:
            raise self._silent(self._cfg.timeout)
        return state

    def write(self, command: Command) -> Command:
        """Send one LowCmd; returns the numbers as float32 carries them. Numbers that are not finite are refused."""
        if self._cfg.listen:
            raise TrueupError(f"this driver listens only (listen=1): nothing is sent to {self._spec.name}")
        out, rows = connected(self._out), sent_rows(command, self.joint_names)
        out.send(self._wiring.family.low_cmd.to_cdr(stamp(encode_command(self._wiring, rows, self.mode_machine))))
        self._sent += 1
        return Command(**dict(zip(vars(command), rows, strict=True)))

    def damp(self) -> Command:
        return self.write(damping(self._spec.default_pose, self._spec.kd))

    def close(self) -> None:
        """Damp for a few periods and disconnect; sport mode stays ended. Safe to call twice."""
        if self._out is not None:
            with contextlib.suppress(TrueupError):
                for _ in range(_LAST_DAMPINGS):
                    self.damp()
                    time.sleep(1.0 / max(self.command_hz, 100.0))
        self._let_go()

    # --- beyond the protocol ---
    def observe(self) -> tuple[RobotState, Command | None]:
        """Return the newest state and another program's present command, None when there is none.

        A target position is NaN for joints without position control.
        """
        state = self.read()
        return state, self._others.in_force()

    @property
    def bad_states(self) -> int:
        """States that were dropped for their checksum or length."""
        return self._states.bad

    @property
    def old_states(self) -> int:
        """States that were dropped for a tick older than the one before."""
        return self._states.old

    @property
    def sent(self) -> int:
        """Commands sent so far."""
        return self._sent

    @property
    def mode_machine(self) -> int:
        """A humanoid's build, as its states say; commands must repeat it."""
        return self._states.mode_machine

    # --- parts of connect ---
    def _take_over(self, bus: DdsBus) -> None:
        """Take over control of the motors."""
        out = bus.outbox(LOW_CMD, self._wiring.family.low_cmd.sample)
        if self._cfg.release:
            folds = self._wiring.family.legs_fold and self._cfg.stand_down
            lie_down = self._wait_until_still if folds else None
            self.released = release_sport_mode(bus, lie_down=lie_down, timeout_s=self._cfg.connect)
            if not self._others.wait_for_quiet(_QUIET_S, _QUIET_WITHIN_S):
                who = f"sport mode is ended, and still {self._others.sender} sends {LOW_CMD} on {bus.place}"
                raise TrueupError(f"{who}; end that program")
        end = time.monotonic() + self._cfg.connect
        while not out.listeners:
            if time.monotonic() > end:
                raise TrueupError(
                    f"nobody on {bus.place} listens to {LOW_CMD}; does the robot take low-level commands?"
                )
            time.sleep(0.01)
        self._others.look()
        self._out = out

    def _wait_until_still(self) -> None:
        """Wait until no joint moves, or the time of lying down has passed."""
        end = since = time.monotonic()
        end += _LIE_DOWN_S
        time.sleep(_STILL_S)  # for it to begin
        while time.monotonic() < end and time.monotonic() - since < 2 * _STILL_S:
            state = self._states.next(self._cfg.timeout)
            if state is None:
                raise self._silent(self._cfg.timeout)
            if np.abs(state.joint_vel).max() > _STILL_RAD_S:
                since = time.monotonic()

    def _silent(self, seconds: float) -> TrueupError:
        place = f"{self._place}, domain {self._cfg.domain}"
        if self._states.bad:
            found = f"{self._states.bad} states came on {place}, none with the right checksum or length"
            return TrueupError(f"{found}; is it another kind of robot, or firmware for the option crc=0?")
        hint = "is the robot on, the cable in this interface, its address 192.168.123.x?"
        return TrueupError(f"{self._spec.name} is silent: no {LOW_STATE} on {place} for {seconds:g} s; {hint}")

    def _let_go(self) -> None:
        self._out = None
        if self._bus is not None:
            bus, self._bus = self._bus, None
            with self._reading:  # a reader in another thread is woken by its timeout at the latest
                bus.close()


def make_driver(
    robot: Robot,
    command_hz: float,
    place: str,
    domain: str = "0",
    release: str = "1",
    stand_down: str = "1",
    listen: str = "0",
    crc: str = "1",
    timeout: str = "0.5",
    connect: str = "5",
) -> UnitreeDriver:
    """The driver behind `--driver unitree:PLACE?option=value`; options as in `UnitreeCfg`."""
    given = {
        "domain": domain,
        "release": release,
        "stand_down": stand_down,
        "listen": listen,
        "crc": crc,
        "timeout": timeout,
        "connect": connect,
    }
    try:
        cfg = msgspec.convert(given, UnitreeCfg, strict=False)
    except msgspec.ValidationError as error:
        raise TrueupError(f"options of a Unitree driver: {error}", place=f"unitree:{place}") from None
    return UnitreeDriver(robot, command_hz, place, cfg)
