"""Bytes of both protocols against the vendors' own: example packets of their manuals, and their own software."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trueup.core.errors import TrueupError
from trueup.hardware.drivers.servos.dynamixel_protocol import DynamixelCodec, crc16
from trueup.hardware.drivers.servos.feetech_protocol import FeetechCodec
from trueup.hardware.drivers.servos.packet import BROADCAST, PING, READ, WRITE, Codec, Reply, ServoPacket
from trueup.hardware.drivers.servos.registers import STS, Register, X

FEETECH, DYNAMIXEL = FeetechCodec(), DynamixelCodec()
BOTH = pytest.mark.parametrize("codec", [FEETECH, DYNAMIXEL], ids=["feetech", "dynamixel"])


def hexed(text: str) -> bytes:
    return bytes.fromhex(text)


# --- Feetech: examples of "Servo SCS communication protocol" (numbers of its sections) ---
FEETECH_EXAMPLES = {
    "4.1 ping": (ServoPacket(1, PING, b""), "FF FF 01 02 01 FB"),
    "4.1 answer": (ServoPacket(1, 0, b""), "FF FF 01 02 00 FC"),
    "4.2 read the position": (ServoPacket(1, READ, hexed("38 02")), "FF FF 01 04 02 38 02 BE"),
    "4.2 answer 1304": (ServoPacket(1, 0, hexed("18 05")), "FF FF 01 04 00 18 05 DD"),
    "4.3 id of everyone to 1": (ServoPacket(BROADCAST, WRITE, hexed("05 01")), "FF FF FE 04 03 05 01 F4"),
    "4.3 to 2048": (ServoPacket(1, WRITE, hexed("2A 00 08 00 00 E8 03")), "FF FF 01 09 03 2A 00 08 00 00 E8 03 D5"),
    "4.7 answer of 1": (
        ServoPacket(1, 0, hexed("00 08 00 00 00 00 79 1E")),
        "FF FF 01 0A 00 00 08 00 00 00 00 79 1E 55",
    ),
    "4.7 answer of 2": (
        ServoPacket(2, 0, hexed("FF 07 00 00 00 00 77 23")),
        "FF FF 02 0A 00 FF 07 00 00 00 00 77 23 53",
    ),
}


@pytest.mark.parametrize("name", FEETECH_EXAMPLES)
def test_feetech_packets_are_those_of_the_manual(name: str) -> None:
    packet, text = FEETECH_EXAMPLES[name]
    assert FEETECH.encode(packet) == hexed(text)
    assert FEETECH.scan(hexed(text)) == ([packet], len(hexed(text)))


def test_feetech_sync_packets_are_those_of_the_manual() -> None:
    row = hexed("00 08 00 00 E8 03")
    write = (
        "FF FF FE 20 83 2A 06 01 00 08 00 00 E8 03 02 00 08 00 00 E8 03 03 00 08 00 00 E8 03 04 00 08 00 00 E8 03 58"
    )
    assert FEETECH.sync_write(0x2A, dict.fromkeys((1, 2, 3, 4), row)) == hexed(write)
    assert FEETECH.sync_read(0x38, 8, (1, 2)) == hexed("FF FF FE 06 82 38 08 01 02 36")


# --- Dynamixel: examples of ROBOTIS e-manual, "Protocol 2.0" ---
DYNAMIXEL_EXAMPLES = {
    "ping": (ServoPacket(1, PING, b""), "FF FF FD 00 01 03 00 01 19 4E"),
    "ping to all": (ServoPacket(BROADCAST, PING, b""), "FF FF FD 00 FE 03 00 01 31 42"),
    "answer of 2": (ServoPacket(2, 0x55, hexed("00 06 04 26")), "FF FF FD 00 02 07 00 55 00 06 04 26 6F 6D"),
    "read the position": (ServoPacket(1, READ, hexed("84 00 04 00")), "FF FF FD 00 01 07 00 02 84 00 04 00 1D 15"),
    "answer 166": (ServoPacket(1, 0x55, hexed("00 A6 00 00 00")), "FF FF FD 00 01 08 00 55 00 A6 00 00 00 8C C0"),
    "to 512": (ServoPacket(1, WRITE, hexed("74 00 00 02 00 00")), "FF FF FD 00 01 09 00 03 74 00 00 02 00 00 CA 89"),
}


@pytest.mark.parametrize("name", DYNAMIXEL_EXAMPLES)
def test_dynamixel_packets_are_those_of_the_manual(name: str) -> None:
    packet, text = DYNAMIXEL_EXAMPLES[name]
    assert DYNAMIXEL.encode(packet) == hexed(text)
    assert DYNAMIXEL.scan(hexed(text)) == ([packet], len(hexed(text)))


def test_dynamixel_sync_packets_are_those_of_the_manual() -> None:
    rows = {1: hexed("96 00 00 00"), 2: hexed("AA 00 00 00")}
    write = "FF FF FD 00 FE 11 00 83 74 00 04 00 01 96 00 00 00 02 AA 00 00 00 82 87"
    assert DYNAMIXEL.sync_write(116, rows) == hexed(write)
    assert DYNAMIXEL.sync_read(132, 4, (1, 2)) == hexed("FF FF FD 00 FE 09 00 82 84 00 04 00 01 02 CE FA")


class Recorder:
    """A port of the vendor's software that keeps what is sent."""

    def __init__(self) -> None:
        self.is_using, self.sent = False, b""

    def clearPort(self) -> None:  # noqa: N802
        pass

    def writePort(self, packet: list[int]) -> int:  # noqa: N802
        self.sent = bytes(packet)
        return len(packet)

    def setPacketTimeout(self, length: int) -> None:  # noqa: N802
        pass


