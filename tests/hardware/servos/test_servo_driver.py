"""The drivers against servos in memory: what goes onto the line, what comes back in SI, the safe state, faults."""

from __future__ import annotations

import logging
import math
import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from servo_line import Once, ServoLine

from trueup.core.errors import TrueupError
from trueup.hardware.driver import Command
from trueup.hardware.drivers.open import open_driver
from trueup.hardware.drivers.servos.bus import NotTakenError
from trueup.hardware.drivers.servos.driver import ServoDriver
from trueup.hardware.drivers.servos.dynamixel_protocol import DynamixelCodec
from trueup.hardware.drivers.servos.feetech_protocol import FeetechCodec
from trueup.robot.load import Robot, load_robot

SO101 = load_robot("so101")
SPEC, N = SO101.spec, 6
TICK = 2 * math.pi / 4096
ZERO = np.zeros(N)
DYNAMIXEL_MAP = """
schema = 1
protocol = "dynamixel"
baud = 1000000
[scale]
kp = 0.01
kd = 0.0001
torque = 0.002
""" + "".join(f'[[servo]]\njoint = "{name}"\nid = {11 + j}\nzero = 2048\n' for j, name in enumerate(SPEC.joint_names))


@pytest.fixture
def feetech() -> Iterator[ServoLine]:
    with ServoLine(FeetechCodec(), range(1, 7)) as line:
        for servo in range(1, 7):
            line.put(servo, 3, b"\x09\x03")  # STS3215
            line.put(servo, 18, b"\x0c")  # phase as from the factory
            line.put(servo, 21, bytes((32, 30, 5)))
            line.put(servo, 56, (2047 + 10 * servo).to_bytes(2, "little") + bytes((0, 0, 0, 0, 74, 25 + servo)))
        yield line


@pytest.fixture
def dynamixel() -> Iterator[ServoLine]:
    with ServoLine(DynamixelCodec(), range(11, 17), address_bytes=2) as line:
        for servo in range(11, 17):
            line.put(servo, 0, b"\x24\x04")
            line.put(servo, 11, b"\x03")
            line.put(servo, 36, (885).to_bytes(2, "little"))
            line.put(servo, 80, (4000).to_bytes(2, "little") + b"\x07\x00" + (640).to_bytes(2, "little"))
            line.put(servo, 132, (2048).to_bytes(4, "little"))
            line.put(servo, 144, bytes((119, 0, 40)))
        yield line


@pytest.fixture
def arm(tmp_path: Path) -> Robot:
    """so101 with Dynamixel servos."""
    folder = tmp_path / "arm"
    shutil.copytree(SO101.model_path.parent, folder)
    (folder / "dynamixel.toml").write_text(DYNAMIXEL_MAP)
    return load_robot(folder)


def made(line: ServoLine, options: str = "", robot: Robot = SO101) -> ServoDriver:
    driver = open_driver(f"{line.codec.name}:{line.port}?timeout_ms=100{options}", robot, command_hz=100.0)
    assert isinstance(driver, ServoDriver)
    return driver


def opened(line: ServoLine, options: str = "", robot: Robot = SO101) -> ServoDriver:
    driver = made(line, options, robot)
    driver.connect()
    return driver


def go_to(target: np.ndarray, kp: float = 1.0, kd: float = 1.0, torque: float = 0.0) -> Command:
    zero = np.zeros(N)
    return Command(target_pos=target, target_vel=zero, kp=kp * SPEC.kp, kd=kd * SPEC.kd, torque=zero + torque)


# --- Feetech: state and commands ---
def test_connecting_writes_nothing(feetech: ServoLine) -> None:
    with made(feetech) as driver:
        driver.read()
    assert {packet.code for packet in feetech.heard} == {0x82}


def test_a_state_is_in_si_and_in_joint_order(feetech: ServoLine) -> None:
    feetech.put(2, 56, (1047).to_bytes(2, "little"))  # 1000 ticks below zero
    feetech.put(3, 58, (100 | 1 << 15).to_bytes(2, "little"))  # -100 steps/s
    feetech.put(4, 60, (250 | 1 << 10).to_bytes(2, "little"))  # -25 % of the drive
    feetech.put(5, 62, bytes((61,)))  # the lowest voltage
    with made(feetech) as driver:
        before = time.monotonic()
        first, second = driver.read(), driver.read()
    assert driver.realtime
    assert driver.joint_names == SPEC.joint_names
    assert first.joint_pos[:2] == pytest.approx([10 * TICK, -1000 * TICK])
    assert first.joint_vel[2] == pytest.approx(-100 * TICK)
    assert first.joint_torque[3] == pytest.approx(-0.885)  # 0.25 of 3.54 N m
    assert first.joint_temperature.tolist() == [26, 27, 28, 29, 30, 31]
    assert first.voltage == pytest.approx(6.1)
    assert first.imu_quat is None
    assert (first.sequence, second.sequence) == (1, 2)
    assert before <= first.time_s < second.time_s <= time.monotonic()


