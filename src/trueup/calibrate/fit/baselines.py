"""Published ways to fit a simulator, as baselines: one objective on whole rollouts, and a search for its minimum.

random  the best of many draws by position error (autotune of arXiv 2502.20396)
lbfgsb  L-BFGS-B on 10 x position MSE + velocity MSE with finite differences (a well-known blog's recipe)
pace    CMA-ES on the position error of whole rollouts (PACE, arXiv 2509.06342)

Each evaluates whole batches of candidates at once, as their authors do on GPUs.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from trueup.calibrate.fit.residuals import Shooting
from trueup.calibrate.fit.search import POPULATION, Bounds, Search, evolve

FloatArray = NDArray[np.float64]
_USUAL = {"random": 2048, "lbfgsb": 5000, "pace": 20_000}  # evaluations of whole logs
_WIDTH = 2.0  # prior widths around the nominal that random draws cover
_DIFFERENCE = 1e-3  # prior widths


class Objective:
    """Mean squared errors of whole rollouts, rad^2 and (rad/s)^2."""

    def __init__(self, shooting: Shooting, position: float, velocity: float) -> None:
        self._shooting, self._weights = shooting, (position, velocity)

    def __call__(self, x: FloatArray) -> FloatArray:
        """Costs of vectors (nvector, nparameter)."""
        shooting, n = self._shooting, self._shooting.robot.spec.njoint
        count = np.maximum(shooting.windows.judged.sum(axis=(0, 1)), 1)
        squares = ((shooting.residuals(x) * shooting.sigma) ** 2).sum(axis=(1, 2)) / count
        return np.asarray(
            self._weights[0] * squares[:, :n].mean(axis=1)
            + self._weights[1] * (squares[:, n : 2 * n].mean(axis=1) if squares.shape[1] > n else 0.0)
        )


def run_baseline(method: str, shooting: Shooting, search: Search, first: FloatArray, seed: int) -> bool:
    """Search from `first` (or where the state is); `search.seen` gets the best so far. True: it ended by itself."""
    search = replace(search, evaluations=search.evaluations or _USUAL[method])
    if method == "lbfgsb":
        return _lbfgsb(Objective(shooting, 10.0, 1.0), search, np.array(search.state.best))
    search = replace(search, costs=Objective(shooting, 1.0, 0.0))
    if method == "pace":
        evolve(search, first)
        return search.state.batches * POPULATION < (search.evaluations or 0)
    return _random(search, seed)


def _random(search: Search, seed: int) -> bool:
    """Draw evenly around the nominal and keep the best."""
    assert search.costs is not None
    assert search.evaluations is not None
    state, (low, high) = search.state, search.bounds
    low, high = np.maximum(low, -_WIDTH), np.minimum(high, _WIDTH)
    while state.batches * POPULATION < search.evaluations:
        draws = np.random.default_rng([seed, state.batches]).uniform(low, high, (POPULATION, len(low)))
        costs = search.costs(draws)
        state.batches += 1
        pick = int(costs.argmin())
        better = costs[pick] < state.best_cost
        search.seen(draws[pick] if better else np.array(state.best), min(float(costs[pick]), state.best_cost))
        search.progress(min(0.99, state.batches * POPULATION / search.evaluations))
    return True


def _lbfgsb(objective: Objective, search: Search, start: FloatArray) -> bool:
    bounds: Bounds = search.bounds
    state = search.state

    def value_and_gradient(x: FloatArray) -> tuple[float, FloatArray]:
        step = np.where(x + _DIFFERENCE <= bounds[1], _DIFFERENCE, -_DIFFERENCE)
        costs = objective(np.vstack([x, x + np.diag(step)]))
        state.batches += 1
        search.seen(x, float(costs[0]))
        search.progress(min(0.99, state.batches * len(costs) / (search.evaluations or 1)))
        # squared radians are tiny numbers: the scale keeps its stopping rules meaningful
        return float(costs[0]) * _SCALE, (costs[1:] - costs[0]) / step * _SCALE

    most = max(1, (search.evaluations or 1) // (len(start) + 1))
    found = minimize(  # type: ignore[no-untyped-call]
        value_and_gradient,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=list(zip(*bounds, strict=True)),
        options={"maxfun": most, "ftol": 1e-12, "gtol": 1e-10},
    )
    return bool(found.success)


_SCALE = 1e4
