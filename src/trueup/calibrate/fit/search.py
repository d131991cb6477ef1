"""The state of a fit, and the search by CMA-ES, for which the package `cma` must be installed."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from trueup.core.errors import TrueupError

FloatArray = NDArray[np.float64]
Bounds = tuple[FloatArray, FloatArray]
Costs = Callable[[FloatArray], FloatArray]  # of vectors (nvector, nparameter)
STATE_FILE = "fit.safetensors"
POPULATION = 32
_STEP = 0.5  # first step size of CMA-ES, in prior widths


class FitState(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Where a fit is: what a resumed one needs.

    phase    number of the present phase, in the order of the method
    x        present point of the phase (a search: its mean)
    best     best point so far under the present weights, and its cost
    starts, ends   of the local descents
    sigma    weights of the channels, once they were re-estimated
    batches  of candidates that a search has used: its random numbers continue from there
    spread   of a search, per parameter
    """

    phase: int = 0
    x: list[float] = []
    best: list[float] = []
    best_cost: float = 1e300
    starts: list[list[float]] = []
    ends: list[list[float]] = []
    sigma: list[float] = []
    iterations: int = 0
    batches: int = 0
    spread: list[float] = []


@dataclass(frozen=True, kw_only=True)
class Search:
    """What a search needs beside its costs.

    evaluations  of candidates, at most
    seen         takes a point and its cost after every batch; may end the search by raising
    """

    bounds: Bounds
    evaluations: int
    seed: int
    state: FitState
    seen: Callable[[FloatArray, float], None]
    progress: Callable[[float], None]

    @property
    def goes_on(self) -> bool:
        """Whether evaluations are left for another population."""
        return self.state.batches * POPULATION < self.evaluations

    def batch_done(self, x: FloatArray, cost: float, size: int = POPULATION) -> None:
        """Count a batch of `size` candidates and hand on the best point so far."""
        self.state.batches += 1
        self.seen(x, cost)
        self.progress(min(0.99, self.state.batches * size / self.evaluations))


def cma_es(start: FloatArray, step: float, options: dict[str, object]) -> Any:
    """A CMA-ES engine (Hansen, arXiv 1604.00772): `ask` for candidates, `tell` their costs."""
    if find_spec("cma") is None:
        raise TrueupError("this needs CMA-ES: `pip install 'trueup[calibrate]'`, or fit with method \"auto\"")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it misses a plotting library that is not used
        return import_module("cma").CMAEvolutionStrategy(start, step, {"verbose": -9, **options})


def evolve(search: Search, costs_of: Costs, start: FloatArray) -> FloatArray:
    """Return the best point of a CMA-ES search from `start`; each population is one batch.

    A resumed search keeps its mean and its spreads, not its correlations.
    """
    state = search.state
    options: dict[str, object] = {
        "bounds": [list(search.bounds[0]), list(search.bounds[1])],
        "popsize": POPULATION,
        "seed": search.seed + 1 + state.batches,
    }
    if state.spread:
        start, options["CMA_stds"] = np.array(state.x), [s / _STEP for s in state.spread]
    engine = cma_es(start, _STEP, options)
    best, best_cost = np.array(state.best), state.best_cost
    while search.goes_on and not engine.stop():
        asked = engine.ask()
        costs = costs_of(np.array(asked))
        engine.tell(asked, list(costs))
        state.spread = np.asarray(engine.result.stds).tolist()
        if costs.min() < best_cost:
            best, best_cost = np.asarray(asked[int(costs.argmin())], np.float64), float(costs.min())
        search.batch_done(best, best_cost)
        state.x = np.asarray(engine.mean, np.float64).tolist()
    state.spread = []
    return best
