"""Which motor is which joint, and what numbers stand in the messages."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import pytest

from trueup.core.errors import TrueupError
from trueup.hardware.driver import Command, RobotState
from trueup.hardware.drivers.unitree.codec import (
    POS_STOP,
    VEL_STOP,
    decode_command,
    decode_state,
    encode_command,
    encode_state,
    observed_command,
    sent_rows,
)
from trueup.hardware.drivers.unitree.motors import GO, HG, wiring_of
from trueup.hardware.drivers.unitree.streams import TickClock
from trueup.robot.load import load_robot

GO2, G1 = load_robot("go2").spec, load_robot("g1").spec
both = pytest.mark.parametrize("spec", [GO2, G1], ids=lambda spec: spec.name)


def made_state(spec: Any, seed: int = 0) -> RobotState:
    random, n = np.random.default_rng(seed), spec.njoint
    return RobotState(
        sequence=4,
        time_s=1.5,
        joint_pos=random.normal(size=n).astype(np.float32).astype(float),
        joint_vel=random.normal(size=n).astype(np.float32).astype(float),
        joint_torque=random.normal(size=n).astype(np.float32).astype(float),
        joint_temperature=np.arange(n) + 30.0,
        voltage=28.5,
        imu_quat=np.array([0.5, -0.5, 0.5, 0.5]),
        imu_gyro=np.array([0.25, -0.5, 1.0]),
        imu_acc=np.array([0.5, 0.25, 9.75]),
    )


def made_rows(spec: Any, seed: int = 0) -> np.ndarray:
    rows = np.random.default_rng(seed).normal(size=(5, spec.njoint)).astype(np.float32).astype(float)
    rows[2:4] = np.abs(rows[2:4])
    return rows


# --- motors ---
def test_a_quadrupeds_motors_are_numbered_from_the_front_right_leg() -> None:
    wiring = wiring_of(GO2)
    assert wiring.family is GO
    numbers = dict(zip(GO2.joint_names, wiring.motor.tolist(), strict=True))
    assert [numbers[f"FR_{part}_joint"] for part in ("hip", "thigh", "calf")] == [0, 1, 2]
    assert [numbers[f"{leg}_hip_joint"] for leg in ("FR", "FL", "RR", "RL")] == [0, 3, 6, 9]
    assert numbers["RL_calf_joint"] == 11


def test_a_humanoids_motors_are_numbered_legs_waist_arms() -> None:
    wiring = wiring_of(G1)
    assert wiring.family is HG
    numbers = dict(zip(G1.joint_names, wiring.motor.tolist(), strict=True))
    assert numbers["left_hip_pitch_joint"] == 0
    assert numbers["right_hip_pitch_joint"] == 6
    assert numbers["waist_yaw_joint"] == 12
    assert numbers["left_shoulder_pitch_joint"] == 15
    assert numbers["right_wrist_yaw_joint"] == 28


def test_a_humanoid_with_fewer_joints_keeps_its_motor_numbers() -> None:
    kept = tuple(j for j in G1.joints if j.name not in ("waist_roll_joint", "waist_pitch_joint"))
    wiring = wiring_of(msgspec.structs.replace(G1, joints=kept))
    assert wiring.motor.tolist() == [*range(13), *range(15, 29)]


def test_a_robot_of_another_maker_is_refused_by_joint_name() -> None:
    with pytest.raises(TrueupError, match=r"so101 is no Unitree robot.*no motor is called"):
        wiring_of(load_robot("so101").spec)


def test_a_humanoid_whose_imu_is_in_the_torso_is_refused() -> None:
    with pytest.raises(TrueupError, match="pelvis"):
        wiring_of(msgspec.structs.replace(G1, imu="imu_in_torso"))


# --- commands ---
@both
def test_a_command_comes_back_as_it_was_sent(spec: Any) -> None:
    rows, wiring = made_rows(spec), wiring_of(spec)
    taken = decode_command(wiring, encode_command(wiring, rows, 5))
    np.testing.assert_array_equal(taken.rows, rows)
    assert not taken.free.any()


@both
def test_each_joint_has_a_motor_of_its_own(spec: Any) -> None:
    wiring = wiring_of(spec)
    for joint in range(spec.njoint):
        rows = np.zeros((5, spec.njoint))
        rows[:, joint] = (0.5, 0.25, 8.0, 2.0, 4.0)
        motors = encode_command(wiring, rows, 0)["motor_cmd"][0]
        found = motors[wiring.motor[joint]]
        assert [found[name] for name in ("q", "dq", "kp", "kd", "tau")] == [0.5, 0.25, 8.0, 2.0, 4.0]
        assert np.count_nonzero(motors["kp"]) == np.count_nonzero(motors["tau"]) == 1


def test_a_quadrupeds_command_has_the_frame_and_the_stops_that_the_robot_asks_for() -> None:
    wiring, rows = wiring_of(GO2), made_rows(GO2)
    rows[2, 0], rows[3, 1] = 0.0, 0.0  # FL hip without position, FL thigh without velocity
    record = encode_command(wiring, rows, 0)
    assert record["head"][0].tolist() == [0xFE, 0xEF]
    assert record["level_flag"][0] == 0xFF
    motors = record["motor_cmd"][0]
    assert (motors["mode"] == 0x01).all()
    assert motors["q"][3] == np.float32(POS_STOP)
    assert motors["dq"][3] == np.float32(rows[1, 0])
    assert motors["dq"][4] == np.float32(VEL_STOP)
    assert motors["q"][4] == np.float32(rows[0, 1])
    assert (motors["q"][12:] == np.float32(POS_STOP)).all()
    assert (motors["kp"][12:] == 0.0).all()


def test_a_humanoids_command_repeats_the_robots_build_and_leaves_missing_motors_off() -> None:
    record = encode_command(wiring_of(G1), made_rows(G1), 5)
    assert (int(record["mode_pr"][0]), int(record["mode_machine"][0])) == (0, 5)
    assert record["motor_cmd"]["mode"][0].tolist() == [1] * 29 + [0] * 6


def test_stopped_motors_and_motors_that_are_off_have_no_gains() -> None:
    wiring = wiring_of(GO2)
    record = encode_command(wiring, made_rows(GO2), 0)
    motors = record["motor_cmd"][0]
    motors["q"][3] = POS_STOP  # FL hip, though kp is not 0
    motors["dq"][4] = VEL_STOP  # FL thigh
    motors["mode"][5] = 0  # FL calf
    rows, free = taken = decode_command(wiring, record)
    assert free.tolist() == [True, False, True] + [False] * 9
    assert rows[2, 0] == 0.0
    assert rows[3, 0] > 0.0
    assert rows[3, 1] == rows[1, 1] == 0.0
    assert rows[2, 1] > 0.0
    assert (rows[2:, 2] == 0.0).all()
    assert np.isnan(observed_command(taken).target_pos).tolist() == free.tolist()


def test_numbers_are_rounded_towards_zero_so_that_limits_stay_kept() -> None:
    n = GO2.njoint
    limit = np.full(n, 23.7)  # float32 would round it up
    command = Command(target_pos=-limit, target_vel=limit, kp=limit, kd=limit, torque=limit)
    rows = sent_rows(command, GO2.joint_names)
    assert (np.abs(rows) <= 23.7).all()
    np.testing.assert_allclose(np.abs(rows), 23.7, rtol=2e-7)
    np.testing.assert_array_equal(rows, rows.astype(np.float32))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite_are_refused_by_name(bad: float) -> None:
    zero = np.zeros(GO2.njoint)
    spoiled = zero.copy()
    spoiled[7] = bad
    with pytest.raises(TrueupError, match=f"torque of joint '{GO2.joint_names[7]}' is not finite"):
        sent_rows(Command(target_pos=zero, target_vel=zero, kp=zero, kd=zero, torque=spoiled), GO2.joint_names)
    with pytest.raises(TrueupError, match="kp takes 12 numbers"):
        sent_rows(Command(target_pos=zero, target_vel=zero, kp=zero[:3], kd=zero, torque=zero), GO2.joint_names)


# --- states ---
@both
def test_a_state_comes_back_in_the_joint_order_of_the_spec(spec: Any) -> None:
    wiring, state = wiring_of(spec), made_state(spec)
    record = encode_state(wiring, state, tick=1500, mode_machine=5)
    back = decode_state(wiring, record, sequence=4, time_s=1.5, battery_v=28.5)
    for name, value in vars(state).items():
        np.testing.assert_array_equal(getattr(back, name), value, err_msg=name)
    assert record["motor_state"]["q"][0][wiring.motor[2]] == np.float32(state.joint_pos[2])


def test_the_hotter_of_housing_and_winding_counts() -> None:
    wiring = wiring_of(G1)
    record = encode_state(wiring, made_state(G1), tick=0)
    record["motor_state"]["temperature"][0, 3] = (41, 77)
    record["motor_state"]["temperature"][0, 4] = (-3, -9)
    state = decode_state(wiring, record, sequence=1, time_s=0.0)
    assert state.joint_temperature[3:5].tolist() == [77.0, -3.0]
    assert np.isnan(state.voltage)


def test_a_battery_that_is_not_measured_is_not_an_empty_one() -> None:
    wiring = wiring_of(GO2)
    record = encode_state(wiring, replace(made_state(GO2), voltage=0.0), tick=0)
    assert np.isnan(decode_state(wiring, record, sequence=1, time_s=0.0).voltage)


def test_a_robot_without_imu_in_its_spec_reports_none() -> None:
    wiring = wiring_of(msgspec.structs.replace(GO2, imu=None))
    state = decode_state(wiring, GO.low_state.new(), sequence=1, time_s=0.0)
    assert state.imu_quat is None
    assert state.imu_gyro is None
    assert state.imu_acc is None


# --- time ---
def test_the_clock_goes_on_where_the_tick_wraps() -> None:
    clock = TickClock()
    assert clock.advance(2**32 - 4) == pytest.approx(4294967.292)
    assert clock.advance(2**32 - 2) == pytest.approx(4294967.294)
    assert clock.advance(0) == pytest.approx(4294967.296)
    assert clock.advance(6) == pytest.approx(4294967.302)


def test_an_older_tick_is_no_news_and_a_repeated_one_stands_still() -> None:
    clock = TickClock()
    assert clock.advance(1000) == 1.0
    assert clock.advance(998) is None
    assert clock.advance(1000) == 1.0
    assert clock.advance(3) is None  # the robot has started anew
    assert clock.advance(1002) == pytest.approx(1.002)