def test_dynamixel_bytes_equal_those_of_the_vendors_sdk() -> None:
    sdk, rng = pytest.importorskip("dynamixel_sdk").PacketHandler(2.0), random.Random(0)
    for _ in range(300):
        servo, address = rng.randrange(253), rng.randrange(600)
        rows = {k: bytes(rng.randrange(250) for _ in range(4)) for k in rng.sample(range(250), 6)}
        data = rows[next(iter(rows))]
        port = Recorder()
        sdk.writeTxOnly(port, servo, address, 4, list(data))
        assert port.sent == DYNAMIXEL.encode(ServoPacket(servo, WRITE, address.to_bytes(2, "little") + data))
        port = Recorder()
        sdk.syncWriteTxOnly(port, address, 4, [byte for k, row in rows.items() for byte in (k, *row)], 30)
        assert port.sent == DYNAMIXEL.sync_write(address, rows)
        port = Recorder()
        sdk.syncReadTx(port, address, 4, list(rows), 6, False)
        assert port.sent == DYNAMIXEL.sync_read(address, 4, list(rows))


def test_dynamixel_bytes_are_stuffed_as_the_vendors_sdk_does() -> None:
    """Against its function that stuffs: the sender of SDK 4.1.0 throws away what that returns."""
    sdk, rng = pytest.importorskip("dynamixel_sdk").PacketHandler(2.0), random.Random(1)
    for _ in range(200):
        data = b"".join(rng.choice([b"\xff\xff\xfd", b"\xff", b"\xfd", bytes([rng.randrange(256)])]) for _ in range(8))
        plain = b"\xff\xff\xfd\x00\x01" + (len(data) + 3).to_bytes(2, "little") + bytes((WRITE,)) + data
        stuffed = sdk.addStuffing([*plain, 0, 0])[:-2]
        wanted = bytes(stuffed) + sdk.updateCRC(0, stuffed, len(stuffed)).to_bytes(2, "little")
        assert DYNAMIXEL.encode(ServoPacket(1, WRITE, data)) == wanted
        assert DYNAMIXEL.scan(wanted).packets == [ServoPacket(1, WRITE, data)]


def test_the_crc_is_that_of_the_vendor() -> None:
    sdk = pytest.importorskip("dynamixel_sdk").PacketHandler(2.0)
    data = bytes(range(256)) * 3
    assert crc16(data) == sdk.updateCRC(0, list(data), len(data))
    assert crc16(b"") == 0
    assert crc16(b"\x01") == 0x8005  # the polynomial itself


