"""Where to look first: draws around the prior, and CMA-ES where the package `cma` is installed."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec

import numpy as np
from numpy.typing import NDArray

from trueup.core.errors import TrueupError

FloatArray = NDArray[np.float64]
Bounds = tuple[FloatArray, FloatArray]
DRAWS = 48
LONG_SEARCH = 4000
_SPREAD = 1.5  # prior widths: nominal values are often worse than their authors think


def draw_starts(rng: np.random.Generator, first: FloatArray, bounds: Bounds, count: int) -> FloatArray:
    """Return (count, nparameter) points around `first`, inside the bounds."""
    return np.clip(first + _SPREAD * rng.standard_normal((count, len(first))), *bounds)


def evolve(
    costs: Callable[[FloatArray], FloatArray], start: FloatArray, bounds: Bounds, seed: int, evaluations: int
) -> FloatArray:
    """Return the best point of a CMA-ES search from `start`; each population is one batch."""
    if find_spec("cma") is None:
        raise TrueupError('the global method needs CMA-ES: `pip install cma`, or use method "auto"')
    options = {
        "bounds": [list(bounds[0]), list(bounds[1])],
        "popsize": 32,
        "maxfevals": evaluations,
        "seed": seed + 1,
        "verbose": -9,
    }
    search = import_module("cma").CMAEvolutionStrategy(start, 0.5, options)
    while not search.stop():
        asked = search.ask()
        search.tell(asked, list(costs(np.array(asked))))
    return np.asarray(search.result.xbest, np.float64)
