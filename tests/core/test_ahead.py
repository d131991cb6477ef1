"""Work done ahead: every row gets what it would have got, and few calls are made."""

import numpy as np

from trueup.core.ahead import Ahead


class Counter:
    """Each row counts how often it was taken; what is computed says row and count."""

    def __init__(self, nrow):
        self.taken, self.calls = np.zeros(nrow, np.int64), []

    def compute(self, ids):
        self.calls.append(ids.tolist())
        pair = np.stack([ids, self.taken[ids]], axis=1).astype(np.float64)
        return {"pair": pair, "square": pair[:, :, None] * pair[:, None, :], "even": ids % 2 == 0}


def test_rows_get_their_own_and_are_computed_together():
    source = Counter(6)
    ahead = Ahead(6, source.compute)
    for ids in ([1], [4, 5], [1, 2], [1]):
        rows = np.array(ids)
        found = ahead.take(rows)
        np.testing.assert_array_equal(found["pair"], np.stack([rows, source.taken[rows]], axis=1))
        np.testing.assert_array_equal(found["square"][:, 1, 0], rows * source.taken[rows])
        np.testing.assert_array_equal(found["even"], rows % 2 == 0)
        source.taken[rows] += 1
    assert source.calls == [[0, 1, 2, 3, 4, 5], [1, 4, 5], [1, 2]]


def test_what_is_forgotten_or_asked_for_alone_is_computed_anew():
    source = Counter(4)
    ahead = Ahead(4, source.compute)
    ahead.take(np.array([0]))
    ahead.forget()
    ahead.take(np.array([3]), many=False)
    assert source.calls == [[0, 1, 2, 3], [3]]
    ahead.take(np.array([2]))
    assert source.calls[-1] == [0, 1, 2, 3]