# --- both ---
packets = st.builds(ServoPacket, st.integers(0, 252), st.integers(0, 0x7F), st.binary(max_size=40))


@BOTH
@given(sent=st.lists(packets, max_size=5))
def test_what_is_encoded_is_found_again(codec: Codec, sent: list[ServoPacket]) -> None:
    stream = b"".join(map(codec.encode, sent))
    assert codec.scan(stream) == (sent, len(stream))


@BOTH
@given(noise=st.binary(max_size=60), packet=packets)
def test_packets_behind_garbage_are_found(codec: Codec, noise: bytes, packet: ServoPacket) -> None:
    """Garbage may itself hold packets or the beginning of one; it must not swallow what follows."""
    found, end = codec.scan(noise + codec.encode(packet))
    assert found[-1] == packet
    assert end == len(noise) + len(codec.encode(packet))


@BOTH
def test_a_header_that_promises_more_than_comes_hides_nothing(codec: Codec) -> None:
    cut = codec.encode(ServoPacket(3, 0, bytes(30)))[:12]
    good = codec.encode(ServoPacket(4, 0x55, b"\x00\x01\x02"))
    assert codec.scan(cut + good).packets == [ServoPacket(4, 0x55, b"\x00\x01\x02")]
    assert codec.scan(cut) == ([], 0)


@BOTH
def test_every_single_bit_flip_is_found(codec: Codec) -> None:
    good = codec.encode(ServoPacket(5, 0x55, bytes((0, 1, 2, 3, 4, 5, 6, 7, 8))))
    for bit in range(8 * len(good)):
        bad = bytearray(good)
        bad[bit // 8] ^= 1 << bit % 8
        assert codec.scan(bytes(bad)).packets == []


@BOTH
def test_a_status_is_a_reply_and_an_instruction_to_all_is_none(codec: Codec) -> None:
    reply = Reply(7, 0x20, b"\x10\x20")
    (packet,) = codec.scan(codec.status(reply)).packets
    assert codec.reply(packet) == reply
    for question in (codec.sync_read(56, 8, (1, 2)), codec.sync_write(42, {1: b"\x00\x08"})):
        (packet,) = codec.scan(question).packets
        assert codec.reply(packet) is None


def test_errors_are_said_in_words() -> None:
    assert FEETECH.errors(0) == DYNAMIXEL.errors(0) == ""
    assert FEETECH.errors(0x21) == "voltage, overload"
    assert DYNAMIXEL.errors(0x87) == "no access, hardware alert"
    assert DYNAMIXEL.errors(0x7F) == "error 127"


# --- registers ---
def test_registers_of_a_real_answer_read_as_in_the_manual() -> None:
    """Section 4.7: servo 2 is at 2047, at rest, without load, 11.9 V, 35 deg C."""
    block = hexed("FF 07 00 00 00 00 77 23")
    start, length = STS.STATE
    assert length == len(block)
    values = [r.decode(block, start) for r in (STS.POSITION, STS.VELOCITY, STS.LOAD, STS.VOLTAGE, STS.TEMPERATURE)]
    assert values == [2047, 0, 0, 119, 35]


@pytest.mark.parametrize(
    ("register", "value", "stored"),
    [
        (STS.VELOCITY, -100, "64 80"),  # bit 15
        (STS.LOAD, -250, "FA 04"),  # bit 10
        (STS.HOMING_OFFSET, -33, "21 08"),  # bit 11
        (STS.GOAL_POSITION, 2048, "00 08"),
        (X.VELOCITY, -1, "FF FF FF FF"),
        (X.GOAL_POSITION, -5, "FB FF FF FF"),
        (X.CURRENT, 300, "2C 01"),
    ],
)
def test_signs_are_stored_as_the_servo_does(register: Register, value: int, stored: str) -> None:
    assert register.encode(value) == hexed(stored)
    assert register.decode(b"\xaa" * 3 + hexed(stored), register.address - 3) == value


def test_a_value_that_does_not_fit_is_refused() -> None:
    with pytest.raises(TrueupError, match="70000 does not fit into register 42"):
        STS.GOAL_POSITION.encode(70000)
