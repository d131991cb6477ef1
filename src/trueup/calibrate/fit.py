"""Bounded least squares on batched rollouts, from several starts.

The cost is sum r^2 / 2 + |x|^2 / 2: residuals in noises, and the prior, which keeps what the data cannot see. A step
is Levenberg's, inside the box: the small quadratic problem is solved exactly, for several dampings at once, and one
batched rollout tries them all. Limbs that do not feel each other have each their own damping and take each their own
best try, so that a difficult limb does not slow the others; likewise each limb takes the best of the starts. The way
there may use coarser physics. Then each channel is weighed by what it really left over (noise and model error alike)
and the fit goes on with the fine physics.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import lsq_linear

from trueup.calibrate.residuals import Jacobian, Shooting
from trueup.calibrate.search import DRAWS, LONG_SEARCH, draw_starts, evolve
from trueup.core.errors import TrueupError

FloatArray = NDArray[np.float64]
Method = Literal["auto", "local", "global"]
Loss = Literal["linear", "huber"]
Progress = Callable[[float], None]
_LOG = logging.getLogger(__name__)
_FACTORS = np.array([1e-2, 1e-1, 1.0, 10.0, 100.0])  # of the damping, tried together
_REACH = 1.5  # prior widths a step may go
_ROUGH = 2e-3  # relative gain at which the first descents end: weights change afterwards
_BATCH = 16  # candidates simulated together
_INSIDE = 0.05  # of the box: a start on a bound stalls


@dataclass(frozen=True, kw_only=True)
class FitCfg:
    """How to search.

    method     "local": from the prior; "auto": a short global search gives the starts; "global": a long one
    starts     local fits, the first from the prior
    iterations at most, per start and weighting
    reweigh    times that channels are weighed anew by what they left over, the last time with the fine physics
    loss       "huber": samples beyond three noises count linearly
    """

    method: Method = "auto"
    starts: int = 2
    iterations: int = 25
    reweigh: int = 2
    tolerance: float = 1e-4
    loss: Loss = "linear"
    seed: int = 0

    def __post_init__(self) -> None:
        if min(self.starts, self.iterations, self.reweigh) < 1:
            raise TrueupError("starts, iterations and reweigh must be at least 1")


@dataclass(frozen=True, kw_only=True)
class Solution:
    """Where a fit ended: x, its cost, and what the uncertainty needs."""

    x: FloatArray
    cost: float
    residuals: FloatArray
    jacobian: Jacobian
    iterations: int
    converged: bool
    interrupted: bool = False


class Fitter:
    """A fit under way; `best` is always the best point so far."""

    def __init__(
        self,
        shooting: Shooting,
        cfg: FitCfg,
        progress: Progress | None = None,
        *,
        rough: Shooting | None = None,
    ) -> None:
        """`rough`: the same problem with coarser physics, for the way to the neighbourhood of the solution."""
        self.shooting, self.cfg = rough or shooting, cfg
        self._fine = shooting
        self._progress = progress or (lambda fraction: None)
        self._done, self._total = 0, 1
        self.low, self.high = shooting.bounds
        self.best: FloatArray = self._inside(np.zeros(shooting.nparameter))
        self.iterations = 0
        self._best_cost = np.inf
        self._owner = shooting.colouring.owner
        self._nlimb = int(shooting.colouring.limb.max()) + 1

    def run(self, start: FloatArray | None = None) -> Solution:
        """Fit; Ctrl-C ends it with the best point so far."""
        interrupted = converged = False
        try:
            converged = self._run(start)
        except KeyboardInterrupt:
            _LOG.warning("stopped: the best point so far is kept")
            interrupted = True
        self.shooting = self._fine
        residuals = self.shooting.residuals(self.best[None])[0]
        self._progress(1.0)
        return Solution(
            x=self.best,
            cost=float(self._costs(residuals[None], self.best[None]).sum()),
            residuals=residuals,
            jacobian=self.shooting.jacobian(self.best, residuals),
            iterations=self.iterations,
            converged=converged,
            interrupted=interrupted,
        )

    def _run(self, start: FloatArray | None) -> bool:
        cfg = self.cfg
        first = self._inside(start) if start is not None else self.best
        self.best = first
        starts = [first, *(self._global_starts(first) if cfg.method != "local" else [])]
        self._total = cfg.iterations * (len(starts) + 1 + cfg.reweigh)
        ends, converged = [], False
        for x in starts:
            end, cost, converged = self._descend(x, _ROUGH)
            ends.append((cost, end))
            self.best = min(ends, key=lambda pair: pair[0])[1]
            self._done += cfg.iterations
        if len(ends) > 1:
            self.best = self._mixed(np.array([end for _, end in ends]))
            self.best, _, converged = self._descend(self.best, _ROUGH)
        for k in range(cfg.reweigh):
            self._done += cfg.iterations
            last = k == cfg.reweigh - 1
            if last:
                self.shooting = self._fine
            self._weigh()
            self.best, _, converged = self._descend(self.best, cfg.tolerance if last else _ROUGH)
        return converged

    def _global_starts(self, first: FloatArray) -> list[FloatArray]:
        """Draws around the prior, each limb from its best draw; CMA-ES from there if asked and available."""
        cfg, evaluations = self.cfg, DRAWS if self.cfg.method == "auto" else LONG_SEARCH
        rng = np.random.default_rng(cfg.seed)
        found = []
        for _ in range(cfg.starts - 1):
            draws = draw_starts(rng, first, (self.low, self.high), DRAWS)
            found.append(self._mixed(draws))
        if evaluations > DRAWS and found:
            found[0] = evolve(self._total_costs, found[0], (self.low, self.high), cfg.seed, evaluations)
        return [self._inside(x) for x in found]

    def _total_costs(self, x: FloatArray) -> FloatArray:
        return self._costs(self.shooting.residuals(x), x).sum(axis=1)

    def _mixed(self, candidates: FloatArray) -> FloatArray:
        """Each limb from the candidate that suits it best; what limbs share from the best as a whole."""
        parts = [
            self._costs(self.shooting.residuals(candidates[k : k + _BATCH]), candidates[k : k + _BATCH])
            for k in range(0, len(candidates), _BATCH)
        ]
        return self._mix(candidates, np.concatenate(parts))

    def _mix(self, candidates: FloatArray, costs: FloatArray) -> FloatArray:
        mixed = candidates[costs.sum(axis=1).argmin()].copy()
        for limb, pick in enumerate(costs[:, :-1].argmin(axis=0)):
            mine = self._owner == limb
            mixed[mine] = candidates[pick, mine]
        return mixed

    def _weigh(self) -> None:
        """Weigh each channel by the root mean square of what it left over, never finer than its noise."""
        windows, shooting = self.shooting.windows, self.shooting
        self._best_cost = np.inf  # costs under other weights do not compare
        left = shooting.residuals(self.best[None])[0] * shooting.sigma
        count = np.maximum(windows.judged.sum(axis=(0, 1)), 1)
        shooting.sigma = np.maximum(windows.sigma, np.sqrt((left**2).sum(axis=(0, 1)) / count))

    def _descend(self, x: FloatArray, tolerance: float) -> tuple[FloatArray, float, bool]:
        """Levenberg steps from x until the cost stands still; returns the point, its cost, whether it stood."""
        damping = np.full(self._nlimb + 1, 1e-2)  # of each limb, and of what they share
        at = self.shooting.residuals(x[None])[0]
        cost = float(self._costs(at[None], x[None]).sum())
        for k in range(self.cfg.iterations):
            self.iterations += 1
            self._progress(min(0.99, (self._done + k) / self._total))
            hessian, gradient = self._normal(self.shooting.jacobian(x, at), at, x)
            tries = np.array([self._step(hessian, gradient, x, damping * factor) for factor in _FACTORS])
            outs = self.shooting.residuals(tries)
            costs = self._costs(outs, tries)
            mixed = self._mix(tries, costs)[None]
            tries, outs = (
                np.concatenate([tries, mixed]),
                np.concatenate([outs, self.shooting.residuals(mixed)]),
            )
            totals = self._costs(outs, tries).sum(axis=1)
            pick = int(np.argmin(totals))
            gain = cost - float(totals[pick])
            _LOG.debug("cost %.6g, gain %.3g, dampings %s", cost, gain, damping)
            if gain > 0 and totals[pick] < self._best_cost:
                self.best, self._best_cost = tries[pick], float(totals[pick])
            if gain > 0:
                x, at, cost = tries[pick], outs[pick], float(totals[pick])
            chosen = np.append(costs[:, :-1].argmin(axis=0), costs.sum(axis=1).argmin())
            damping = np.clip(damping * _FACTORS[chosen], 1e-8, 1e6)
            if gain <= tolerance * max(cost, 1.0):
                return x, cost, True
        return x, cost, False

    def _normal(self, jacobian: Jacobian, at: FloatArray, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Gauss-Newton matrix and gradient of the cost, prior included."""
        root = np.broadcast_to(np.sqrt(self._loss_weight(at)), at.shape)
        hessian, gradient = np.eye(len(x)), x.copy()
        for w in range(len(at)):  # window by window: sums in double precision without a second copy of all
            flat = (jacobian[:, w] * root[w]).reshape(len(x), -1).astype(np.float64)
            hessian += flat @ flat.T
            gradient += flat @ (root[w] * at[w]).reshape(-1)
        return hessian, gradient

    def _step(
        self, hessian: FloatArray, gradient: FloatArray, x: FloatArray, damping: FloatArray
    ) -> FloatArray:
        """The minimum of the damped quadratic within the box and within reach."""
        damped = hessian + np.diag(damping[self._owner] * np.diag(hessian))  # owner -1: the last damping
        upper = np.linalg.cholesky(damped).T
        wanted = -np.linalg.solve(upper.T, gradient)
        low, high = np.maximum(self.low - x, -_REACH), np.minimum(self.high - x, _REACH)
        step = np.linalg.solve(upper, wanted)
        if ((step < low) | (step > high)).any():
            step = lsq_linear(upper, wanted, bounds=(low - 1e-12, high + 1e-12), method="bvls").x  # type: ignore[operator]
        return np.clip(x + step, self.low, self.high)

    def _loss_weight(self, at: FloatArray) -> FloatArray:
        if self.cfg.loss == "linear":
            return np.ones(())
        return np.minimum(1.0, 3.0 / np.maximum(np.abs(at), 1e-12))

    def _costs(self, residuals: FloatArray, x: FloatArray) -> FloatArray:
        """(nvector, nlimb + 1) costs: of each limb's joints and parameters, and of the shared parameters' prior."""
        if self.cfg.loss == "linear":
            data = 0.5 * np.einsum("vwtc,vwtc->vc", residuals, residuals)
        else:
            size = np.abs(residuals)
            data = np.where(size <= 3, 0.5 * size**2, 3 * size - 4.5).sum(axis=(1, 2))
        limb = self.shooting.colouring.limb
        out = np.zeros((len(x), self._nlimb + 1))
        for column, owner in enumerate(np.tile(limb, data.shape[1] // len(limb))):
            out[:, owner] += data[:, column]
        for k, owner in enumerate(self._owner):
            out[:, owner] += 0.5 * x[:, k] ** 2
        return out

    def _inside(self, x: FloatArray) -> FloatArray:
        margin = _INSIDE * (self.high - self.low)
        return np.clip(x, self.low + margin, self.high - margin)
