"""Random effects between parts of the data: none for noise, the planted scatter for a model that is wrong."""

import numpy as np

from trueup.calibrate.uncertainty.refits import random_effect

SEES = np.ones((4, 1), bool)


def test_parts_that_differ_by_their_noise_have_nothing_between_them():
    rng = np.random.default_rng(0)
    shift = 0.1 * rng.standard_normal((4, 500))
    found = random_effect(shift, np.full((4, 500), 0.01), np.ones((4, 500), bool))
    assert (found > 0).mean() < 0.08


def test_the_scatter_that_was_planted_comes_back():
    rng = np.random.default_rng(1)
    shift = 0.1 * rng.standard_normal((4, 2000)) + 0.5 * rng.standard_normal((4, 2000))
    found = random_effect(shift, np.full((4, 2000), 0.01), np.ones((4, 2000), bool))
    np.testing.assert_allclose(np.sqrt((found**2).mean()), 0.5, rtol=0.05)


def test_by_hand():
    # two parts, variances 0.01: Q = (0.5^2 + 0.5^2) / 0.01 = 50, tau^2 = (50 - 1) / (200 - 100)
    found = random_effect(np.array([[-0.5], [0.5]]), np.full((2, 1), 0.01), np.ones((2, 1), bool))
    np.testing.assert_allclose(found, np.sqrt(0.49))


def test_a_part_that_does_not_see_a_parameter_is_not_asked():
    shift = np.array([[0.0], [0.01], [-0.01], [9.0]])
    sees = np.array([[True], [True], [True], [False]])
    assert random_effect(shift, np.full((4, 1), 1e-3), sees) == 0.0
    assert random_effect(shift, np.full((4, 1), 1e-3), np.array([[True], [False], [False], [False]])) == 0.0
