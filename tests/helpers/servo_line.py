"""Servos at the far end of a pseudo-terminal, in a thread of the test; every byte they send can be spoilt."""

from __future__ import annotations

import os
import select
import termios
import threading
import time
import tty
from collections.abc import Callable, Iterable

from trueup.hardware.drivers.servos.packet import (
    BROADCAST,
    PING,
    READ,
    SYNC_READ,
    SYNC_WRITE,
    WRITE,
    Codec,
    Reply,
    ServoPacket,
)

Spoil = Callable[[bytes], bytes]


def whole(answer: bytes) -> bytes:
    """Nothing goes wrong."""
    return answer


class ServoLine:
    """A bus with servos that answer what they are asked, each from its own memory.

    spoil    called with all bytes of an answer; what it returns goes onto the line
    echo     the adapter sends back what it was sent
    silent   ids that do not answer
    stuck    addresses that cannot be written
    errors   error byte of each servo's answers
    """

    def __init__(self, codec: Codec, ids: Iterable[int], *, address_bytes: int = 1, size: int = 256) -> None:
        self.codec, self.memory = codec, {servo: bytearray(size) for servo in ids}
        self._address_bytes = address_bytes
        self.spoil: Spoil = whole
        self.echo = False
        self.baud: int | None = None
        self.silent: set[int] = set()
        self.stuck: set[int] = set()
        self.errors: dict[int, int] = {}
        self.heard: list[ServoPacket] = []
        self._master, self._slave = os.openpty()
        tty.setraw(self._slave)
        self.port = os.ttyname(self._slave)
        self._lock = threading.Lock()
        self._is_over = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def put(self, servo: int, address: int, data: bytes) -> None:
        """Set registers of one servo."""
        self.memory[servo][address : address + len(data)] = data

    def written(self, address: int) -> list[dict[int, bytes]]:
        """Rows of every sync write to an address, in order."""
        k, found = self._address_bytes, []
        for packet in self.heard:
            if packet.code == SYNC_WRITE and int.from_bytes(packet.data[:k], "little") == address:
                length, rest = int.from_bytes(packet.data[k : 2 * k], "little"), packet.data[2 * k :]
                starts = range(0, len(rest), length + 1)
                found.append({rest[at]: rest[at + 1 : at + 1 + length] for at in starts})
        return found

    def babble(self, data: bytes) -> None:
        """Put bytes onto the line that nobody asked for."""
        os.write(self._master, data)

    def unplug(self) -> None:
        """Close both ends."""
        self._is_over = True
        if self._slave >= 0:
            os.write(self._slave, b"\0")  # wakes the thread
        self._thread.join(2.0)
        with self._lock:
            for end in (self._master, self._slave):
                if end >= 0:
                    os.close(end)
            self._master = self._slave = -1

    def __enter__(self) -> ServoLine:
        return self

    def __exit__(self, *exception: object) -> None:
        self.unplug()

    def _run(self) -> None:
        unread = b""
        while not self._is_over:
            if not select.select([self._master], [], [], 0.05)[0]:
                continue
            data = os.read(self._master, 4096)
            if self.baud is not None and termios.tcgetattr(self._slave)[4] != self.baud:
                continue
            if self.echo:
                os.write(self._master, data)
            unread += data
            packets, end = self.codec.scan(unread)
            unread = unread[end:]
            for packet in packets:
                self.heard.append(packet)
                answer = b"".join(self.codec.status(reply) for reply in self._obey(packet))
                if answer and (spoilt := self.spoil(answer)):
                    os.write(self._master, spoilt)

    def _obey(self, packet: ServoPacket) -> list[Reply]:
        k, data = self._address_bytes, packet.data
        address, length = int.from_bytes(data[:k], "little"), int.from_bytes(data[k : 2 * k], "little")
        if packet.code == SYNC_READ:
            return [self._read(servo, address, length) for servo in data[2 * k :] if self._is_there(servo)]
        if packet.code == SYNC_WRITE:
            for row in range(2 * k, len(data), length + 1):
                self._write(data[row], address, data[row + 1 : row + 1 + length])
            return []
        if not self._is_there(packet.id) or packet.id == BROADCAST:
            return []
        if packet.code == READ:
            return [self._read(packet.id, address, length)]
        if packet.code == WRITE:
            self._write(packet.id, address, data[k:])
        return [Reply(packet.id, 0, b"")] if packet.code in (PING, WRITE) else []

    def _is_there(self, servo: int) -> bool:
        return servo in self.memory and servo not in self.silent

    def _read(self, servo: int, address: int, length: int) -> Reply:
        return Reply(servo, self.errors.get(servo, 0), bytes(self.memory[servo][address : address + length]))

    def _write(self, servo: int, address: int, data: bytes) -> None:
        if servo in self.memory and address not in self.stuck:
            self.memory[servo][address : address + len(data)] = data


class Once:
    """Spoils the first `count` answers by `change`, and leaves the others whole."""

    def __init__(self, change: Spoil, count: int = 1) -> None:
        self._change, self.left = change, count

    def __call__(self, answer: bytes) -> bytes:
        self.left -= 1
        return self._change(answer) if self.left >= 0 else answer


def late(seconds: float) -> Spoil:
    """Answers that come too late."""

    def wait(answer: bytes) -> bytes:
        time.sleep(seconds)
        return answer

    return wait
