"""The bus on a real pseudo-terminal: bytes lost, damaged, late, doubled, echoed; ports that are not there or go."""

from __future__ import annotations

import os
import termios
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from servo_line import Once, ServoLine, late

from trueup.core.errors import TrueupError
from trueup.hardware.drivers.servos.bus import NoAnswerError, NotTakenError, ServoBus
from trueup.hardware.drivers.servos.dynamixel_protocol import DynamixelCodec
from trueup.hardware.drivers.servos.feetech_protocol import FeetechCodec
from trueup.hardware.drivers.servos.port import PortGoneError, SerialPort

NAMES = {1: "pan", 2: "lift", 3: "jaw"}
WAIT_S = 0.1  # for an answer: the servos here are a thread of this process


@pytest.fixture(params=["feetech", "dynamixel"])
def line(request: pytest.FixtureRequest) -> Iterator[ServoLine]:
    dynamixel = request.param == "dynamixel"
    codec = DynamixelCodec() if dynamixel else FeetechCodec()
    with ServoLine(codec, NAMES, address_bytes=2 if dynamixel else 1) as servos:
        for servo in NAMES:
            servos.put(servo, 56, bytes((servo, 8, 0, 0, 0, 0, 74, 25)))
            servos.put(servo, 3, b"\x09\x03")
        yield servos


@pytest.fixture
def bus(line: ServoLine) -> Iterator[ServoBus]:
    port = SerialPort(line.port, 1_000_000)
    made = ServoBus(port, line.codec, NAMES, timeout_s=WAIT_S)
    yield made
    made.close()


def positions(bus: ServoBus) -> list[int]:
    replies = bus.read_all(56, 8)
    return [replies[servo].data[0] for servo in NAMES]


# --- all is well ---
def test_servos_are_found_and_read_and_written(bus: ServoBus, line: ServoLine) -> None:
    assert bus.find(3, (1_000_000,)) == dict.fromkeys(NAMES, 777)
    assert positions(bus) == [1, 2, 3]
    bus.write_all(42, {1: b"\x00\x04", 3: b"\x00\x0c"})
    assert positions(bus) == [1, 2, 3]  # and so the write has arrived
    assert bytes(line.memory[1][42:44]) == b"\x00\x04"
    assert bytes(line.memory[2][42:44]) == b"\x00\x00"
    assert (bus.asked, bus.lost) == (5, 0)


def test_what_is_set_is_read_back(bus: ServoBus, line: ServoLine) -> None:
    bus.set_all(40, dict.fromkeys(NAMES, b"\x01"), "torque")
    assert [memory[40] for memory in line.memory.values()] == [1, 1, 1]
    line.stuck.add(21)
    with pytest.raises(NotTakenError, match=r"servo 1 \(pan\) does not take gains: .* hold 10 20, it holds 00 00"):
        bus.set_all(21, dict.fromkeys(NAMES, b"\x10\x20"), "gains")