def test_velocities_in_coarse_steps_are_understood(feetech: ServoLine) -> None:
    feetech.put(1, 18, b"\x08")  # speed unit 50 steps/s
    feetech.put(1, 58, (10).to_bytes(2, "little"))
    with made(feetech) as driver:
        assert driver.read().joint_vel[0] == pytest.approx(500 * TICK)


def test_the_first_command_sets_lock_gains_goal_torque_limit_and_then_torque(feetech: ServoLine) -> None:
    target = np.array([0.0, -1.0, 0.5, 0.0, 0.0, 0.3])
    with made(feetech) as driver:
        sent = driver.write(go_to(target))
        driver.read()  # once it is answered, all has arrived
        memory = feetech.memory[2]
        assert memory[55] == 1  # gains are not stored for good
        assert list(memory[21:24]) == [16, 32, 0]
        assert int.from_bytes(memory[42:44], "little") == 1395
        assert list(memory[44:48]) == [0, 0, 0, 0]
        assert int.from_bytes(memory[48:50], "little") == 831  # 2.94 N m of 3.54
        assert int.from_bytes(feetech.memory[6][48:50], "little") == 415
        assert memory[40] == 1
        order = [packet.data[0] for packet in feetech.heard if packet.code == 0x83]
        assert order == [55, 21, 41, 40, 42]
    np.testing.assert_allclose(sent.target_pos, target, atol=TICK / 2 + 1e-9)
    np.testing.assert_allclose(sent.kp, SPEC.kp)
    np.testing.assert_allclose(sent.kd, SPEC.kd)


def test_later_commands_are_one_packet_of_goals(feetech: ServoLine) -> None:
    with made(feetech) as driver:
        driver.write(go_to(ZERO))
        driver.read()
        before = len(feetech.heard)
        for k in range(5):
            driver.write(go_to(ZERO + 0.01 * k))
        driver.read()
        assert [packet.code for packet in feetech.heard[before:]] == [0x83] * 5 + [0x82]
        assert len(feetech.heard[before].data) == 2 + 6 * 3


def test_what_write_returns_is_what_was_sent(feetech: ServoLine) -> None:
    with made(feetech) as driver:
        sent = driver.write(go_to(ZERO + 9.0, kp=0.2, torque=1.0))
        driver.read()
        high = [int.from_bytes(row, "little") for row in feetech.written(42)[-1].values()]
    np.testing.assert_allclose(sent.kp, 3 * 0.5875)  # P 3.2 is not to be had
    assert (sent.target_pos <= SPEC.position_high).all()
    np.testing.assert_allclose(sent.target_pos, SPEC.position_high, atol=TICK)
    assert high[0] == 3298
    assert not sent.torque.any()
    assert not sent.target_vel.any()


def test_changed_gains_go_out_three_times_and_only_then(feetech: ServoLine) -> None:
    with made(feetech) as driver:
        driver.write(go_to(ZERO))
        before = len(feetech.written(21))
        for _ in range(6):
            driver.write(go_to(ZERO, kp=0.5))
        driver.read()
        rows = feetech.written(21)[before:]
    assert [row[1] for row in rows] == [bytes((8, 32, 0))] * 3


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (go_to(np.array([0, 0, np.nan, 0, 0, 0])), "target_pos of joint 'elbow_flex' is not finite"),
        (go_to(ZERO, kp=np.inf), "kp of joint 'shoulder_pan' is not finite"),
        (go_to(ZERO, torque=np.nan), "torque of joint 'shoulder_pan' is not finite"),
        (go_to(ZERO, kp=-1.0), "must not be negative"),
        (go_to(np.zeros(5)), "target_pos takes 6 numbers"),
    ],
)
def test_a_command_that_cannot_be_sent_is_refused_and_nothing_is_sent(
    feetech: ServoLine, command: Command, message: str
) -> None:
    with made(feetech) as driver:
        before = len(feetech.heard)
        with pytest.raises(TrueupError, match=message):
            driver.write(command)
        time.sleep(0.02)
        assert len(feetech.heard) == before


