"""Twins on a pseudo-terminal: the drivers move the right joint the right way, and the vendor's own software agrees."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from trueup.core.errors import TrueupError
from trueup.hardware.driver import Command, RobotState
from trueup.hardware.drivers.open import open_driver
from trueup.hardware.drivers.servos.bus import NoAnswerError
from trueup.hardware.drivers.servos.calibration import read_servo_map
from trueup.hardware.drivers.servos.driver import ServoDriver
from trueup.hardware.drivers.servos.dynamixel_protocol import DynamixelCodec
from trueup.hardware.drivers.servos.feetech_protocol import FeetechCodec
from trueup.hardware.drivers.servos.packet import READ, WRITE, ServoPacket
from trueup.hardware.drivers.servos.registers import STS, X
from trueup.hardware.twin_cfg import FaultCfg, ServeCfg
from trueup.robot.load import Robot, load_robot
from trueup.twin.firmware import Twin
from trueup.twin.speak import dynamixel, feetech
from trueup.twin.speak.pty_line import PtyLine
from trueup.twin.speak.servo_bus import ServoBusSpeaker
from trueup.twin.tap import read_tap

medium = pytest.mark.medium
SO101 = load_robot("so101")
SPEC, POSE = SO101.spec, SO101.spec.default_pose
TICK = 2 * np.pi / 4096
SPEAKERS = {"feetech": feetech.FeetechSpeaker, "dynamixel": dynamixel.DynamixelSpeaker}
BOTH = pytest.mark.parametrize("arm", ["feetech", "dynamixel"], indirect=True)
# P 940 and D 2000 are the arm's own gains; elbow_flex is mounted the other way round, wrist_roll has its zero elsewhere
SERVOS = "".join(
    f'[[servo]]\njoint = "{name}"\nid = {j + 11}\nzero = {2100 if name == "wrist_roll" else 2048}\n'
    f"sign = {-1 if name == 'elbow_flex' else 1}\n"
    for j, name in enumerate(SPEC.joint_names)
)
HEAD = 'schema = 1\nprotocol = "dynamixel"\nbaud = 1000000\nvoltage = 12.0\n'
DYNAMIXEL_MAP = HEAD + "[scale]\nkp = 0.01\nkd = 0.0001\ntorque = 0.002\n" + SERVOS


@pytest.fixture
def arm(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Robot]:
    """Protocol and robot: so101 as it is shipped, or with Dynamixel servos, one of them reversed."""
    if request.param == "feetech":
        return "feetech", SO101
    folder = tmp_path / "arm"
    shutil.copytree(SO101.model_path.parent, folder)
    (folder / "dynamixel.toml").write_text(DYNAMIXEL_MAP)
    return "dynamixel", load_robot(folder)


@contextlib.contextmanager
def serving(arm: tuple[str, Robot], **options: Any) -> Iterator[ServoBusSpeaker]:
    """A twin in a thread of this process."""
    protocol, robot = arm
    cfg = ServeCfg(**{"preset": "ideal", "speak": protocol} | options)
    speaker = SPEAKERS[protocol](Twin(robot, cfg), cfg)
    thread = threading.Thread(target=speaker.run)
    thread.start()
    try:
        yield speaker
    finally:
        speaker.stop()
        thread.join()
        speaker.close()


class Bench(NamedTuple):
    """A driver that is connected to a twin."""

    driver: ServoDriver
    twin: Twin

    def hold(self, target: np.ndarray, seconds: float, kp: float = 1.0) -> RobotState:
        """Send a target for a while of the twin's time; the last state."""
        end = self.twin.time_s + seconds
        while True:
            self.driver.write(command(target, kp))
            state = self.driver.read()
            if self.twin.time_s >= end:
                return state


def pass_time(twin: Twin, seconds: float) -> None:
    """Let time of the twin pass."""
    end = twin.time_s + seconds
    while twin.time_s < end:
        time.sleep(0.01)


@contextlib.contextmanager
def driving(speaker: ServoBusSpeaker, options: str = "&timeout_ms=300") -> Iterator[Bench]:
    reference = f"{speaker.reference}?{options.removeprefix('&')}"
    driver = open_driver(reference, speaker.twin.robot, command_hz=100.0)
    assert isinstance(driver, ServoDriver)
    driver.connect()
    try:
        yield Bench(driver, speaker.twin)
    finally:
        driver.close()


