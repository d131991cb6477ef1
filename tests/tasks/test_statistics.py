"""Intervals and tests against numbers computed by hand."""

import numpy as np
import pytest

from trueup.tasks.evaluation.statistics import mcnemar, spread, wilson


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    [
        # p = 0.8, z^2 = 3.841459: (0.8 + 0.192073 -+ 1.959964 sqrt(0.016 + 0.0096036)) / 1.3841459
        (8, 10, 0.490162, 0.943318),
        (0, 20, 0.0, 0.161125),  # z^2 / (n + z^2)
        (100, 100, 0.9630065, 1.0),  # n / (n + z^2)
        (50, 100, 0.403832, 0.596168),
    ],
)
def test_wilson_intervals_are_those_computed_by_hand(successes, trials, low, high):
    rate = wilson(successes, trials)
    assert (rate.low, rate.high) == pytest.approx((low, high), abs=1e-6)
    assert rate.share == successes / trials


def test_an_interval_holds_the_rate_and_is_mirrored_by_failures():
    for successes in range(0, 31, 3):
        rate, other = wilson(successes, 30), wilson(30 - successes, 30)
        assert 0.0 <= rate.low <= rate.share <= rate.high <= 1.0
        assert (rate.low, rate.high) == pytest.approx((1.0 - other.high, 1.0 - other.low))


@pytest.mark.parametrize(("successes", "trials"), [(3, 2), (-1, 5), (0, 0)])
def test_impossible_counts_are_refused(successes, trials):
    with pytest.raises(ValueError, match="trials"):
        wilson(successes, trials)


def test_mcnemar_counts_only_trials_in_which_one_of_two_succeeded():
    assert mcnemar(8, 1) == pytest.approx(2 * (1 + 9) / 2**9)
    assert mcnemar(1, 8) == mcnemar(8, 1)
    assert mcnemar(0, 0) == 1.0
    assert mcnemar(4, 4) == 1.0


def test_a_spread_leaves_out_trials_without_the_number():
    found = spread(np.array([1.0, np.nan, 3.0, 5.0]))
    assert (found.mean, found.median) == (3.0, 3.0)
    assert (found.low, found.high) == pytest.approx((1.4, 4.6))
    assert spread(np.array([np.nan])) is None
