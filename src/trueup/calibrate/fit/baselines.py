"""Published ways to fit a simulator, as baselines: one objective on whole rollouts, and a search for its minimum.

random  the best of many draws by position error (autotune of arXiv 2502.20396)
lbfgsb  L-BFGS-B on 10 x position MSE + velocity MSE with finite differences (a well-known blog's recipe)
pace    CMA-ES on the position error of whole rollouts (PACE, arXiv 2509.06342)

Each evaluates whole batches of candidates at once, as their authors do on GPUs.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from trueup.calibrate.fit.residuals import Shooting
from trueup.calibrate.fit.search import POPULATION, Costs, Search, evolve

FloatArray = NDArray[np.float64]
USUAL = {"random": 2048, "lbfgsb": 5000, "pace": 20_000}  # evaluations of whole logs
_WIDTH = 2.0  # prior widths around the nominal that random draws cover
_DIFFERENCE = 1e-3  # prior widths
_SCALE = 1e4  # squared radians are tiny numbers: this keeps the stopping rules of L-BFGS-B meaningful


def objective(shooting: Shooting, position: float, velocity: float) -> Costs:
    """Weighted sum of the mean squared errors of whole rollouts, rad^2 and (rad/s)^2."""
    n, count = shooting.robot.spec.njoint, np.maximum(shooting.windows.judged.sum(axis=(0, 1)), 1)

    def costs(x: FloatArray) -> FloatArray:
        squares = ((shooting.residuals(x) * shooting.sigma) ** 2).sum(axis=(1, 2)) / count
        speeds = squares[:, n : 2 * n].mean(axis=1) if squares.shape[1] > n else 0.0
        return np.asarray(position * squares[:, :n].mean(axis=1) + velocity * speeds)

    return costs


def run_baseline(method: str, shooting: Shooting, search: Search, first: FloatArray) -> bool:
    """Search from `first` (or where the state is); `search.seen` gets the best so far. True: it ended by itself."""
    if method == "lbfgsb":
        return _lbfgsb(objective(shooting, 10.0, 1.0), search)
    positions = objective(shooting, 1.0, 0.0)
    if method == "pace":
        evolve(search, positions, first)
        return search.goes_on
    return _random(positions, search)


def _random(costs_of: Costs, search: Search) -> bool:
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


def _lbfgsb(costs_of: Costs, search: Search) -> bool:
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
