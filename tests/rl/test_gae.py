"""Advantages against numbers worked out by hand."""

import numpy as np

from trueup.rl.losses import bootstrap_timeouts, gae

F = np.float32


def test_two_steps_without_end_by_hand():
    # gamma 0.5, lambda 0.5: delta_1 = 2 + 0.5*4 - 1 = 3; delta_0 = 1 + 0.5*1 - 2 = -0.5; A_0 = -0.5 + 0.25*3 = 0.25
    advantage, returns = gae(
        np.array([[1], [2]], F), np.array([[2], [1]], F), np.array([4], F), np.zeros((2, 1), bool), 0.5, 0.5
    )
    np.testing.assert_array_equal(advantage[:, 0], [0.25, 3.0])
    np.testing.assert_array_equal(returns[:, 0], [2.25, 4.0])


def test_an_end_cuts_what_comes_after():
    # the first step ends: delta_0 = 1 - 2 = -1 and nothing flows back
    done = np.array([[True], [False]])
    advantage, _ = gae(np.array([[1], [2]], F), np.array([[2], [1]], F), np.array([4], F), done, 0.5, 0.5)
    np.testing.assert_array_equal(advantage[:, 0], [-1.0, 3.0])


def test_columns_do_not_mix():
    rng = np.random.default_rng(0)
    reward, value = rng.normal(size=(2, 5, 3)).astype(F)
    last, done = rng.normal(size=3).astype(F), rng.random((5, 3)) < 0.3
    both, _ = gae(reward, value, last, done, 0.99, 0.95)
    for k in range(3):
        one, _ = gae(*(a[:, k : k + 1] for a in (reward, value)), last[k : k + 1], done[:, k : k + 1], 0.99, 0.95)
        np.testing.assert_array_equal(both[:, k : k + 1], one)


def test_lambda_one_gives_discounted_returns():
    reward = np.array([[1], [1], [1]], F)
    _, returns = gae(reward, np.full((3, 1), 7, F), np.array([10], F), np.zeros((3, 1), bool), 0.9, 1.0)
    np.testing.assert_allclose(returns[0, 0], 1 + 0.9 + 0.81 + 0.729 * 10, rtol=1e-6)


def test_time_outs_get_the_value_of_the_final_state():
    reward = np.zeros((2, 3), F)
    bootstrap_timeouts(reward, np.array([1, 5]), np.array([2.0, 4.0], F), 0.5)
    np.testing.assert_array_equal(reward, [[0, 1, 0], [0, 0, 2]])


def test_three_steps_of_two_simulations_with_an_end_in_one_by_hand():
    # gamma 0.5, lambda 1, values all zero: advantages are discounted sums of rewards up to the end
    reward = np.array([[1, 1], [2, 2], [4, 4]], F)
    done = np.array([[False, False], [False, True], [False, False]])
    advantage, _ = gae(reward, np.zeros((3, 2), F), np.array([8, 8], F), done, 0.5, 1.0)
    np.testing.assert_array_equal(advantage[:, 0], [1 + 1 + 1 + 1, 2 + 2 + 2, 4 + 4])
    np.testing.assert_array_equal(advantage[:, 1], [1 + 1, 2, 4 + 4])


def test_lambda_zero_gives_one_step_errors_and_gamma_zero_rewards():
    reward, value = np.array([[1], [2]], F), np.array([[3], [5]], F)
    none = np.zeros((2, 1), bool)
    advantage, returns = gae(reward, value, np.array([7], F), none, 0.5, 0.0)
    np.testing.assert_array_equal(advantage[:, 0], [1 + 2.5 - 3, 2 + 3.5 - 5])
    np.testing.assert_array_equal(returns[:, 0], [3.5, 5.5])
    _, short_sighted = gae(reward, value, np.array([7], F), none, 0.0, 0.9)
    np.testing.assert_array_equal(short_sighted, reward)


def test_a_time_out_is_worth_the_same_as_going_on():
    # the same state after the last step, once as a time-out with its value added and once as the next value
    reward, value, next_value = np.array([[1.0]], F), np.array([[2.0]], F), np.array([6.0], F)
    going_on, _ = gae(reward, value, next_value, np.array([[False]]), 0.5, 0.9)
    late = reward.copy()
    bootstrap_timeouts(late, np.array([0]), next_value, 0.5)
    ended, _ = gae(late, value, np.array([99.0], F), np.array([[True]]), 0.5, 0.9)
    np.testing.assert_array_equal(ended, going_on)