def command(target: np.ndarray, kp: float = 1.0) -> Command:
    zero = np.zeros(SPEC.njoint)
    return Command(target_pos=target, target_vel=zero, kp=kp * SPEC.kp, kd=SPEC.kd, torque=zero)


# --- the arm moves ---
@medium
@BOTH
def test_each_joint_moves_alone_and_with_its_sign(arm: tuple[str, Robot]) -> None:
    lean = 0.3
    with serving(arm) as speaker, driving(speaker) as bench:
        rest = bench.hold(POSE, 0.5).joint_pos
        for j, name in enumerate(SPEC.joint_names):
            target = POSE.copy()
            target[j] += lean
            moved = bench.hold(target, 0.5).joint_pos - rest
            truth = speaker.twin.plant.position - rest
            assert moved[j] == pytest.approx(lean, abs=0.08), name  # hangs on kp 9.4 against gravity and friction
            others = np.delete(moved, j)
            assert np.abs(others).max() < 0.12, name
            assert truth[j] == pytest.approx(moved[j], abs=0.02)  # and it is so in the physics too
            rest = bench.hold(POSE, 0.5).joint_pos


@medium
@BOTH
def test_states_are_those_of_the_twin_to_half_an_encoder_step(arm: tuple[str, Robot]) -> None:
    with serving(arm) as speaker, driving(speaker) as bench:
        pass_time(speaker.twin, 0.5)  # nobody has touched the arm: it comes to rest where it is held
        state, plant = bench.driver.read(), speaker.twin.plant
        np.testing.assert_allclose(state.joint_pos, plant.position, atol=TICK / 2 + 1e-3)
        np.testing.assert_allclose(state.joint_torque, plant.force, atol=0.02)
        assert state.voltage == pytest.approx(12.0 if arm[0] == "dynamixel" else 7.4)
        assert state.joint_temperature.tolist() == [25.0] * 6


@BOTH
def test_velocities_and_torques_in_registers_are_those_of_the_motors(arm: tuple[str, Robot]) -> None:
    """Period by period, without a clock: what a driver would decode against what the physics has."""
    protocol, robot = arm
    cfg = ServeCfg(preset="ideal", speak=protocol)
    speaker = SPEAKERS[protocol](Twin(robot, cfg), cfg)
    servos, table = read_servo_map(robot, protocol), STS if protocol == "feetech" else X
    load = STS.LOAD if protocol == "feetech" else X.CURRENT
    step = 1.0 if protocol == "feetech" else 0.229 * 4096 / 60  # ticks/s of one count
    speaker._is_held = False
    for servo, goal in zip(servos.ids, servos.ticks(POSE + 0.3), strict=True):
        speaker._tables[servo].put(table.TORQUE_ENABLE, 1)
        speaker._tables[servo].put(table.GOAL_POSITION, int(goal))
    fastest = 0.0
    for _ in range(30):
        speaker._pass_period()
        speaker._report()
        plant, rows = speaker.twin.plant, list(speaker._tables.values())
        speed = servos.sign * np.array([row.get(table.VELOCITY) for row in rows]) * step * TICK
        torque = servos.sign * np.array([row.get(load) for row in rows]) * servos.torque
        np.testing.assert_allclose(speed, plant.velocity, atol=0.5 * step * TICK + TICK)
        np.testing.assert_allclose(torque, plant.force, atol=0.002)
        fastest = max(fastest, float(plant.velocity[0]))
    assert fastest > 0.5
    speaker.close()


@medium
@BOTH
def test_gains_reach_the_motor(arm: tuple[str, Robot]) -> None:
    """The motors' torque is kp times the error, and at a quarter of the gain the arm hangs lower."""
    with serving(arm) as speaker, driving(speaker) as bench:
        away = []
        for kp in (2.0, 0.5):
            bench.hold(POSE + 0.25, 0.3, 2.0)
            state = bench.hold(POSE, 1.2, kp)
            away.append(abs(state.joint_pos[2] - POSE[2]))
            push = kp * SPEC.kp[2] * (POSE[2] - state.joint_pos[2])
            assert state.joint_torque[2] == pytest.approx(push, abs=0.1)
    assert away[1] > 2.0 * away[0]


