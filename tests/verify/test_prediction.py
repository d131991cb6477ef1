"""Predictions from worlds: numbers worked out by hand."""

import math

import numpy as np
import pytest

from trueup.verify.prediction import predict
from trueup.verify.timing import inference_times


def test_the_interval_is_that_of_world_means_and_of_shares_with_one_fall_more():
    errors = np.repeat(np.linspace(0.1, 0.2, 101), 4).reshape(101, 4) + np.tile([-0.01, 0.01, -0.01, 0.01], (101, 1))
    fell = np.zeros((101, 4), bool)
    fell[:10, 0] = True  # a tenth of the worlds loses one episode of four
    found = predict("velocity_error", "m/s", errors, fell)
    assert (found.error, found.error_low, found.error_high) == pytest.approx((0.15, 0.1025, 0.1975))
    assert (found.success, found.success_low, found.success_high) == pytest.approx((1.0, 0.5, 1.0))
    assert found.worlds == 101


def test_a_second_engine_widens_the_interval_of_the_error_to_both_sides():
    errors = np.full((20, 3), 0.1)
    found = predict(
        "velocity_error", "m/s", errors, np.zeros((20, 3), bool), other_error=0.15, same_error=0.1, engines=("a", "b")
    )
    assert (found.error_low, found.error_high) == pytest.approx((0.1 / 1.5, 0.15))
    again = predict(
        "velocity_error", "m/s", errors, np.zeros((20, 3), bool), other_error=0.1, same_error=0.15, engines=("a", "b")
    )
    assert (again.error_low, again.error_high) == pytest.approx((0.1 / 1.5, 0.15))


def test_what_a_robot_showed_is_covered_or_not():
    found = predict("velocity_error", "m/s", np.full((5, 10), 0.1), np.zeros((5, 10), bool))
    assert found.covers(0.1, 1.0)
    assert found.covers(0.1, 0.9)
    assert not found.covers(0.1, 0.8)
    assert not found.covers(0.11, 1.0)


def test_inference_times_are_those_of_single_rows():
    seen = []

    def act(row):
        seen.append(row.shape)

    times = inference_times(act, 7, steps=50)
    assert times.shape == (50,)
    assert (times > 0).all()
    assert math.isclose(len(seen), 70)
    assert set(seen) == {(1, 7)}


def test_episodes_without_an_error_are_left_out_and_without_any_nothing_is_predicted():
    errors = np.array([[0.1, np.nan], [0.3, 0.5], [np.nan, np.nan]])
    found = predict("velocity_error", "m/s", errors, np.isnan(errors))
    assert found.error == pytest.approx(0.25)
    assert predict("velocity_error", "m/s", np.full((2, 2), np.nan), np.ones((2, 2), bool)) is None
