"""Numbers that belong to a row: the same alone and among many, and random enough."""

import numpy as np
import pytest

from trueup.core.rows import RowRandom


@pytest.mark.parametrize("draw", ["uniform", "normal"])
def test_row_k_draws_the_same_alone_and_among_many(draw):
    many = RowRandom(7, "noise", 300)
    alone = RowRandom(7, "noise", 1, first_row=123)
    for n in (5, 1, 30):
        np.testing.assert_array_equal(getattr(many, draw)(n)[123], getattr(alone, draw)(n)[0])


def test_only_the_rows_asked_for_advance():
    a, b = RowRandom(1, "x", 4), RowRandom(1, "x", 4)
    a.uniform(3, np.array([1, 2]))
    assert list(a.counter) == [0, 3, 3, 0]
    np.testing.assert_array_equal(a.uniform(2)[[0, 3]], b.uniform(2)[[0, 3]])


def test_counter_resumes_the_sequence():
    a = RowRandom(1, "x", 3)
    a.normal(7)
    b = RowRandom(1, "x", 3)
    b.counter[:] = a.counter
    np.testing.assert_array_equal(a.normal(5), b.normal(5))


def test_seeds_streams_and_rows_are_independent():
    def draw(seed, name):
        return RowRandom(seed, name, 50).normal(2000).astype(float)

    base = draw(0, "a")
    for other in (draw(1, "a"), draw(0, "b")):
        assert abs(np.corrcoef(base.ravel(), other.ravel())[0, 1]) < 0.015
    across_rows = np.corrcoef(base)
    np.fill_diagonal(across_rows, 0)
    assert np.abs(across_rows).max() < 0.12  # 1225 pairs, each with standard error 0.022


def test_moments_and_tails_are_those_of_a_normal():
    x = RowRandom(3, "m", 1000).normal(1000).astype(float).ravel()
    assert abs(x.mean()) < 0.005
    assert x.std() == pytest.approx(1.0, abs=0.005)
    assert (x**4).mean() == pytest.approx(3.0, abs=0.05)
    assert (np.abs(x) > 3).mean() == pytest.approx(0.0027, abs=0.0004)
    assert np.isfinite(x).all()


def test_uniform_fills_the_interval_evenly():
    x = RowRandom(3, "u", 1000).uniform(1000).ravel()
    assert (x >= 0).all()
    assert (x < 1).all()
    counts = np.histogram(x, 50, (0, 1))[0]
    chi2 = ((counts - 20000) ** 2 / 20000).sum()
    assert chi2 < 100  # 49 degrees of freedom, p about 1e-5