@medium
@BOTH
def test_damping_lets_the_arm_sink_and_the_next_command_lifts_it(arm: tuple[str, Robot]) -> None:
    with serving(arm) as speaker, driving(speaker) as bench:
        lifted = bench.hold(POSE + np.array([0, 1.0, 0, 0, 0, 0]), 0.8).joint_pos[1]
        bench.driver.damp()
        pass_time(speaker.twin, 1.0)
        state = bench.driver.read()
        assert abs(state.joint_pos[1] - lifted) > 0.1
        assert speaker.twin.tap().watchdog == 0
        assert np.abs(state.joint_torque).max() < 0.15
        again = bench.hold(POSE + np.array([0, 1.0, 0, 0, 0, 0]), 1.0).joint_pos[1]
        assert again == pytest.approx(lifted, abs=0.08)


@medium
@BOTH
def test_a_soft_hold_keeps_the_arm_up_with_little_torque(arm: tuple[str, Robot]) -> None:
    with serving(arm) as speaker, driving(speaker, "timeout_ms=300&safe=hold&soft_torque=0.3") as bench:
        lifted = bench.hold(POSE + np.array([0, 1.0, 0, 0, 0, 0]), 0.8).joint_pos
        bench.driver.damp()
        pass_time(speaker.twin, 1.0)
        np.testing.assert_allclose(bench.driver.read().joint_pos, lifted, atol=0.15)
        assert np.abs(speaker.twin.plant.force).max() < 0.3 * 3.54 + 0.1


@medium
@BOTH
def test_no_command_leaves_the_limits_and_the_tap_has_them_all(arm: tuple[str, Robot], tmp_path: Path) -> None:
    tap = str(tmp_path / "tap")
    with serving(arm, tap=tap) as speaker, driving(speaker) as bench:
        bench.hold(POSE, 0.2)
        for far in (9.0, -9.0):
            bench.hold(POSE + far, 0.6)
        counts = speaker.twin.tap()
    assert (counts.beyond_limits, counts.nonfinite, counts.negative_gain, counts.malformed) == (0, 0, 0, 0)
    commands = read_tap(tap).commands
    sent = commands[np.isfinite(commands).all(axis=(1, 2))]
    assert len(sent) > 100
    assert (sent[:, 0] <= SPEC.position_high + 1e-6).all()
    assert (sent[:, 0] >= SPEC.position_low - 1e-6).all()


# --- a bad line ---
@medium
@BOTH
def test_a_line_that_loses_and_damages_packets_is_survived(arm: tuple[str, Robot]) -> None:
    faults, given_up = FaultCfg(drop=0.01, corrupt=0.01, duplicate=0.02), []
    with serving(arm, faults=faults, seed=3) as speaker, driving(speaker, "timeout_ms=40") as bench:
        while True:
            try:
                state = bench.hold(POSE + 0.2, 1.5)
                break
            except NoAnswerError as error:  # the losses of a busy machine come on top
                given_up.append(error)
                assert len(given_up) < 4, given_up
        assert bench.driver.bus is not None
        assert bench.driver.bus.lost > 0
        np.testing.assert_allclose(state.joint_pos, POSE + 0.2, atol=0.15)


@medium
@BOTH
def test_a_twin_that_goes_away_is_noticed(arm: tuple[str, Robot]) -> None:
    with serving(arm) as speaker, driving(speaker) as bench:
        bench.driver.read()
        speaker.stop()
        time.sleep(0.05)
        with pytest.raises(TrueupError, match=r"no answer from servos .* \(gripper\)"):
            bench.driver.read()
        speaker.close()
        with pytest.raises(TrueupError, match="the port is gone"):
            bench.driver.read()


@medium
@BOTH
def test_the_speed_of_the_line_must_be_that_of_the_servos(arm: tuple[str, Robot]) -> None:
    answer = pytest.raises(TrueupError, match="no servo answers at 115200 baud, but at 1000000")
    with serving(arm) as speaker, answer, driving(speaker, "&baud=115200"):
        pass