def test_feed_forward_torque_is_left_out_and_said_once(feetech: ServoLine, caplog: pytest.LogCaptureFixture) -> None:
    with made(feetech) as driver, caplog.at_level(logging.WARNING):
        for _ in range(3):
            driver.write(go_to(ZERO, torque=0.5))
    assert [r.message for r in caplog.records if "torque" in r.message] == [
        "position servos take no torque and no velocity: both are left out of commands"
    ]


# --- the safe state ---
def test_damping_lowers_the_torque_at_the_present_position_and_then_brakes(feetech: ServoLine) -> None:
    with made(feetech) as driver:
        driver.read()
        driver.write(go_to(ZERO + 0.2))
        sent = driver.damp()
        memory = feetech.memory[3]
        assert memory[40] == 2  # the servo's own damping
        assert int.from_bytes(memory[42:44], "little") == 2077  # where it was
        assert int.from_bytes(memory[48:50], "little") == 200
        assert not sent.kp.any()
        assert sent.target_pos[2] == pytest.approx(30 * TICK)
        before = len(feetech.heard)
        driver.damp()
        driver.read()
        assert [packet.data[0] for packet in feetech.heard[before:]] == [40, 56]  # again, but short
        driver.write(go_to(ZERO))
        assert memory[40] == 1
        assert int.from_bytes(memory[48:50], "little") == 831


@pytest.mark.parametrize(("safe", "wanted"), [("damp", 2), ("hold", 1), ("limp", 0)])
def test_the_end_is_the_safe_state_that_was_asked_for(feetech: ServoLine, safe: str, wanted: int) -> None:
    driver = opened(feetech, f"&safe={safe}")
    driver.write(go_to(ZERO))
    driver.close()
    driver.close()
    assert [memory[40] for memory in feetech.memory.values()] == [wanted] * 6
    with pytest.raises(TrueupError, match="connect"):
        driver.read()


def test_a_command_without_stiffness_is_damping(feetech: ServoLine) -> None:
    with made(feetech) as driver:
        driver.write(go_to(ZERO))
        driver.write(go_to(ZERO, kp=0.0))
        assert feetech.memory[1][40] == 2


def test_firmware_that_knows_no_damping_holds_softly_instead(
    feetech: ServoLine, caplog: pytest.LogCaptureFixture
) -> None:
    with made(feetech) as driver, caplog.at_level(logging.WARNING):
        driver.write(go_to(ZERO))
        feetech.stuck.add(40)
        driver.damp()
        assert feetech.memory[1][40] == 1
        assert int.from_bytes(feetech.memory[1][48:50], "little") == 200
    assert "it holds with 0.2 of its torque instead" in caplog.text
    feetech.stuck.clear()


def test_torque_that_does_not_come_on_is_an_error_that_names_the_servo(feetech: ServoLine) -> None:
    with made(feetech) as driver:
        feetech.stuck.add(40)
        with pytest.raises(NotTakenError, match=r"servo 1 \(shoulder_pan\) does not take torque"):
            driver.write(go_to(ZERO))
        feetech.stuck.clear()
    assert feetech.memory[1][40] == 2  # whatever was begun ends in the safe state


def test_damping_reaches_the_others_when_one_servo_is_silent(feetech: ServoLine) -> None:
    driver = opened(feetech)
    driver.write(go_to(ZERO))
    driver.read()
    feetech.silent = {4}
    with pytest.raises(TrueupError, match=r"servo 4 \(wrist_flex\)"):
        driver.damp()
    assert [feetech.memory[servo][40] for servo in (1, 2, 3, 5, 6)] == [2] * 5
    driver.close()


# --- faults ---
def test_a_lost_answer_is_asked_for_again_and_a_silent_servo_is_named(feetech: ServoLine) -> None:
    with made(feetech) as driver:
        feetech.spoil = Once(lambda answer: b"")
        assert driver.read().sequence == 1
        assert driver.bus is not None
        assert driver.bus.lost == 1
        feetech.silent = {5, 6}
        before = time.monotonic()
        with pytest.raises(TrueupError, match=r"no answer from servos 5 \(wrist_roll\), 6 \(gripper\)"):
            driver.read()
        assert time.monotonic() - before < 1.0
        assert driver.trouble.endswith("no answer from servos 5 (wrist_roll), 6 (gripper)")
        feetech.silent = set()
        assert driver.read().sequence == 2
        assert driver.trouble == ""


def test_a_fault_that_a_servo_reports_is_logged_with_its_joint(
    feetech: ServoLine, caplog: pytest.LogCaptureFixture
) -> None:
    with made(feetech) as driver, caplog.at_level(logging.WARNING):
        feetech.errors = {2: 0x24}
        driver.read()
        driver.read()
        feetech.errors = {}
        driver.read()
    assert [r.getMessage() for r in caplog.records] == [
        "servos report faults: {'shoulder_lift': 'temperature, overload'}",
        "servos report faults: none any more",
    ]


