"""Swing peaks, counted by hand."""

import numpy as np

from trueup.tasks.evaluation.measure import SwingPeaks


def run(*heights_cm):
    """One foot, one row."""
    swings = SwingPeaks(1, 1)
    for height in heights_cm:
        swings.push(np.array([[height / 100]], np.float32))
    return swings


def test_a_swing_of_three_steps_counts_with_its_highest_point():
    np.testing.assert_allclose(run(0, 1, 4, 2, 0).peaks, [0.04])


def test_short_low_and_unfinished_swings_do_not_count():
    assert run(0, 9, 9, 0).median() is None  # two steps
    assert run(0, 0.5, 0.4, 0.5, 0.4, 0).median() is None  # never above 5 mm
    assert run(0, 3, 3, 3, 3).median() is None  # not down again


def test_a_dip_to_the_ground_parts_two_swings_and_forgets_the_first_peak():
    np.testing.assert_allclose(run(8, 8, 8, 0.5, 1, 2, 1, 0).peaks, [0.08, 0.02])


def test_feet_and_rows_are_counted_apart_and_the_median_is_over_all():
    swings = SwingPeaks(2, 2)
    tops = np.array([[1, 2], [3, 10]], np.float32) / 100
    for part in (0, 1, 1, 1, 0):
        swings.push(tops * part)
    np.testing.assert_allclose(np.sort(swings.peaks), [0.01, 0.02, 0.03, 0.10])
    np.testing.assert_allclose(swings.median(), 0.025)


def test_an_episode_that_ends_drops_the_swings_that_had_begun():
    swings = SwingPeaks(2, 1)
    up, down = np.full((2, 1), 0.03, np.float32), np.zeros((2, 1), np.float32)
    for _ in range(3):
        swings.push(up)
    swings.restart(np.array([1]))
    swings.push(down)
    np.testing.assert_allclose(swings.peaks, [0.03])