# --- the vendor's own software ---
@medium
@pytest.mark.parametrize("arm", ["dynamixel"], indirect=True)
def test_the_vendors_sdk_reads_and_moves_the_twin(arm: tuple[str, Robot]) -> None:
    sdk = pytest.importorskip("dynamixel_sdk")
    ids = range(11, 17)
    with serving(arm) as speaker:
        port, packets = sdk.PortHandler(speaker.reference.partition(":")[2]), sdk.PacketHandler(2.0)
        assert port.openPort()

        def insist(call: Callable[..., Any], *args: int) -> Any:
            """The SDK gives up after 34 ms, which a busy machine may need; its result is the last or only number."""
            for _ in range(20):
                answer = call(port, *args) if args else call()
                results = answer if isinstance(answer, tuple) else (answer,)
                if sdk.COMM_RX_TIMEOUT not in results:
                    break
            return answer

        assert [insist(packets.ping, servo) for servo in ids] == [(1060, sdk.COMM_SUCCESS, 0)] * 6
        found, result = insist(lambda: packets.broadcastPing(port))
        assert result == sdk.COMM_SUCCESS
        assert {servo: model for servo, (model, _) in found.items()} == dict.fromkeys(ids, 1060)
        assert packets.ping(port, 40)[1] == sdk.COMM_RX_TIMEOUT
        for servo in ids:
            assert insist(packets.write2ByteTxRx, servo, 84, 2000) == (sdk.COMM_SUCCESS, 0)  # P
            assert insist(packets.write1ByteTxRx, servo, 64, 1) == (sdk.COMM_SUCCESS, 0)
        assert insist(packets.write1ByteTxRx, 11, 11, 1) == (sdk.COMM_SUCCESS, 7)  # stored registers are locked now
        writer = sdk.GroupSyncWrite(port, packets, 116, 4)
        goals = {servo: 2048 + 40 * (servo - 13) for servo in ids}
        for servo, goal in goals.items():
            assert writer.addParam(servo, list(goal.to_bytes(4, "little")))
        assert writer.txPacket() == sdk.COMM_SUCCESS
        pass_time(speaker.twin, 1.5)
        reader = sdk.GroupSyncRead(port, packets, 126, 21)
        for servo in ids:
            assert reader.addParam(servo)
        assert insist(reader.txRxPacket) == sdk.COMM_SUCCESS
        for servo in ids:
            assert reader.getData(servo, 132, 4) == pytest.approx(goals[servo], abs=60)
            assert reader.getData(servo, 144, 2) == 120
        moved, _, _ = insist(packets.read4ByteTxRx, 12, 132)
        assert moved == pytest.approx(speaker.twin.plant.position[1] / TICK + 2048, abs=3)
        port.closePort()


class Line:
    """A host's end of the line, byte by byte."""

    def __init__(self, speaker: ServoBusSpeaker) -> None:
        self._fd = os.open(speaker.reference.partition(":")[2], os.O_RDWR | os.O_NOCTTY)
        attributes = termios.tcgetattr(self._fd)
        attributes[4] = attributes[5] = termios.B1000000
        attributes[6][termios.VMIN], attributes[6][termios.VTIME] = 0, 3
        termios.tcsetattr(self._fd, termios.TCSANOW, attributes)

    def ask(self, question: bytes, size: int) -> bytes:
        os.write(self._fd, question)
        answer = b""
        while len(answer) < size and (data := os.read(self._fd, size)):
            answer += data
        return answer

    def close(self) -> None:
        os.close(self._fd)


@medium
@pytest.mark.parametrize("arm", ["feetech"], indirect=True)
def test_packets_of_the_feetech_manual_get_answers_of_the_manuals_form(arm: tuple[str, Robot]) -> None:
    with serving(arm) as speaker:
        line = Line(speaker)
        assert line.ask(bytes.fromhex("FF FF 01 02 01 FB"), 6) == bytes.fromhex("FF FF 01 02 00 FC")
        assert line.ask(bytes.fromhex("FF FF 01 04 02 03 02 F3"), 8) == bytes.fromhex("FF FF 01 04 00 09 03 EE")
        answers = line.ask(bytes.fromhex("FF FF FE 06 82 38 08 01 02 36"), 28)
        assert answers[:5] == bytes.fromhex("FF FF 01 0A 00")
        assert answers[14:19] == bytes.fromhex("FF FF 02 0A 00")
        assert int.from_bytes(answers[5:7], "little") == 2047  # shoulder_pan at its zero
        assert answers[11:13] == bytes((74, 25))
        # to 2048 at speed 1000, garbage before and a damaged packet behind
        write = bytes.fromhex("FF FF 01 09 03 2A 00 08 00 00 E8 03 D5")
        assert line.ask(b"\xff\x00\xff" + write, 6) == bytes.fromhex("FF FF 01 02 00 FC")
        assert line.ask(write[:-1] + b"\x00", 1) == b""
        assert line.ask(bytes.fromhex("FF FF 01 04 02 2A 02 CC"), 8) == bytes.fromhex("FF FF 01 04 00 00 08 F2")
        line.close()