@pytest.mark.parametrize(
    ("servo", "address", "value", "message"),
    [
        (3, 33, b"\x01", r"servo 3 \(elbow_flex\) is in mode 1; position mode \(register 33\) is 0"),
        (2, 18, b"\x1c", r"servo 2 \(shoulder_lift\) counts several turns"),
    ],
)
def test_servos_set_up_for_something_else_are_refused(
    feetech: ServoLine, servo: int, address: int, value: bytes, message: str
) -> None:
    feetech.put(servo, address, value)
    with pytest.raises(TrueupError, match=message):
        opened(feetech)


def test_another_homing_offset_than_calibrated_is_refused(feetech: ServoLine, tmp_path: Path) -> None:
    file = tmp_path / "map.toml"
    text = (SO101.model_path.parent / "feetech.toml").read_text()
    file.write_text(text.replace("id = 3\n", "id = 3\nhoming_offset = -645\n"))
    with pytest.raises(TrueupError, match=r"servo 3 \(elbow_flex\) holds homing offset 0, the calibration says -645"):
        opened(feetech, f"&map={file}")
    feetech.put(3, 31, (645 | 1 << 11).to_bytes(2, "little"))
    opened(feetech, f"&map={file}").close()


def test_an_unplugged_port_ends_reading_writing_and_closing_in_words(
    feetech: ServoLine, caplog: pytest.LogCaptureFixture
) -> None:
    driver = opened(feetech)
    driver.write(go_to(ZERO))
    feetech.unplug()
    for action in (driver.read, driver.damp, lambda: driver.write(go_to(ZERO))):
        with pytest.raises(TrueupError, match="the port is gone: unplugged"):
            action()
    driver.close()
    assert "damping at the end failed" in caplog.text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("&safe=float", "safe is damp, hold or limp"),
        ("&torque=2", "torque is a share"),
        ("&torque=strong", "option 'torque' takes a number"),
        ("&acceleration=400", "acceleration lies between"),
        ("&read_hz=0", "read_hz is 1 to 1000"),
        ("&baud=quick", "baud is a whole number"),
        ("&watchdog_s=1", "has no option 'watchdog_s'"),
        ("&map=/nowhere.toml", "no servo map here"),
    ],
)
def test_options_that_cannot_be_are_refused(feetech: ServoLine, options: str, message: str) -> None:
    with pytest.raises(TrueupError, match=message):
        opened(feetech, options)


def test_calls_in_the_wrong_order_are_refused(feetech: ServoLine) -> None:
    driver = open_driver(f"feetech:{feetech.port}", SO101)
    with pytest.raises(TrueupError, match="not connected"):
        driver.read()
    driver.connect()
    with pytest.raises(TrueupError, match="connected already"):
        driver.connect()
    driver.close()


# --- two threads, as in a guard ---
@pytest.mark.medium
def test_one_thread_reads_while_another_writes(feetech: ServoLine) -> None:
    with made(feetech, "&read_hz=200") as driver:
        driver.write(go_to(ZERO))
        stop, sequences = threading.Event(), []

        def read() -> None:
            while not stop.is_set():
                sequences.append(driver.read().sequence)

        thread = threading.Thread(target=read)
        thread.start()
        goals = [0.001 * k for k in range(150)]
        for goal in goals:
            driver.write(go_to(ZERO + goal))
            time.sleep(0.004)
        stop.set()
        thread.join()
        sent = [int.from_bytes(row[1], "little") for row in feetech.written(42)][-150:]
    assert sent == [round(2047 + goal / TICK) for goal in goals]
    assert sequences == list(range(1, len(sequences) + 1))
    assert len(sequences) > 60


def test_reading_keeps_to_its_rate(feetech: ServoLine) -> None:
    with made(feetech, "&read_hz=50") as driver:
        before = time.monotonic()
        for _ in range(6):
            driver.read()
        assert time.monotonic() - before >= 0.1


# --- Dynamixel ---
def test_dynamixel_states_are_in_si(dynamixel: ServoLine, arm: Robot) -> None:
    dynamixel.put(12, 126, (-300).to_bytes(2, "little", signed=True))
    dynamixel.put(13, 128, (-10).to_bytes(4, "little", signed=True))
    dynamixel.put(14, 132, (3048).to_bytes(4, "little"))
    with made(dynamixel, robot=arm) as driver:
        state = driver.read()
    assert state.joint_torque[1] == pytest.approx(-0.6)
    assert state.joint_vel[2] == pytest.approx(-10 * 0.229 * 2 * math.pi / 60)
    assert state.joint_pos[3] == pytest.approx(1000 * TICK)
    assert state.voltage == pytest.approx(11.9)
    assert state.joint_temperature.tolist() == [40] * 6


