"""TwinDriver: a twin over UDP, started in the background or already running somewhere.

In real time states and commands are sent as they come. In lock-step every command advances the twin by one period;
a lost packet is sent again, and the twin still advances once.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import time

from trueup.core.errors import TrueupError
from trueup.hardware import wire
from trueup.hardware.driver import Command, ConnectedWithin, RobotState, connected, damping
from trueup.hardware.drivers.twin_process import TwinProcess
from trueup.hardware.twin_cfg import ServeCfg
from trueup.hardware.wire import Kind, TapCounts, WirePacket
from trueup.robot.load import Robot

Address = tuple[str, int]
_RESEND_S = 0.02


class TwinDriver(ConnectedWithin):
    """A `Driver` for a twin.

    options    the twin to start in the background; or
    address    (host, port) of one that is running
    timeout_s  how long the twin may be silent before a TrueupError

    After `connect`, `name` is what `trueup twin reveal` calls the twin, `command_hz` its rate. `other_commander` says
    who else commands the twin on this connection; None: nobody.
    """

    def __init__(
        self, robot: Robot, options: ServeCfg | None = None, *, address: Address | None = None, timeout_s: float = 2.0
    ) -> None:
        if (options is None) == (address is None):
            raise TrueupError("a twin driver needs either options of a twin to start or the address of a running one")
        self.joint_names = robot.spec.joint_names
        self.realtime = options is None or not options.lockstep
        self.command_hz = 0.0 if options is None else options.command_hz
        self.name = ""
        self.other_commander: str | None = None
        self._robot, self._options, self._address, self._timeout = robot, options, address, timeout_s
        self._process: TwinProcess | None = None
        self._socket: socket.socket | None = None
        self._newest: RobotState | None = None
        self._read_sequence = 0  # of the newest state that was returned
        self._sequence = 0  # of the newest command
        self._pending = b""  # lock-step: a command whose answer has not come
        self._pending_sequence = 0

    # --- Driver ---
    def connect(self) -> None:
        """Start the twin if the reference says so, and connect; nothing moves."""
        if self._socket is not None:
            raise TrueupError("this driver is connected already")
        if self._options is not None:
            self._process = TwinProcess(self._robot, self._options)
            self._address = ("127.0.0.1", self._process.port)
        try:
            self._open_socket()
            hello = wire.encode(Kind.HELLO, 0, 0.0)
            welcome = wire.parse_welcome(self._ask(hello, Kind.WELCOME))
            if welcome.joint_names != self.joint_names:
                raise TrueupError(
                    f"the twin at {self._place()} is another robot: it has the joints {', '.join(welcome.joint_names)};"
                    f" {self._robot.spec.name} has {', '.join(self.joint_names)}"
                )
        except BaseException:
            self._let_go()
            raise
        self.name, self.realtime, self.command_hz = welcome.name, not welcome.lockstep, welcome.command_hz

    def read(self) -> RobotState:
        """Return the newest state, waiting for one if none has come since the last call.

        In lock-step, time passes only with commands: a second call without a command returns the same state.
        """
        sock = connected(self._socket)
        if self._pending:
            self._await_answer()
        elif self.realtime:
            self._drain(sock)
        if self._newest is None or (self.realtime and self._newest.sequence == self._read_sequence):
            self._await_state()
        assert self._newest is not None
        self._read_sequence = self._newest.sequence
        return self._newest

    def write(self, command: Command) -> Command:
        """Send a command; returns it as sent. The twin enforces its own limits, as a robot does."""
        rows = command.rows(len(self.joint_names))
        self._sequence += 1
        self._send(wire.encode_rows(self._sequence, time.monotonic(), rows))
        return Command(**dict(zip(vars(command), rows, strict=True)))

    def damp(self) -> Command:
        return self.write(damping(self._robot.spec.default_pose, self._robot.spec.kd))

    def close(self) -> None:
        """Damp, disconnect, end the twin if this driver started it. Safe to call twice."""
        if self._socket is not None:
            with contextlib.suppress(TrueupError, OSError):
                if self._process is None or self._process.is_running:
                    self.damp()
                    self._socket.send(wire.encode(Kind.BYE, self._sequence + 1, time.monotonic()))
        self._let_go()

    # --- twins only ---
    @property
    def twin_pid(self) -> int:
        """Process id of the twin that this driver started."""
        if self._process is None:
            raise TrueupError("this driver has no twin of its own running")
        return self._process.pid

    def tick(self) -> None:
        """Lock-step: let one command period pass without a command, as if the driver hung."""
        if self.realtime:
            raise TrueupError("only a lock-step twin waits for ticks")
        self._sequence += 1
        self._send(wire.encode(Kind.TICK, self._sequence, time.monotonic()))

    def tap(self) -> TapCounts:
        """Return the counts at the twin's motors so far."""
        connected(self._socket)
        if self._pending:
            self._await_answer()
        return wire.parse_tap(self._ask(wire.encode(Kind.TAP, 0, time.monotonic()), Kind.TAP_COUNTS))

    # --- frames ---
    def _open_socket(self) -> None:
        assert self._address is not None
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("@ll", 0, int(_RESEND_S * 1e6)))
        try:
            self._socket.connect(self._address)
        except (OSError, OverflowError) as error:
            raise TrueupError(f"cannot reach {self._place()}: {error}") from None

    def _send(self, packet: bytes) -> None:
        """Send a frame that the twin executes; lock-step: after the answer to the last one."""
        sock = connected(self._socket)
        if self._pending:
            self._await_answer()
        try:
            sock.send(packet)
        except OSError as error:
            raise self._no_answer(str(error)) from None
        if not self.realtime:
            self._pending, self._pending_sequence = packet, self._sequence

    def _await_answer(self) -> None:
        """Lock-step: wait for the state that follows the newest command, sending it again when it seems lost."""
        deadline = 0.0
        while self._pending:
            frame = self._receive()
            if frame is None:
                deadline = deadline or time.monotonic() + self._timeout
                self._look_alive(deadline)
                connected(self._socket).send(self._pending)
            elif frame.kind is Kind.STATE and self._note(frame) == self._pending_sequence:
                self._pending = b""

    def _await_state(self) -> None:
        deadline = time.monotonic() + self._timeout
        while self._newest is None or self._newest.sequence == self._read_sequence:
            frame = self._receive()
            if frame is None:
                self._look_alive(deadline)
                if not self.realtime:  # the first state was lost
                    connected(self._socket).send(wire.encode(Kind.HELLO, 0, time.monotonic()))
            else:
                self._note(frame)

    def _ask(self, packet: bytes, kind: Kind) -> WirePacket:
        """Send a request until it is answered."""
        deadline = time.monotonic() + self._timeout
        while True:
            with contextlib.suppress(ConnectionRefusedError):
                connected(self._socket).send(packet)
            while (frame := self._receive()) is not None:
                if frame.kind is kind:
                    return frame
                self._note(frame)
            self._look_alive(deadline)

    def _note(self, frame: WirePacket) -> int:
        """Keep a state if it is newer than the kept one; returns the sequence of the command it acknowledges."""
        if frame.kind is Kind.REFUSAL:
            raise TrueupError(f"the twin at {self._place()} refuses: {wire.parse_refusal(frame)}")
        if frame.kind is not Kind.STATE:
            return -1
        state, acknowledged = wire.parse_state(frame)
        if acknowledged > self._sequence:
            self.other_commander = f"the twin obeys command {acknowledged}, this driver sent {self._sequence} so far"
        if self._newest is None or state.sequence > self._newest.sequence:
            self._newest = state
        return acknowledged

    def _receive(self) -> WirePacket | None:
        """Return the next valid frame, None when none comes within a short while."""
        sock = connected(self._socket)
        while True:
            try:
                return wire.decode(sock.recv(wire.MAX_FRAME_BYTES))
            except (BlockingIOError, ConnectionRefusedError):
                return None
            except TrueupError:  # damaged: treated as lost
                continue

    def _drain(self, sock: socket.socket) -> None:
        """Receive all waiting frames."""
        with contextlib.suppress(BlockingIOError, ConnectionRefusedError):
            while True:
                data = sock.recv(wire.MAX_FRAME_BYTES, socket.MSG_DONTWAIT)
                with contextlib.suppress(TrueupError):
                    self._note(wire.decode(data))

    # --- state of the connection ---
    def _look_alive(self, deadline: float) -> None:
        if self._process is not None and not self._process.is_running:
            raise self._no_answer(f"its process has ended: {self._process.last_words() or 'no reason given'}")
        if time.monotonic() > deadline:
            raise self._no_answer(f"silent for {self._timeout:g} s")

    def _no_answer(self, reason: str) -> TrueupError:
        return TrueupError(f"the twin at {self._place()} does not answer ({reason}); is it running?")

    def _place(self) -> str:
        return f"{self._address[0]}:{self._address[1]}" if self._address else "nowhere"

    def _let_go(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        if self._process is not None:
            self._process.end()
            self._process = None
        self._newest, self._pending = None, b""
