"""TwinListener: reads states and commands of a twin that another driver commands; sends no commands.

Drivers that can listen have `observe`, which returns the newest state and the command of another program
(None: no other program commands). `deploy --rung shadow` compares a policy with it.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import time
from collections.abc import Callable

from trueup.core.errors import TrueupError
from trueup.hardware import wire
from trueup.hardware.driver import Command, RobotState
from trueup.hardware.wire import Kind
from trueup.robot.load import Robot

_WAIT_S = 0.02
_ASK_S = 0.3  # between requests; the twin forgets a listener after a second
_RECENT_S = 0.5  # a command older than this is no longer in force
_FIELDS = ("target_pos", "target_vel", "kp", "kd", "torque")


class TwinListener:
    """Reads the states of a running twin, and what its driver commands; `write` and `damp` are refused."""

    def __init__(self, robot: Robot, address: tuple[str, int], *, timeout_s: float = 2.0) -> None:
        self.joint_names, self.realtime, self.name, self.command_hz = robot.spec.joint_names, True, "", 0.0
        self._robot, self._address, self._timeout = robot, address, timeout_s
        self._socket: socket.socket | None = None
        self._newest: RobotState | None = None
        self._read_sequence, self._asked_s = -1, 0.0
        self._command: tuple[float, Command] | None = None

    def connect(self) -> None:
        """Subscribe to the twin; another robot than this one is refused."""
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("@ll", 0, int(_WAIT_S * 1e6)))
        try:
            self._socket.connect(self._address)
        except (OSError, OverflowError) as error:
            self.close()
            raise TrueupError(f"cannot reach {self._place()}: {error}") from None
        self._await(lambda: bool(self.name) and self._newest is not None)

    def read(self) -> RobotState:
        self._take_in(wait=False)
        self._await(lambda: self._newest is not None and self._newest.sequence != self._read_sequence)
        assert self._newest is not None
        self._read_sequence = self._newest.sequence
        return self._newest

    def observe(self) -> tuple[RobotState, Command | None]:
        """The newest state, and the command of the driver that commands the twin; None when none came lately."""
        state = self.read()
        if self._command is None or time.monotonic() - self._command[0] > _RECENT_S:
            return state, None
        return state, self._command[1]

    def write(self, command: Command) -> Command:
        """Refused: a listener sends no commands."""
        raise TrueupError(f"this driver only listens to {self._place()}: nothing can be sent")

    def damp(self) -> Command:
        """Refused, as `write` is."""
        raise TrueupError(f"this driver only listens to {self._place()}: nothing can be sent")

    def close(self) -> None:
        """Stop listening. Safe to call twice."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    # --- frames ---
    def _await(self, is_there: Callable[[], bool]) -> None:
        deadline = time.monotonic() + self._timeout
        while not is_there():
            if time.monotonic() > deadline:
                raise TrueupError(f"the twin at {self._place()} is silent for {self._timeout:g} s; is it running?")
            self._take_in(wait=True)

    def _take_in(self, *, wait: bool) -> None:
        """Renew the subscription when due, then receive all waiting frames."""
        if self._socket is None:
            raise TrueupError("this driver is not connected: call connect() first")
        now = time.monotonic()
        with contextlib.suppress(ConnectionRefusedError):
            if now - self._asked_s > _ASK_S:
                self._socket.send(wire.encode(Kind.LISTEN, 0, now))
                self._asked_s = now
        with contextlib.suppress(BlockingIOError, ConnectionRefusedError):
            while True:
                data = self._socket.recv(wire.MAX_FRAME_BYTES, 0 if wait else socket.MSG_DONTWAIT)
                wait = False
                self._note(data)

    def _note(self, data: bytes) -> None:
        try:
            frame = wire.decode(data)
            if frame.kind is Kind.WELCOME:
                self._greeted(wire.parse_welcome(frame))
            elif frame.kind is Kind.COMMAND:
                rows = wire.command_rows(frame)
                self._command = time.monotonic(), Command(**dict(zip(_FIELDS, rows, strict=True)))
            elif frame.kind is Kind.STATE:
                state, _ = wire.parse_state(frame)
                if self._newest is None or state.sequence > self._newest.sequence:
                    self._newest = state
        except _OtherRobotError:
            raise
        except TrueupError:  # damaged on its way
            return

    def _greeted(self, welcome: wire.Welcome) -> None:
        if welcome.joint_names != self.joint_names:
            raise _OtherRobotError(
                f"the twin at {self._place()} is another robot: it has the joints {', '.join(welcome.joint_names)};"
                f" {self._robot.spec.name} has {', '.join(self.joint_names)}"
            )
        self.name, self.command_hz = welcome.name, welcome.command_hz

    def _place(self) -> str:
        return f"{self._address[0]}:{self._address[1]}"


class _OtherRobotError(TrueupError):
    """Another robot answered; not to be ignored as a damaged frame is."""