def test_dynamixel_gains_limits_torque_and_watchdog_are_set_before_goals(dynamixel: ServoLine, arm: Robot) -> None:
    with made(dynamixel, "&torque=0.5", robot=arm) as driver:
        driver.write(go_to(ZERO + 0.1))
        driver.read()
        memory = dynamixel.memory[11]
        d, i, p = (int.from_bytes(memory[at : at + 2], "little") for at in (80, 82, 84))
        assert (d, i, p) == (2000, 0, 940)  # 0.2 / 0.0001, 9.4 / 0.01
        assert int.from_bytes(memory[100:102], "little") == 442  # half of the PWM limit 885
        assert memory[64] == 1
        assert memory[98] == 25  # 0.5 s in steps of 20 ms
        assert int.from_bytes(memory[116:120], "little") == round(2048 + 0.1 / TICK)


def test_dynamixel_damping_keeps_only_d_and_closing_leaves_gains_as_found(dynamixel: ServoLine, arm: Robot) -> None:
    driver = opened(dynamixel, robot=arm)
    driver.write(go_to(ZERO + 0.1))
    driver.damp()
    memory = dynamixel.memory[16]
    assert [int.from_bytes(memory[at : at + 2], "little") for at in (80, 82, 84)] == [2000, 0, 0]
    assert (memory[64], memory[98]) == (1, 0)
    driver.close()
    assert memory[64] == 0
    assert [int.from_bytes(memory[at : at + 2], "little") for at in (80, 82, 84)] == [4000, 7, 640]


@pytest.mark.parametrize(("safe", "torque", "p"), [("limp", 0, 640), ("hold", 1, 940)])
def test_dynamixel_limp_and_hold(dynamixel: ServoLine, arm: Robot, safe: str, torque: int, p: int) -> None:
    driver = opened(dynamixel, f"&safe={safe}", robot=arm)
    driver.read()
    driver.write(go_to(ZERO + 0.1))
    driver.damp()
    driver.close()
    memory = dynamixel.memory[11]
    assert memory[64] == torque
    assert int.from_bytes(memory[84:86], "little") == p
    if safe == "hold":
        assert int.from_bytes(memory[116:120], "little") == 2048
        assert int.from_bytes(memory[100:102], "little") == 177


def test_dynamixel_watchdog_is_cleared_after_a_pause(dynamixel: ServoLine, arm: Robot) -> None:
    with made(dynamixel, "&watchdog_s=0.1", robot=arm) as driver:
        driver.write(go_to(ZERO))
        driver.read()
        before = len(dynamixel.written(98))
        time.sleep(0.12)
        driver.write(go_to(ZERO))
        driver.read()
        assert [row[11] for row in dynamixel.written(98)[before:]] == [b"\x00", b"\x05"]


@pytest.mark.parametrize(
    ("address", "value", "message"),
    [
        (11, b"\x01", r"servo 11 \(shoulder_pan\) is in mode 1; position modes"),
        (70, b"\x20", r"servo 11 \(shoulder_pan\) reports hardware error 0x20"),
    ],
)
def test_dynamixel_servos_that_cannot_run_are_refused(
    dynamixel: ServoLine, arm: Robot, address: int, value: bytes, message: str
) -> None:
    dynamixel.put(11, address, value)
    with pytest.raises(TrueupError, match=message):
        opened(dynamixel, robot=arm)


def test_without_a_scale_of_d_the_servos_own_d_stays(dynamixel: ServoLine, arm: Robot) -> None:
    file = arm.model_path.parent / "dynamixel.toml"
    file.write_text(DYNAMIXEL_MAP.replace("kd = 0.0001\n", "").replace("torque = 0.002\n", ""))
    with made(dynamixel, robot=arm) as driver:
        sent = driver.write(go_to(ZERO))
        assert int.from_bytes(dynamixel.memory[11][80:82], "little") == 4000
        assert not sent.kd.any()
        assert np.isnan(driver.read().joint_torque).all()


def test_a_map_without_a_scale_of_p_is_refused(dynamixel: ServoLine, arm: Robot) -> None:
    (arm.model_path.parent / "dynamixel.toml").write_text(DYNAMIXEL_MAP.replace("kp = 0.01\n", ""))
    with pytest.raises(TrueupError, match=r"needs scale\.kp"):
        opened(dynamixel, robot=arm)
