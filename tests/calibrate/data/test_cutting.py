"""Rows of windows, noise levels, saturation and rotations, each against numbers worked out by hand."""

from dataclasses import replace

import numpy as np
import pytest

from trueup.calibrate.data.cutting import (
    Cut,
    gain_pieces,
    need_base,
    position_noise,
    quantum,
    rotation_between,
    saturated,
    true_velocity,
    velocity_noise,
    window_rows,
)
from trueup.core.errors import TrueupError
from trueup.data.log import Log
from trueup.robot.load import load_robot

PENDULUM = load_robot("pendulum")


def log_of(rows: int, kp: list[float] | None = None) -> Log:
    signals = {"joint_pos": np.zeros((rows, 1)), "target_pos": np.zeros((rows, 1))}
    if kp is not None:
        signals["target_kp"] = np.array(kp)[:, None]
    return Log(time=np.arange(rows) / 100.0, joint_names=PENDULUM.spec.joint_names, signals=signals)


def cut(compared: int | None, warm: int = 0, *, follows: bool = False) -> Cut:
    return Cut(compared=compared, warm=warm, past=1, follows=follows)


def compared(log_rows: int, how: Cut) -> list[list[int]]:
    """Rows that each window of one log compares: sample i of a window is the row start + 1 + i."""
    start, keep = window_rows([log_of(log_rows)], how)
    return [(first + 1 + np.flatnonzero(row)).tolist() for first, row in zip(start, keep, strict=True)]


def test_a_log_is_cut_where_a_gain_changes():
    assert gain_pieces(log_of(5)) == [(0, 5)]
    assert gain_pieces(log_of(6, [1, 1, 2, 2, 2, 1])) == [(0, 2), (2, 5), (5, 6)]
    damped = log_of(4, [1, 1, 1, 1])
    damped.signals["target_kd"] = np.array([[0.0], [0.0], [0.0], [1.0]])
    assert gain_pieces(damped) == [(0, 3), (3, 4)]


def test_the_last_window_reaches_the_end_and_compares_no_row_twice():
    assert compared(9, cut(4)) == [[1, 2, 3, 4], [5, 6, 7, 8]]
    assert compared(11, cut(4)) == [[1, 2, 3, 4], [5, 6, 7, 8], [9, 10]]


def test_a_warm_up_is_simulated_and_not_compared():
    assert compared(12, cut(3, warm=2)) == [[3, 4, 5], [6, 7, 8], [9, 10, 11]]


def test_whole_logs_are_one_window_each_padded_to_the_longest():
    start, keep = window_rows([log_of(5), log_of(8)], cut(None, follows=True))
    assert start.tolist() == [0, 5]
    assert keep.sum(axis=1).tolist() == [4, 7]
    assert keep.shape == (2, 7)


def test_stretches_too_short_for_a_window_hold_none_unless_gains_are_followed():
    log = log_of(10, [1] * 6 + [2] * 4)
    assert cut(4).least == 5
    assert cut(4).stretches(log) == [(0, 6)]
    assert cut(4, follows=True).stretches(log) == [(0, 10)]
    assert cut(4, warm=9).stretches(log) == []


def test_noise_is_told_from_motion():
    rng, time = np.random.default_rng(0), np.arange(2000) / 200
    motion = np.sin(2 * np.pi * 2.0 * time)[:, None]
    noisy = motion + rng.normal(0.0, [1e-3, 5e-3], (2000, 2))
    np.testing.assert_allclose(position_noise(noisy), [1e-3, 5e-3], rtol=0.1)
    assert position_noise(motion)[0] < 1e-4
    assert position_noise(np.zeros((10, 1)))[0] == 1e-5  # too short: the least noise


def test_an_encoder_s_step_is_found_and_is_the_least_noise():
    steps = 0.02 * np.random.default_rng(0).integers(0, 50, (300, 1))
    assert quantum(steps)[0] == pytest.approx(0.02)
    assert quantum(np.random.default_rng(0).normal(size=(300, 1)))[0] == 0.0
    slow = np.floor(np.arange(400) / 100)[:, None] * 0.02  # hardly moves: differences alone would show no noise
    assert position_noise(slow)[0] == pytest.approx(0.02 / np.sqrt(12))


def test_a_velocity_in_the_wrong_unit_is_rescaled_and_a_bad_one_is_left():
    rng, derivative = np.random.default_rng(0), np.sin(np.arange(500) / 20)[:, None]
    np.testing.assert_allclose(true_velocity(57.3 * derivative, derivative), derivative)
    np.testing.assert_array_equal(true_velocity(1.03 * derivative, derivative), 1.03 * derivative)
    noise = rng.normal(size=(500, 1))
    np.testing.assert_array_equal(true_velocity(noise, derivative), noise)
    np.testing.assert_allclose(velocity_noise(derivative + 0.3, derivative), [0.3])


def test_a_joint_at_its_torque_limit_is_left_out_for_a_moment_after():
    log, spec = log_of(40), PENDULUM.spec
    log["target_pos"][10, 0] = 0.99 * spec.torque_limit[0] / spec.kp[0]
    full = saturated(PENDULUM, log, np.zeros((40, 1)))[:, 0]
    assert np.flatnonzero(full).tolist() == [*range(10, 16)]  # 0.05 s at 100 Hz
    log["target_pos"][10, 0] *= 0.97 / 0.99
    assert not saturated(PENDULUM, log, np.zeros((40, 1))).any()
    measured = replace(log, signals={**log.signals, "joint_torque": np.full((40, 1), -spec.torque_limit[0])})
    assert saturated(PENDULUM, measured, np.zeros((40, 1))).all()


def test_rotations_are_vectors_in_the_first_frame_by_the_shorter_way():
    level, half = np.array([1.0, 0.0, 0.0, 0.0]), 0.5**0.5
    left = np.array([half, 0.0, 0.0, half])  # a quarter turn to the left
    np.testing.assert_allclose(rotation_between(level, left), [0, 0, np.pi / 2], atol=1e-12)
    np.testing.assert_allclose(rotation_between(left, level), [0, 0, -np.pi / 2], atol=1e-12)
    np.testing.assert_allclose(rotation_between(level, -left), [0, 0, np.pi / 2], atol=1e-12)
    # from there, a roll about the world's x is one about the turned body's -y
    rolled = np.array([0.5, 0.5, -0.5, 0.5])
    np.testing.assert_allclose(rotation_between(left, rolled), [0, -np.pi / 2, 0], atol=1e-12)
    np.testing.assert_allclose(rotation_between(left, left), 0.0, atol=1e-12)


def test_a_free_base_names_the_signal_that_is_missing():
    with pytest.raises(TrueupError, match="'base_pos' is missing; record with odometry"):
        need_base([log_of(5)])