@medium
def test_what_a_twin_does_not_know_it_does_not_do() -> None:
    codec = FeetechCodec()
    with serving(("feetech", SO101)) as speaker:
        line = Line(speaker)
        measured = line.ask(codec.encode(ServoPacket(2, READ, bytes((56, 8)))), 14)
        line.ask(codec.encode(ServoPacket(2, WRITE, bytes((56, 0, 0)))), 6)  # read-only
        again = line.ask(codec.encode(ServoPacket(2, READ, bytes((56, 8)))), 14)
        assert abs(int.from_bytes(again[5:7], "little") - int.from_bytes(measured[5:7], "little")) < 30
        assert line.ask(codec.encode(ServoPacket(9, READ, bytes((56, 8)))), 1) == b""
        assert line.ask(codec.encode(ServoPacket(2, 0x77, b"")), 1) == b""
        assert len(line.ask(codec.encode(ServoPacket(2, READ, bytes((250, 20)))), 26)) == 26  # beyond the table: zeros
        line.close()


@medium
@pytest.mark.parametrize("arm", ["dynamixel"], indirect=True)
def test_the_bus_watchdog_stops_the_servo_until_it_is_cleared(arm: tuple[str, Robot]) -> None:
    codec, goal = DynamixelCodec(), (116).to_bytes(2, "little")
    with serving(arm) as speaker:
        line = Line(speaker)

        def write(address: int, data: bytes) -> int:
            packet = codec.encode(ServoPacket(11, WRITE, address.to_bytes(2, "little") + data))
            return codec.scan(line.ask(packet, 11)).packets[0].data[0]

        def read(address: int, length: int) -> int:
            packet = ServoPacket(11, READ, address.to_bytes(2, "little") + length.to_bytes(2, "little"))
            return int.from_bytes(codec.scan(line.ask(codec.encode(packet), 11 + length)).packets[0].data[1:], "little")

        assert write(64, b"\x01") == 0
        assert write(98, b"\x05") == 0  # 0.1 s
        assert write(116, (2548).to_bytes(4, "little")) == 0
        time.sleep(0.5)
        assert read(98, 1) == 255
        stopped = read(132, 4)
        assert 2048 <= stopped < 2500  # on its way it was stopped
        assert write(int.from_bytes(goal, "little"), (2548).to_bytes(4, "little")) == 7
        assert write(98, b"\x00") == 0
        assert write(116, (2548).to_bytes(4, "little")) == 0
        line.close()


# --- the process and its place ---
@medium
def test_the_command_line_serves_and_the_link_is_there_as_long_as_the_twin(tmp_path: Path) -> None:
    place = tmp_path / "so101"
    args = ["twin", "serve", "so101", "--preset", "ideal", "--speak", "feetech", "--place", str(place)]
    environment = os.environ | {"COLUMNS": "200"}
    code = [sys.executable, "-c", "from trueup.cli import main; main()", *args]
    with subprocess.Popen(code, stdout=subprocess.PIPE, text=True, env=environment) as twin:
        try:
            assert twin.stdout is not None
            assert f"--driver feetech:{place} " in twin.stdout.readline()
            with open_driver(f"feetech:{place}?timeout_ms=300", SO101) as driver:  # type: ignore[attr-defined]
                assert driver.read().joint_pos[1] == pytest.approx(POSE[1], abs=0.05)
        finally:
            twin.send_signal(signal.SIGTERM)
            assert twin.wait(20) == 0
    assert not place.is_symlink()


def test_a_place_that_is_taken_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(TrueupError, match="choose another --place"):
        PtyLine(str(tmp_path / "file"))
    assert (tmp_path / "file").read_text() == "mine"
    (tmp_path / "link").symlink_to(tmp_path / "file")
    with pytest.raises(TrueupError, match="choose another --place"):
        PtyLine(str(tmp_path / "link"))
    with pytest.raises(TrueupError, match="link to the serial line cannot be made"):
        PtyLine(str(tmp_path / "no" / "folder"))


def test_a_link_that_a_killed_twin_left_is_replaced(tmp_path: Path) -> None:
    place = tmp_path / "so101"
    place.symlink_to("/dev/pts/99999")
    line = PtyLine(str(place))
    assert os.readlink(place) != "/dev/pts/99999"
    line.close()
    line.close()
    assert not place.is_symlink()


def test_twins_that_cannot_be_are_refused() -> None:
    with pytest.raises(TrueupError, match="lock-step"), serving(("feetech", SO101), lockstep=True):
        pass
    with pytest.raises(TrueupError, match=r"dynamixel\.toml: no servo map here"), serving(("dynamixel", SO101)):
        pass