# --- bytes go wrong ---
FAULTS: dict[str, Callable[[bytes], bytes]] = {
    "nothing comes": lambda answer: b"",
    "a byte is lost": lambda answer: answer[:9] + answer[10:],
    "the first byte is lost": lambda answer: answer[1:],
    "the end is cut": lambda answer: answer[:-3],
    "a bit flips": lambda answer: answer[:7] + bytes((answer[7] ^ 0x10,)) + answer[8:],
    "only the first answers": lambda answer: answer[: len(answer) // 3],
    "it comes too late": late(2 * WAIT_S),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_an_answer_that_goes_wrong_is_asked_for_again(bus: ServoBus, line: ServoLine, fault: str) -> None:
    line.spoil = Once(FAULTS[fault])
    assert positions(bus) == [1, 2, 3]
    assert (bus.asked, bus.lost) == (2, 1)


def test_only_those_whose_answer_is_missing_are_asked_again(bus: ServoBus, line: ServoLine) -> None:
    size = line.codec.overhead + 8
    line.spoil = Once(lambda answer: answer[:size] + answer[2 * size :])  # the second servo's is lost
    assert positions(bus) == [1, 2, 3]
    assert tuple(line.heard[0].data[-3:]) == (1, 2, 3)
    assert line.heard[1].data[-1] == 2
    assert len(line.heard[1].data) == len(line.heard[0].data) - 2


NOISE: dict[str, Callable[[bytes], bytes]] = {
    "before": lambda answer: b"\x00\xff\xff\x12\x99" + answer,
    "a header before": lambda answer: b"\xff\xff\x01\xf0" + answer,
    "between": lambda answer: answer[: len(answer) // 3] + b"\xff\x03\xff" + answer[len(answer) // 3 :],
    "doubled": lambda answer: answer + answer,
    "behind": lambda answer: answer + bytes(range(40)),
}


@pytest.mark.parametrize("where", NOISE)
def test_garbage_around_sound_packets_costs_nothing(bus: ServoBus, line: ServoLine, where: str) -> None:
    line.spoil = NOISE[where]
    for _ in range(3):
        assert positions(bus) == [1, 2, 3]
    assert bus.lost == 0


def test_what_came_before_the_question_is_no_answer_to_it(bus: ServoBus, line: ServoLine) -> None:
    """A sound packet of the right length, but of an earlier question."""
    stale = b"".join(line.codec.status(r) for r in (line._read(servo, 200, 8) for servo in NAMES))
    line.babble(stale)
    time.sleep(0.02)
    assert positions(bus) == [1, 2, 3]


def test_a_line_that_never_stops_babbling_ends_in_an_error(bus: ServoBus, line: ServoLine) -> None:
    line.spoil = lambda answer: b""
    stop = threading.Event()

    def babble() -> None:
        while not stop.is_set():
            line.babble(b"\xff\xff\x01\x00\x55" * 20)
            time.sleep(0.001)

    thread = threading.Thread(target=babble)
    thread.start()
    before = time.monotonic()
    with pytest.raises(NoAnswerError, match="pan"):
        positions(bus)
    assert time.monotonic() - before < 1.0
    stop.set()
    thread.join()


def test_an_adapter_that_echoes_changes_nothing(bus: ServoBus, line: ServoLine) -> None:
    line.echo = True
    assert bus.find(3, ()) == dict.fromkeys(NAMES, 777)
    bus.set_all(40, dict.fromkeys(NAMES, b"\x01"), "torque")
    lost = []
    for _ in range(5):  # a busy machine may lose an answer; an echo taken for one would lose them all
        before = bus.lost
        assert positions(bus) == [1, 2, 3]
        lost.append(bus.lost - before)
    assert min(lost) == 0


# --- servos that are not there ---
def test_a_servo_that_does_not_answer_is_named(bus: ServoBus, line: ServoLine) -> None:
    line.silent = {2}
    with pytest.raises(NoAnswerError, match=rf"{line.port}: no answer from servo 2 \(lift\)$"):
        positions(bus)
    with pytest.raises(NoAnswerError, match=r"servo 2 \(lift\); check its cable, its power, and that no two servos"):
        bus.find(3, (1_000_000, 500_000))


def test_nobody_there_asks_for_the_motors_power(bus: ServoBus, line: ServoLine) -> None:
    line.silent = set(NAMES)
    with pytest.raises(NoAnswerError, match=r"no servo answers \(ids 1, 2, 3, 1000000 baud\): is the motors' power on"):
        bus.find(3, (1_000_000, 500_000))
    assert bus.port.baud == 1_000_000


def test_servos_at_another_speed_are_found_and_the_speed_is_said(bus: ServoBus, line: ServoLine) -> None:
    line.baud = termios.B500000
    with pytest.raises(NoAnswerError, match="no servo answers at 1000000 baud, but at 500000: add \\?baud=500000"):
        bus.find(3, (1_000_000, 500_000, 115_200))
    bus.port.set_baud(500_000)
    assert bus.find(3, (1_000_000, 500_000)) == dict.fromkeys(NAMES, 777)


# --- two threads ---
def test_who_writes_is_not_kept_waiting_by_another_who_reads_without_pause(bus: ServoBus, line: ServoLine) -> None:
    """An answer takes 20 ms here, and a write waits for two at most: the one under way, the one already waiting."""
    line.spoil = late(0.02)
    stop, failures = threading.Event(), []

    def ask() -> None:
        while not stop.is_set():
            try:
                assert positions(bus) == [1, 2, 3]
            except (AssertionError, TrueupError) as error:
                failures.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    time.sleep(0.05)
    before, asked = time.monotonic(), bus.asked
    for k in range(10):
        bus.write_all(42, dict.fromkeys(NAMES, bytes((k, 0))))
    took, asked = time.monotonic() - before, bus.asked - asked
    stop.set()
    thread.join()
    assert not failures
    assert took < 10 * 2 * 0.02 + 0.5
    assert asked <= 10 * 2 + 10
    assert [row[1][0] for row in line.written(42)] == list(range(10))


# --- ports ---
def test_a_port_that_is_pulled_out_is_gone_for_reading_and_writing(bus: ServoBus, line: ServoLine) -> None:
    assert positions(bus) == [1, 2, 3]
    line.unplug()
    with pytest.raises(PortGoneError, match="the port is gone: unplugged\\?"):
        positions(bus)
    with pytest.raises(PortGoneError, match="unplugged"):
        bus.write_all(42, dict.fromkeys(NAMES, b"\x00\x00"))


def test_a_port_that_another_program_has_is_refused(line: ServoLine) -> None:
    first = SerialPort(line.port, 1_000_000)
    with pytest.raises(TrueupError, match=f"{line.port}: another program has this port; end it first"):
        SerialPort(line.port, 1_000_000)
    first.close()
    SerialPort(line.port, 1_000_000).close()


def test_ports_that_are_none_are_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(TrueupError, match="no such port; found here: ") as caught:
        SerialPort(str(tmp_path / "ttyUSB7"), 1_000_000)
    assert "\n" not in str(caught.value)
    (tmp_path / "file").write_text("")
    with pytest.raises(TrueupError, match="is not a serial port"):
        SerialPort(str(tmp_path / "file"), 1_000_000)
    with pytest.raises(TrueupError, match="is not a serial port"):
        SerialPort(str(tmp_path), 1_000_000)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may open everything")
def test_a_port_without_permission_says_which_group_helps(line: ServoLine) -> None:
    os.chmod(line.port, 0)
    with pytest.raises(TrueupError, match="permission denied: join the group"):
        SerialPort(line.port, 1_000_000)


def test_the_reason_of_a_port_without_permission_names_the_group() -> None:
    from trueup.hardware.drivers.servos.port import _reason

    assert "usermod -aG dialout" in _reason(PermissionError(13, "Permission denied"), 1_000_000)


def test_without_pyserial_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "serial", None)
    with pytest.raises(TrueupError, match=r"pip install 'trueup\[serial\]'"):
        SerialPort("/dev/ttyUSB0", 1_000_000)


def test_closing_twice_is_fine(line: ServoLine) -> None:
    port = SerialPort(line.port, 1_000_000)
    port.close()
    port.close()
    with pytest.raises(PortGoneError):
        port.write(b"x")
