"""Servo maps: ticks and radians by hand, LeRobot's calibration, and files that say something impossible."""

from __future__ import annotations

import json
import math
from pathlib import Path

import msgspec
import numpy as np
import pytest

from trueup.core.errors import TrueupError
from trueup.hardware.drivers.servos.calibration import (
    CountScale,
    MappedServo,
    ServoFile,
    ServoMap,
    read_servo_map,
    with_baud,
)
from trueup.robot.load import load_robot

SO101 = load_robot("so101")
SHIPPED = SO101.model_path.parent / "feetech.toml"
TICK = 2 * math.pi / 4096
# an arm calibrated with LeRobot
LEROBOT = {
    "shoulder_pan": {"id": 1, "drive_mode": 0, "homing_offset": -101, "range_min": 758, "range_max": 3447},
    "shoulder_lift": {"id": 2, "drive_mode": 0, "homing_offset": -1980, "range_min": 860, "range_max": 3246},
    "elbow_flex": {"id": 3, "drive_mode": 1, "homing_offset": -645, "range_min": 900, "range_max": 3100},
    "wrist_flex": {"id": 4, "drive_mode": 0, "homing_offset": 133, "range_min": 888, "range_max": 3175},
    "wrist_roll": {"id": 5, "drive_mode": 0, "homing_offset": 0, "range_min": 0, "range_max": 4095},
    "gripper": {"id": 6, "drive_mode": 0, "homing_offset": 12, "range_min": 2030, "range_max": 3560},
}


def table(**changes: object) -> ServoFile:
    """A map of so101 with changes to the servo of shoulder_pan."""
    servos = [MappedServo(joint=name, id=j + 1, zero=2047.0) for j, name in enumerate(SO101.spec.joint_names)]
    servos[0] = msgspec.structs.replace(servos[0], **changes)
    return ServoFile(schema=1, protocol="feetech", baud=1_000_000, servos=tuple(servos), scale=CountScale(kp=0.5))


def lerobot_file(folder: Path, content: object) -> str:
    path = folder / "arm.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return str(path)


# --- ticks ---
def test_the_shipped_map_reads_and_its_middle_is_zero() -> None:
    servos = read_servo_map(SO101, "feetech")
    assert servos.ids == [1, 2, 3, 4, 5, 6]
    assert servos.baud == 1_000_000
    assert servos.names[6] == "gripper"
    ticks = servos.ticks(np.array([0.0, 1.0, -1.0, 0.0, 0.0, math.pi / 4]))
    # 1 rad = 651.9 ticks
    assert ticks.tolist() == [2047, 2699, 1395, 2047, 2047, 2047]
    np.testing.assert_allclose(servos.kp * 16, SO101.spec.kp)  # P 16 is the arm's own gain
    np.testing.assert_allclose(servos.kd * 32, SO101.spec.kd)


def test_positions_come_back_within_half_a_tick() -> None:
    servos = read_servo_map(SO101, "feetech")
    rng = np.random.default_rng(0)
    for _ in range(50):
        position = rng.uniform(SO101.spec.position_low, SO101.spec.position_high)
        assert np.abs(servos.radians(servos.ticks(position)) - position).max() <= 0.5 * TICK + 1e-12


def test_sign_zero_and_gear_are_by_joint() -> None:
    servos = ServoMap(table(sign=-1, zero=1000.0, ticks_per_turn=8192.0), SO101.spec)
    # -0.5 rad turns a reversed servo forwards: 0.5 * 8192 / (2 pi) = 651.9 ticks
    assert servos.ticks(np.array([-0.5, 0, 0, 0, 0, 0]))[0] == 1652
    assert servos.radians(np.array([1652.0, 0, 0, 0, 0, 0]))[0] == pytest.approx(-0.5, abs=TICK)


def test_targets_stay_within_the_narrower_of_range_and_limits() -> None:
    # limits of shoulder_pan, +-1.91986 rad, are ticks 796 to 3298
    wide, narrow = ServoMap(table(range=(100, 4000)), SO101.spec), ServoMap(table(range=(1000, 2000)), SO101.spec)
    assert [wide.low[0], wide.high[0]] == [796, 3298]
    assert [narrow.low[0], narrow.high[0]] == [1000, 2000]
    far = np.array([9.0, 0, 0, 0, 0, 0])
    assert (wide.ticks(far)[0], narrow.ticks(far)[0], narrow.ticks(-far)[0]) == (3298, 2000, 1000)


def test_gains_become_whole_counts_within_the_register() -> None:
    servos = ServoMap(table(), SO101.spec)
    assert servos.counts(np.full(6, 8.1), servos.kp, 254).tolist() == [16] * 6
    assert servos.counts(np.full(6, 1e9), servos.kp, 254).tolist() == [254] * 6
    assert servos.counts(np.full(6, 0.2), servos.kd, 254).tolist() == [-1] * 6  # no scale of D


def test_a_servo_of_another_kind_has_its_own_scale() -> None:
    servos = ServoMap(table(scale=CountScale(kp=2.0, torque=0.01)), SO101.spec)
    assert servos.kp.tolist() == [2.0] + [0.5] * 5
    assert servos.torque[0] == 0.01
    assert np.isnan(servos.torque[1:]).all()


