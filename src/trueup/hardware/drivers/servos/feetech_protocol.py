"""Feetech's SCS protocol as STS and SMS servos speak it: bytes of instruction and status packets.

    FF FF  id  length  code  data...  checksum        length = len(data) + 2

checksum = ~(id + length + code + data...) & 0xFF. Two-byte values have their low byte first. An answer has the servo's
error bits where an instruction has its code. Source: Feetech, "SCS communication protocol" and the vendor's
`feetech-servo-sdk`; the manual's example packets are in the tests.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from trueup.hardware.drivers.servos.packet import BROADCAST, SYNC_READ, SYNC_WRITE, Reply, Scan, ServoPacket

HEADER = b"\xff\xff"
MAX_LENGTH = 250  # of the length byte, as in the vendor's SDK
_ERRORS = {0x01: "voltage", 0x02: "encoder", 0x04: "temperature", 0x08: "current", 0x20: "overload"}


class FeetechCodec:
    """Feetech packets to bytes and back."""

    name = "feetech"
    overhead = 6

    def encode(self, packet: ServoPacket) -> bytes:
        body = bytes((packet.id, len(packet.data) + 2, packet.code)) + packet.data
        return HEADER + body + bytes((checksum(body),))

    def scan(self, buffer: bytes) -> Scan:
        packets, end, at = [], 0, buffer.find(HEADER)
        while 0 <= at <= len(buffer) - self.overhead:
            length = buffer[at + 3]
            stop = at + 4 + length
            body = buffer[at + 2 : stop - 1]
            is_whole = 2 <= length <= MAX_LENGTH and stop <= len(buffer) and body[0] <= BROADCAST
            if is_whole and buffer[stop - 1] == checksum(body):
                packets.append(ServoPacket(body[0], body[2], body[3:]))
                end = stop
            at = buffer.find(HEADER, end if end > at else at + 1)
        return Scan(packets, end)

    def sync_read(self, address: int, length: int, ids: Sequence[int]) -> bytes:
        return self.encode(ServoPacket(BROADCAST, SYNC_READ, bytes((address, length, *ids))))

    def sync_write(self, address: int, rows: Mapping[int, bytes]) -> bytes:
        length = len(next(iter(rows.values())))
        data = b"".join(bytes((servo,)) + row for servo, row in rows.items())
        return self.encode(ServoPacket(BROADCAST, SYNC_WRITE, bytes((address, length)) + data))

    def reply(self, packet: ServoPacket) -> Reply | None:
        """The packet as an answer, None unless id and error bits are possible for one."""
        return Reply(*packet) if packet.id < BROADCAST and packet.code <= 0x7F else None

    def status(self, reply: Reply) -> bytes:
        return self.encode(ServoPacket(*reply))

    def errors(self, error: int) -> str:
        return ", ".join(word for bit, word in _ERRORS.items() if error & bit)


def checksum(body: bytes) -> int:
    """Inverted low byte of the sum of everything between header and checksum."""
    return ~sum(body) & 0xFF
