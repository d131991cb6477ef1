"""Serves a Twin on a UDP socket, in real time or lock-step.

Real time: physics follows the wall clock on an absolute schedule; a state goes out every command period, a command acts
from the moment it came in. Lock-step: every command (or tick) frame lets one command period pass and is answered with
the state after it; a frame that comes again (its answer was lost) is answered again, and nothing moves twice.

One driver at a time: another one is refused until the first says goodbye or stays silent for a second. Listeners, who
command nothing, are told every state and the newest command for as long as they ask once a second.
"""

from __future__ import annotations

import contextlib
import logging
import select
import socket
import struct
import time

from trueup.core.errors import TrueupError
from trueup.hardware import wire
from trueup.hardware.twin_cfg import ServeCfg
from trueup.hardware.wire import Kind, WirePacket
from trueup.twin.firmware import Twin
from trueup.twin.real_time import ServedTwin

_log = logging.getLogger(__name__)
Address = tuple[str, int]
SILENCE_S = 1.0  # after which another driver may take over
MOST_LISTENERS = 4


class TwinServer(ServedTwin):
    """Serves one twin on one socket."""

    def __init__(self, twin: Twin, cfg: ServeCfg) -> None:
        self._socket = _bind(cfg.host, cfg.port)
        super().__init__(twin, cfg)
        self.address: Address = self._socket.getsockname()[:2]
        self.reference = f"twin@{self.address[0]}:{self.address[1]}"
        self._driver: Address | None = None
        self._heard_at = 0.0
        self._listeners: dict[Address, float] = {}  # and when they asked last
        self._command_frame = b""  # newest command as listeners are told it
        self._newest = -1  # sequence of the newest command or tick
        self._answer = b""

    def run(self) -> None:
        """Serve until the driver of a `once` server says goodbye or the process is told to stop."""
        try:
            if self._cfg.lockstep:
                self._run_lockstep()
            else:
                self._socket.setblocking(False)
                super().run()
        finally:
            self.close()

    def close(self) -> None:
        """Close socket and tap. Safe to call twice."""
        self._socket.close()
        super().close()

    def _receive(self, ahead_from: float | None) -> None:
        """Take in one packet; `ahead_from` is when the period began (None: lock-step)."""
        with contextlib.suppress(BlockingIOError):
            data, address = self._socket.recvfrom(wire.MAX_FRAME_BYTES)
            ahead = 0.0 if ahead_from is None else self._steps_since(ahead_from)
            for packet in self._arrived(data):
                self._handle(packet, address, ahead)

    # --- time ---
    def _run_lockstep(self) -> None:
        # waking up now and then: a signal that comes just before the call would else not be seen until the next packet
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("@ll", 1, 0))
        while not self._is_over:
            self._receive(None)

    def _listen_until(self, due: float, began: float) -> None:
        while True:
            left = due - time.perf_counter()
            if not select.select([self._socket], [], [], max(left, 0.0))[0]:
                return
            self._receive(began)
            if left <= 0.0:
                return

    # --- frames ---
    def _handle(self, packet: bytes, address: Address, ahead: float) -> None:
        try:
            frame = wire.decode(packet)
        except TrueupError:
            self.twin.count("bad_frames")
            return
        if frame.kind is Kind.HELLO:
            self._greet(frame, address)
        elif frame.kind is Kind.LISTEN:
            self._admit(frame, address)
        elif address != self._driver:
            self._send(wire.encode_refusal(frame.sequence, self.twin.time_s, "say hello first"), address)
        else:
            self._heard_at = time.monotonic()
            self._obey(frame, address, ahead)

    def _obey(self, frame: WirePacket, address: Address, ahead: float) -> None:
        match frame.kind:
            case Kind.COMMAND | Kind.TICK:
                self._command(frame, address, ahead)
            case Kind.TAP:
                self._send(wire.encode_tap(frame.sequence, self.twin.time_s, self.twin.tap()), address)
            case Kind.BYE:
                self.twin.damp()
                self._driver, self._command_frame = None, b""
                self._is_over = self._cfg.once
            case _:
                self.twin.count("bad_frames")

    def _command(self, frame: WirePacket, address: Address, ahead: float) -> None:
        if frame.sequence <= self._newest:
            self.twin.count("repeated")
            if self._cfg.lockstep and frame.sequence == self._newest:
                self._send(self._answer, address)
            return
        self._newest = frame.sequence
        if frame.kind is Kind.COMMAND:
            try:
                rows = wire.command_rows(frame)
                self._command_frame = wire.encode_rows(frame.sequence, frame.time_s, rows) if self._listeners else b""
                self._give(rows, ahead)
            except TrueupError:
                self.twin.count("commands")
                self.twin.count("malformed")
        if self._cfg.lockstep:
            self._pass_period()
            self._report()

    def _report(self) -> None:
        """Send the state to driver and listeners, and the newest command to listeners."""
        if self._driver is None and not self._listeners:
            return
        self._answer = wire.encode_report(self.twin.report(max(self._newest, 0)))
        if self._driver is not None:
            self._send(self._answer, self._driver)
        now = time.monotonic()
        for address, asked_at in list(self._listeners.items()):
            if now - asked_at > SILENCE_S:
                del self._listeners[address]
                continue
            for packet in (self._command_frame, self._answer):
                if packet:
                    self._send(packet, address)

    def _admit(self, frame: WirePacket, address: Address) -> None:
        """Add or renew a listener; drivers receive states anyway."""
        if address in self._listeners or (len(self._listeners) < MOST_LISTENERS and address != self._driver):
            self._listeners[address] = time.monotonic()
            self._send(wire.encode_welcome(frame.sequence, self.twin.time_s, self._welcome()), address)

    def _greet(self, frame: WirePacket, address: Address) -> None:
        is_busy = time.monotonic() - self._heard_at < SILENCE_S
        if self._driver is not None and address != self._driver and is_busy:
            reason = "another driver has this robot; it is free a second after the other falls silent"
            self._send(wire.encode_refusal(frame.sequence, self.twin.time_s, reason), address)
            return
        is_new = address != self._driver
        if is_new:
            self._driver, self._newest = address, -1
        self._heard_at = time.monotonic()
        self._send(wire.encode_welcome(frame.sequence, self.twin.time_s, self._welcome()), address)
        if self._cfg.lockstep and self._newest < 0:  # a hello that comes again gets the same first state again
            self._answer = wire.encode_report(self.twin.report(0)) if is_new else self._answer
            self._send(self._answer, address)

    def _welcome(self) -> wire.Welcome:
        return wire.Welcome(
            joint_names=self.twin.robot.spec.joint_names,
            name=self.twin.name,
            lockstep=self._cfg.lockstep,
            has_imu=self.twin.robot.spec.imu is not None,
            command_hz=self._cfg.command_hz,
            physics_hz=self.twin.physics_hz,
        )

    def _send(self, packet: bytes, address: Address) -> None:
        for copy in self._sent(packet):
            try:
                self._socket.sendto(copy, address)
            except OSError as error:  # a full buffer or a driver that is gone: lost, as on a real network
                _log.debug("packet to %s lost: %s", address, error)


def _bind(host: str, port: int) -> socket.socket:
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        sock.bind((host, port))
    except (OSError, OverflowError) as error:
        sock.close()
        raise TrueupError(f"cannot listen on {host}:{port}: {error}; port 0 takes any free one") from None
    return sock
