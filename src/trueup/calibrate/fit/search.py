"""The state of a fit, and searches: CMA-ES (with the package `cma`), and published ways to fit as baselines.

A baseline is one objective on whole rollouts, and a search for its minimum. Each evaluates whole batches of candidates
at once, as their authors do on GPUs:

random  the best of many draws by position error (autotune of arXiv 2502.20396)
lbfgsb  L-BFGS-B on 10 x position MSE + velocity MSE with finite differences (a well-known blog's recipe)
pace    CMA-ES on the position error of whole rollouts (PACE, arXiv 2509.06342)
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import msgspec
import numpy as np
from scipy.optimize import minimize

from trueup.calibrate.fit.descent import Standing
from trueup.calibrate.fit.residuals import Shooting
from trueup.core.arrays import FloatArray
from trueup.core.errors import TrueupError

Bounds = tuple[FloatArray, FloatArray]
Costs = Callable[[FloatArray], FloatArray]  # of vectors (nvector, nparameter)
STATE_FILE = "fit.safetensors"
POPULATION = 32
_STEP = 0.5  # first step size of CMA-ES, in prior widths
USUAL = {"random": 2048, "lbfgsb": 5000, "pace": 20_000}  # evaluations of whole logs
_WIDTH = 2.0  # prior widths around the nominal that random draws cover
_DIFFERENCE = 1e-3  # prior widths
_SCALE = 1e4  # squared radians are tiny numbers: this keeps the stopping rules of L-BFGS-B meaningful


class FitState(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """State of a fit, sufficient to resume it.

    phase    number of the present phase, in the order of the method
    x        present point of the phase (a search: its mean)
    best     best point so far under the present weights, and its cost
    starts, ends   of the local descents
    entry    point at which the phase began
    standing where the present descent is; None between descents
    sigma    weights of the channels, once they were re-estimated
    batches  of candidates that a search has used: its random numbers continue from there
    spread   of a search, per parameter
    """

    phase: int = 0
    x: list[float] = []
    entry: list[float] = []
    standing: Standing | None = None
    best: list[float] = []
    best_cost: float = 1e300
    starts: list[list[float]] = []
    ends: list[list[float]] = []
    sigma: list[float] = []
    iterations: int = 0
    batches: int = 0
    spread: list[float] = []


@dataclass(frozen=True, kw_only=True)
class SearchContext:
    """Options of a search.

    evaluations  of candidates, at most
    seen         called with a point and its cost after every batch; may end the search by raising
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
        """Count a batch of `size` candidates and report the best point so far."""
        self.state.batches += 1
        self.seen(x, cost)
        self.progress(min(0.99, self.state.batches * size / self.evaluations))


def cma_es(start: FloatArray, step: float, options: dict[str, object]) -> Any:
    """A CMA-ES engine (Hansen, arXiv 1604.00772): `ask` for candidates, `tell` their costs."""
    if find_spec("cma") is None:
        raise TrueupError("this needs CMA-ES: `pip install 'trueup[calibrate]'`, or fit with method \"auto\"")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # cma warns of a plotting library that is not needed
        return import_module("cma").CMAEvolutionStrategy(start, step, {"verbose": -9, **options})


def evolve(search: SearchContext, costs_of: Costs, start: FloatArray) -> FloatArray:
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
        candidates = engine.ask()
        costs = costs_of(np.array(candidates))
        engine.tell(candidates, list(costs))
        state.spread = np.asarray(engine.result.stds).tolist()
        if costs.min() < best_cost:
            best, best_cost = np.asarray(candidates[int(costs.argmin())], np.float64), float(costs.min())
        search.batch_done(best, best_cost)
        state.x = np.asarray(engine.mean, np.float64).tolist()
    state.spread = []
    return best


# --- baselines ---
def objective(shooting: Shooting, position: float, velocity: float) -> Costs:
    """Weighted sum of the mean squared errors of whole rollouts, rad^2 and (rad/s)^2."""
    n, count = shooting.robot.spec.njoint, np.maximum(shooting.windows.compared.sum(axis=(0, 1)), 1)

    def costs(x: FloatArray) -> FloatArray:
        squares = ((shooting.residuals(x) * shooting.sigma) ** 2).sum(axis=(1, 2)) / count
        speeds = squares[:, n : 2 * n].mean(axis=1) if squares.shape[1] > n else 0.0
        return np.asarray(position * squares[:, :n].mean(axis=1) + velocity * speeds)

    return costs


def run_baseline(method: str, shooting: Shooting, search: SearchContext, first: FloatArray) -> bool:
    """Search from `first` (or where the state is); `search.seen` gets the best so far. True: it ended by itself."""
    if method == "lbfgsb":
        return _lbfgsb(objective(shooting, 10.0, 1.0), search)
    positions = objective(shooting, 1.0, 0.0)
    if method == "pace":
        evolve(search, positions, first)
        return search.goes_on
    return _random(positions, search)


def _random(costs_of: Costs, search: SearchContext) -> bool:
    """Draw evenly around the nominal and keep the best."""
    state, (low, high) = search.state, search.bounds
    low, high = np.maximum(low, -_WIDTH), np.minimum(high, _WIDTH)
    while search.goes_on:
        draws = np.random.default_rng([search.seed, state.batches]).uniform(low, high, (POPULATION, len(low)))
        costs = costs_of(draws)
        pick = int(costs.argmin())
        better = costs[pick] < state.best_cost
        search.batch_done(draws[pick] if better else np.array(state.best), min(float(costs[pick]), state.best_cost))
    return True


def _lbfgsb(costs_of: Costs, search: SearchContext) -> bool:
    start, (low, high) = np.array(search.state.best), search.bounds

    def value_and_gradient(x: FloatArray) -> tuple[float, FloatArray]:
        step = np.where(x + _DIFFERENCE <= high, _DIFFERENCE, -_DIFFERENCE)
        costs = costs_of(np.vstack([x, x + np.diag(step)]))
        search.batch_done(x, float(costs[0]), len(costs))
        return float(costs[0]) * _SCALE, (costs[1:] - costs[0]) / step * _SCALE

    found = minimize(  # type: ignore[no-untyped-call]
        value_and_gradient,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=list(zip(low, high, strict=True)),
        options={"maxfun": max(1, search.evaluations // (len(start) + 1)), "ftol": 1e-12, "gtol": 1e-10},
    )
    return bool(found.success)
