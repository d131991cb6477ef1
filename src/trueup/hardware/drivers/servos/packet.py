"""Packets of a servo bus: the common part of both protocols.

One master sends requests, servos answer, all on one wire (half duplex). A packet carries a servo's id, a code (the
instruction, or in an answer the servo's error) and data. A codec turns packets into bytes and finds packets in bytes
that may also hold garbage.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

BROADCAST = 0xFE
PING, READ, WRITE, REG_WRITE, ACTION, SYNC_READ, SYNC_WRITE = 0x01, 0x02, 0x03, 0x04, 0x05, 0x82, 0x83


class ServoPacket(NamedTuple):
    """Content of a packet, without header, length and checksum."""

    id: int
    code: int
    data: bytes


class Reply(NamedTuple):
    """A servo's answer; `error` is 0 when all is well."""

    id: int
    error: int
    data: bytes


class Scan(NamedTuple):
    """Packets found in a buffer, and the end of the last one: bytes before it are done with."""

    packets: list[ServoPacket]
    end: int


class Codec(Protocol):
    """A protocol, from packets to bytes and back. Addresses are those of the servo's control table."""

    name: str
    overhead: int
    """Bytes of an answer besides its data."""

    def encode(self, packet: ServoPacket) -> bytes:
        """The bytes of one packet."""

    def scan(self, buffer: bytes) -> Scan:
        """Every valid packet in a buffer; other bytes are skipped."""

    def sync_read(self, address: int, length: int, ids: Sequence[int]) -> bytes:
        """Ask several servos for the same registers; each answers in turn."""

    def sync_write(self, address: int, rows: Mapping[int, bytes]) -> bytes:
        """Write registers of several servos at once, without answers."""

    def reply(self, packet: ServoPacket) -> Reply | None:
        """The packet as a servo's answer, or None when it is none."""

    def status(self, reply: Reply) -> bytes:
        """The bytes of a servo's answer."""

    def errors(self, error: int) -> str:
        """Text of an error byte; "" for no error."""
