"""Dynamixel protocol 2.0: bytes of instruction and status packets.

    FF FF FD 00  id  length(2)  code  data...  crc(2)     length = len(data) + 3, low byte first

The CRC has the polynomial x^16 + x^15 + x^2 + 1 (0x8005), starts at 0 and covers everything before it. Where FF FF FD
occurs from the code on, an FD is put behind it (byte stuffing), so that a header stands only where a packet begins. An
answer has the code 0x55 and the servo's error as its first data byte. Source: ROBOTIS e-manual, "Protocol 2.0".
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from functools import cache

from trueup.hardware.drivers.servos.packet import BROADCAST, SYNC_READ, SYNC_WRITE, Reply, Scan, ServoPacket

HEADER = b"\xff\xff\xfd\x00"
STATUS = 0x55
MAX_LENGTH = 1024  # of a packet, beyond which a length is taken for garbage
ALERT = 0x80  # the servo's Hardware Error Status has the reason
_STUFFED, _PLAIN = b"\xff\xff\xfd\xfd", b"\xff\xff\xfd"
_ERRORS = ("", "failed", "unknown instruction", "CRC", "out of range", "wrong length", "beyond limit", "no access")


class DynamixelCodec:
    """Protocol 2.0 packets to bytes and back."""

    name = "dynamixel"
    overhead = 11

    def encode(self, packet: ServoPacket) -> bytes:
        body = (bytes((packet.code,)) + packet.data).replace(_PLAIN, _STUFFED)
        head = HEADER + struct.pack("<BH", packet.id, len(body) + 2)
        return head + body + struct.pack("<H", crc16(head + body))

    def scan(self, buffer: bytes) -> Scan:
        packets, end, at = [], 0, buffer.find(HEADER)
        while 0 <= at <= len(buffer) - 10:
            (length,) = struct.unpack_from("<H", buffer, at + 5)
            stop = at + 7 + length
            if 3 <= length <= MAX_LENGTH and stop <= len(buffer):
                (crc,) = struct.unpack_from("<H", buffer, stop - 2)
                if crc == crc16(buffer[at : stop - 2]):
                    body = buffer[at + 7 : stop - 2].replace(_STUFFED, _PLAIN)
                    packets.append(ServoPacket(buffer[at + 4], body[0], body[1:]))
                    end = stop
            at = buffer.find(HEADER, end if end > at else at + 1)
        return Scan(packets, end)

    def sync_read(self, address: int, length: int, ids: Sequence[int]) -> bytes:
        return self.encode(ServoPacket(BROADCAST, SYNC_READ, struct.pack("<HH", address, length) + bytes(ids)))

    def sync_write(self, address: int, rows: Mapping[int, bytes]) -> bytes:
        length = len(next(iter(rows.values())))
        data = b"".join(bytes((servo,)) + row for servo, row in rows.items())
        return self.encode(ServoPacket(BROADCAST, SYNC_WRITE, struct.pack("<HH", address, length) + data))

    def reply(self, packet: ServoPacket) -> Reply | None:
        """The packet as an answer; instructions (an echo of our own, say) are none."""
        if packet.code != STATUS or not packet.data:
            return None
        return Reply(packet.id, packet.data[0], packet.data[1:])

    def status(self, reply: Reply) -> bytes:
        return self.encode(ServoPacket(reply.id, STATUS, bytes((reply.error,)) + reply.data))

    def errors(self, error: int) -> str:
        number = error & ~ALERT
        words = [_ERRORS[number] if number < len(_ERRORS) else f"error {number}"] if number else []
        return ", ".join(words + ["hardware alert"] * bool(error & ALERT))


def crc16(data: bytes) -> int:
    """CRC-16 of the protocol: polynomial 0x8005, most significant bit first, starting at 0."""
    table, crc = _crc_table(), 0
    for byte in data:
        crc = (crc << 8 & 0xFF00) ^ table[crc >> 8 ^ byte]
    return crc


@cache
def _crc_table() -> tuple[int, ...]:
    """What each leading byte adds to the CRC."""
    table = []
    for byte in range(256):
        crc = byte << 8
        for _ in range(8):
            crc = (crc << 1 ^ 0x8005 if crc & 0x8000 else crc << 1) & 0xFFFF
        table.append(crc)
    return tuple(table)