# --- LeRobot ---
def test_lerobots_calibration_gives_ids_directions_ranges_offsets_and_zeros(tmp_path: Path) -> None:
    servos = read_servo_map(SO101, "feetech", calibration=lerobot_file(tmp_path, LEROBOT))
    assert servos.sign.tolist() == [1, 1, -1, 1, 1, 1]
    assert [servo.homing_offset for servo in servos.servos] == [-101, -1980, -645, 133, 0, 12]
    zeros = [servo.zero for servo in servos.servos]
    # the middle of the travel is the middle of the limits, which is 0 for five joints
    assert zeros[:5] == pytest.approx([2102.5, 2053.0, 2000.0, 2031.5, 2047.5])
    # the jaw closes at -0.174533 rad, tick 2030: 0.174533 / TICK = 113.8 ticks below zero
    assert zeros[5] == pytest.approx(2143.78, abs=0.01)
    assert servos.radians(np.array([2102.5, 0, 2000 - 100, 0, 0, 2030]))[[0, 2, 5]] == pytest.approx(
        [0.0, 100 * TICK, -0.174533], abs=1e-6
    )
    assert (servos.low >= [motor["range_min"] for motor in LEROBOT.values()]).all()
    assert (servos.high <= [motor["range_max"] for motor in LEROBOT.values()]).all()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is not a LeRobot calibration"),
        ('{"gripper": {"id": 6}}', "drive_mode"),
        ({k: v for k, v in LEROBOT.items() if k != "elbow_flex"}, "no motor 'elbow_flex' here"),
        ({**LEROBOT, "gripper": {**LEROBOT["gripper"], "range_max": 9000}}, "between ticks 0 and 4095"),
        ({**LEROBOT, "gripper": {**LEROBOT["gripper"], "id": 1}}, "one id for each joint"),
    ],
)
def test_a_calibration_that_does_not_fit_is_refused(tmp_path: Path, content: object, message: str) -> None:
    path = lerobot_file(tmp_path, content)
    with pytest.raises(TrueupError, match=message) as caught:
        read_servo_map(SO101, "feetech", calibration=path)
    assert path in str(caught.value)


def test_a_reversed_jaw_closes_at_the_other_end_of_its_travel(tmp_path: Path) -> None:
    path = lerobot_file(tmp_path, {**LEROBOT, "gripper": {**LEROBOT["gripper"], "drive_mode": 1}})
    servos = read_servo_map(SO101, "feetech", calibration=path)
    assert servos.sign[5] == -1
    assert servos.radians(np.full(6, 3560.0))[5] == pytest.approx(-0.174533, abs=1e-6)


def test_a_calibration_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(TrueupError, match=r"absent\.json"):
        read_servo_map(SO101, "feetech", calibration=str(tmp_path / "absent.json"))


# --- files ---
@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('protocol = "feetech"', 'protocol = "dynamixel"', "is a map of dynamixel servos"),
        ('joint = "elbow_flex"', 'joint = "elbow"', "no joint 'elbow'.*elbow_flex"),
        ("id = 3", "id = 2", "one id for each joint"),
        ("id = 3", "id = 300", "id"),
        ("zero = 2047", "zero = nan", "zero is a tick"),
        ("baud = 1000000", "baud = 12", "baud"),
        ("kp = 0.5875", "kp = 0", "kp"),
        ('joint = "elbow_flex"', 'joint = "elbow_flex"\nspeed = 3', "unknown field `speed`"),
        ('joint = "elbow_flex"', 'joint = "elbow_flex"\nrange = [3000, 1000]', "least, most"),
        ('joint = "elbow_flex"', 'joint = "elbow_flex"\nrange = [4000, 4095]', "misses its position limits"),
    ],
)
def test_a_map_that_cannot_be_is_refused_with_its_place(tmp_path: Path, old: str, new: str, message: str) -> None:
    file = tmp_path / "map.toml"
    text = SHIPPED.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))
    with pytest.raises(TrueupError, match=message) as caught:
        read_servo_map(SO101, "feetech", str(file))
    assert str(file) in str(caught.value)


def test_a_missing_joint_is_named() -> None:
    with pytest.raises(TrueupError, match="no servo for joint wrist_roll, gripper"):
        ServoMap(msgspec.structs.replace(table(), servos=table().servos[:4]), SO101.spec)


def test_a_robot_without_map_is_told_where_to_read_on() -> None:
    with pytest.raises(TrueupError, match=r"dynamixel\.toml: no servo map here: docs/drivers/dynamixel\.md"):
        read_servo_map(SO101, "dynamixel")


def test_another_speed_can_be_asked_for() -> None:
    assert with_baud(ServoMap(table(), SO101.spec), "500000").baud == 500_000
    assert with_baud(ServoMap(table(), SO101.spec), "").baud == 1_000_000
    with pytest.raises(TrueupError, match="baud is a whole number"):
        with_baud(ServoMap(table(), SO101.spec), "fast")
