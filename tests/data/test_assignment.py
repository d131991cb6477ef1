"""The cheapest order against all orders, tried one by one."""

from itertools import permutations

import numpy as np
import pytest

from trueup.data.assignment import cheapest_order


@pytest.mark.parametrize("n", [0, 1, 2, 5])
def test_no_order_is_cheaper(n: int) -> None:
    rng = np.random.default_rng(n)
    for _ in range(20):
        cost = rng.normal(size=(n, n)).round(1)  # rounded: ties occur
        order = cheapest_order(cost)
        assert sorted(order) == list(range(n))
        least = min((sum(cost[i, k] for i, k in enumerate(p)) for p in permutations(range(n))), default=0.0)
        assert cost[np.arange(n), order].sum() == pytest.approx(least)


def test_what_fits_stays_where_it_is() -> None:
    np.testing.assert_array_equal(cheapest_order(1.0 - np.eye(12)), np.arange(12))
