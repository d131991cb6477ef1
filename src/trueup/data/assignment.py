"""Linear assignment: which column belongs to which joint, at the smallest total cost."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def cheapest_order(cost: NDArray[np.float64]) -> NDArray[np.intp]:
    """Column of every row such that the sum of a finite square cost (n, n) is smallest.

    Shortest augmenting paths with potentials (Kuhn 1955; Jonker and Volgenant 1987), O(n^3).
    """
    n = len(cost)
    padded = np.zeros((n + 1, n + 1))
    padded[1:, 1:] = cost
    by_row, by_column = np.zeros(n + 1), np.zeros(n + 1)  # potentials
    row_of = np.zeros(n + 1, np.intp)  # of a column; 0 when it is free
    for row in range(1, n + 1):
        row_of[0] = row
        nearest, before = np.full(n + 1, np.inf), np.zeros(n + 1, np.intp)
        seen = np.zeros(n + 1, bool)
        at = 0
        while row_of[at]:
            seen[at] = True
            left = padded[row_of[at]] - by_row[row_of[at]] - by_column
            shorter = ~seen & (left < nearest)
            nearest[shorter], before[shorter] = left[shorter], at
            then = int(np.argmin(np.where(seen, np.inf, nearest)))
            step = nearest[then]
            by_row[row_of[seen]] += step
            by_column[seen] -= step
            nearest[~seen] -= step
            at = then
        while at:  # turn the path round
            row_of[at] = row_of[before[at]]
            at = int(before[at])
    order = np.empty(n, np.intp)
    order[row_of[1:] - 1] = np.arange(n)
    return order
