"""Where to look first: draws around the prior, and CMA-ES where the package `cma` is installed."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec

import numpy as np
from numpy.typing import NDArray

from trueup.calibrate.fit.checkpoint import FitState
from trueup.core.errors import TrueupError

FloatArray = NDArray[np.float64]
Bounds = tuple[FloatArray, FloatArray]
DRAWS = 48
POPULATION = 32
_SPREAD = 1.5  # prior widths: nominal values are often worse than their authors think
_STEP = 0.5  # first step size of CMA-ES, in prior widths


@dataclass(frozen=True, kw_only=True)
class Search:
    """What a search needs: candidates' costs in a batch, bounds, and where it keeps its state.

    seen  takes a point and its cost after every batch; may end the search by raising
    """

    costs: Callable[[FloatArray], FloatArray] | None
    bounds: Bounds
    evaluations: int | None
    seed: int
    state: FitState
    seen: Callable[[FloatArray, float], None]
    progress: Callable[[float], None]


def draw_starts(
    rng: np.random.Generator, first: FloatArray, bounds: Bounds, count: int = DRAWS
) -> FloatArray:
    """Return (count, nparameter) points around `first`, inside the bounds."""
    return np.clip(first + _SPREAD * rng.standard_normal((count, len(first))), *bounds)


def evolve(search: Search, start: FloatArray) -> FloatArray:
    """Return the best point of a CMA-ES search from `start`; each population is one batch.

    A search that goes on after an interruption keeps its centre and its spreads, not its correlations.
    """
    if find_spec("cma") is None:
        raise TrueupError(
            "this method needs CMA-ES: `pip install 'trueup[calibrate]'`, or use method \"auto\""
        )
    assert search.costs is not None
    state, most = search.state, search.evaluations or DRAWS
    options: dict[str, object] = {
        "bounds": [list(search.bounds[0]), list(search.bounds[1])],
        "popsize": POPULATION,
        "seed": search.seed + 1 + state.batches,
        "verbose": -9,
    }
    if state.spread:
        start, options["CMA_stds"] = np.array(state.x), [s / _STEP for s in state.spread]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it misses a plotting library that is not used
        engine = import_module("cma").CMAEvolutionStrategy(start, _STEP, options)
    best, best_cost = np.array(state.best), state.best_cost
    while state.batches * POPULATION < most and not engine.stop():
        asked = engine.ask()
        costs = search.costs(np.array(asked))
        engine.tell(asked, list(costs))
        state.batches += 1
        state.spread = np.asarray(engine.result.stds).tolist()
        if costs.min() < best_cost:
            best, best_cost = np.asarray(asked[int(costs.argmin())], np.float64), float(costs.min())
        search.seen(best, best_cost)
        state.x = np.asarray(engine.mean, np.float64).tolist()
        search.progress(min(0.99, state.batches * POPULATION / most))
    state.spread = []
    return best
