"""A fit from its start to its solution, from coarse to fine.

A search gives starts; from each, a descent with coarse physics on some of the windows; each limb takes the best of
the ends. Then all windows with the fine physics, first with the Jacobian of the coarse one, then with their own; each
channel is weighted by its residuals (noise and model error alike). Baselines (`random`, `lbfgsb`, `pace`) do their own
search and end there.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from trueup.calibrate.config import BASELINES, FitCfg
from trueup.calibrate.fit.descent import Descent, Point, Standing
from trueup.calibrate.fit.problem import Problem
from trueup.calibrate.fit.residuals import Jacobian
from trueup.calibrate.fit.search import USUAL, FitState, SearchContext, evolve, run_baseline
from trueup.core.arrays import FloatArray
from trueup.core.checkpoint import Checkpoint, StateFile
from trueup.core.errors import TrueupError

Progress = Callable[[float], None]
OnBest = Callable[[FloatArray], None]
_LOG = logging.getLogger(__name__)
_PHASES = ("search", "descend", "mix", "approach", "fine")
_SHARE = (0.0, 0.1, 0.45, 0.55, 0.65, 1.0)  # usual progress when a phase begins
_ROUGH = 2e-3  # relative gain at which the first descents end: physics and weights change afterwards
_BATCH = 16  # candidates simulated together
_DRAWS = 48  # of a start
_SPREAD = 1.5  # width of the draws in prior widths: nominal values are often worse than assumed
_INSIDE = 0.05  # of the box: a start on a bound stalls
_USUAL_STEPS = 8.0
_LONG_SEARCH = 4000
_EXPLAINED = 3.0  # residuals in standard deviations of noise: the coarse physics leaves one or two


@dataclass(frozen=True, kw_only=True)
class Solution:
    """The end of a fit: x, its cost, residuals and Jacobian."""

    x: FloatArray
    cost: float
    residuals: FloatArray
    jacobian: Jacobian
    iterations: int
    converged: bool
    interrupted: bool = False


class _OutOfTimeError(Exception):
    """The budget is spent."""


class Fitter:
    """A running fit; `state.best` is always the best point so far."""

    def __init__(
        self,
        problem: Problem,
        cfg: FitCfg,
        *,
        progress: Progress | None = None,
        watch: OnBest | None = None,
        state_file: StateFile | None = None,
    ) -> None:
        """`watch` is called with every point that is better than all before it (under the present weights)."""
        self.problem, self.cfg = problem, cfg
        self._progress, self._watch = progress or (lambda fraction: None), watch or (lambda x: None)
        self._state_file = state_file
        self.fine = Descent(problem.fine, cfg.loss)
        self.rough = Descent(problem.rough or problem.fine, cfg.loss)
        self._end: Point | None = None
        self._began = time.monotonic()
        self._phase_steps = 0
        self.state = FitState()

    def run(self, start: FloatArray | None = None, resumed: Checkpoint | None = None) -> Solution:
        """Fit; Ctrl-C ends it with the best point so far."""
        interrupted = converged = False
        first = self._inside(np.zeros(self.problem.fine.nparameter) if start is None else start)
        self.state.x = self.state.best = first.tolist()
        if resumed is not None:
            self.state = _state_of(resumed)
            if self.state.sigma:
                self.problem.fine.sigma = np.array(self.state.sigma)
        try:
            converged = self._run(first)
        except _OutOfTimeError:
            _LOG.warning("the time given is over: the best point so far is kept")
        except KeyboardInterrupt:
            _LOG.warning("stopped: the best point so far is kept")
            interrupted = True
        end = self._end or self._best_so_far()
        jacobian = end.jacobian
        if jacobian is None or not end.is_linear_here:
            jacobian = self.problem.fine.jacobian(end.x, end.residuals)
        self._progress(1.0)
        return Solution(
            x=end.x,
            cost=end.cost,
            residuals=end.residuals,
            jacobian=jacobian,
            iterations=self.state.iterations,
            converged=converged,
            interrupted=interrupted,
        )

    def _best_so_far(self) -> Point:
        end = self.fine.at(np.array(self.state.best))
        if self.state.sigma:
            return end
        self._weigh(end)
        return self.fine.at(end.x)

    def _run(self, first: FloatArray) -> bool:
        state, method = self.state, self.cfg.method
        if method in BASELINES:
            return run_baseline(method, self.problem.whole or self.problem.fine, self._search(USUAL[method]), first)
        if state.phase == 0:
            state.starts = [x.tolist() for x in self._searched(first)]
            self._enter(1, state.starts[0])
        if state.phase == 1:
            self._descend_all()
        if state.phase == 2:
            point = self._descend(self.rough, _ROUGH)
            self._enter(3, point.x)
        if state.phase == 3:
            self._approach()
        self._end = self._descend(self.fine, self.cfg.tolerance, exact=True)
        return self._end.standing

    def _searched(self, first: FloatArray) -> list[FloatArray]:
        """Starts, best first: each limb at the prior or its best draw around it; for "global" followed by CMA-ES."""
        cfg, bounds = self.cfg, (self.rough.low, self.rough.high)
        if cfg.method == "local":
            return [first]
        rng = np.random.default_rng(cfg.seed)
        sets = [first[None]]
        for _ in range(max(1, cfg.starts - 1)):
            draws = first + _SPREAD * rng.standard_normal((_DRAWS, len(first)))
            sets.append(np.clip(draws, *bounds))
        costs = [self._limb_costs(part) for part in sets]
        found = [self.rough.mix(np.vstack(sets), np.vstack(costs))]
        found += [self.rough.mix(part, cost) for part, cost in zip(sets[1:], costs[1:], strict=True)]
        if cfg.method == "global":
            found[0] = evolve(self._search(_LONG_SEARCH), lambda x: self._limb_costs(x).sum(axis=1), found[0])
        return [self._inside(x) for x in found[: cfg.starts]]

    def _descend_all(self) -> None:
        """Descend from the starts until one explains the data; else each limb from its best end."""
        state = self.state
        while len(state.ends) < len(state.starts):
            point = self._descend(self.rough, _ROUGH)
            state.ends.append(point.x.tolist())
            if self.rough.left_over(point).max() < _EXPLAINED:
                state.starts, state.ends = state.starts[:1], [point.x.tolist()]
                break
            if len(state.ends) < len(state.starts):
                state.x = state.starts[len(state.ends)]
        if len(state.ends) == 1:
            self._enter(3, state.ends[0])
        else:
            ends = np.array(state.ends)
            self._enter(2, self.rough.mix(ends, self._limb_costs(ends)))

    def _approach(self) -> None:
        """Descend with the fine physics and the coarse one's Jacobian; weights are re-estimated before and after."""
        fine, bridge = self.problem.fine, self.problem.bridge or self.problem.fine
        x = np.array(self.state.entry or self.state.x)
        if self.state.standing is None:
            self._weigh(self.fine.at(x))
        bridge.sigma = fine.sigma.copy()
        jacobian = bridge.jacobian(x, bridge.residuals(x[None])[0])
        point = self._descend(self.fine, _ROUGH, jacobian=jacobian)
        self._weigh(point)
        self._enter(4, point.x)

    def _descend(self, descent: Descent, tolerance: float, **how: Any) -> Point:
        """Descend from the present point; a resumed fit continues the interrupted descent."""
        self._phase_steps = 0
        x, most, state = np.array(self.state.x), self.cfg.iterations, self.state
        how |= {"watch": self._seen, "keep": self._keep, "resumed": state.standing}
        end = descent.run(x, tolerance=tolerance, iterations=most, **how)
        state.standing = None
        return end

    def _keep(self, standing: Standing) -> None:
        self.state.standing = standing

    def _search(self, usual: int) -> SearchContext:
        return SearchContext(
            bounds=(self.fine.low, self.fine.high),
            evaluations=self.cfg.evaluations or usual,
            seed=self.cfg.seed,
            state=self.state,
            seen=self._seen,
            progress=self._progress,
        )

    # --- between steps ---
    def _seen(self, x: FloatArray, cost: float) -> None:
        """Records the best point, notifies, checkpoints, enforces the budget."""
        state = self.state
        state.x = x.tolist()
        state.iterations += 1
        if cost < state.best_cost:
            state.best, state.best_cost = state.x, cost
            self._watch(x)
        self._phase_steps += 1
        if self.cfg.method not in BASELINES:
            self._tell()
            low, high = _SHARE[state.phase], _SHARE[state.phase + 1]
            self._progress(low + (high - low) * (1.0 - np.exp(-self._phase_steps / _USUAL_STEPS)))
        self._save()
        if self.cfg.budget_s is not None and time.monotonic() - self._began > self.cfg.budget_s:
            raise _OutOfTimeError

    def _tell(self) -> None:
        """Log the step of a long phase, shown beside the progress bar."""
        _LOG.info("%s, %d steps so far", _PHASES[self.state.phase], self.state.iterations)

    def _enter(self, phase: int, x: FloatArray | list[float]) -> None:
        """Begin a phase; costs under other physics or weights are not comparable."""
        state = self.state
        state.phase, state.x = phase, list(map(float, x))
        self._tell()
        state.entry = state.x
        if phase in (3, 4):
            state.best, state.best_cost = state.x, 1e300
        self._watch(np.array(state.x))
        self._save(now=True)

    def _save(self, *, now: bool = False) -> None:
        if self._state_file is not None:
            self._state_file.save(Checkpoint(arrays={}, facts=msgspec.to_builtins(self.state)), now=now)

    def _weigh(self, at: Point) -> None:
        """Weight each channel by the root mean square of its residuals, at least its noise."""
        shooting = self.problem.fine
        left = self.fine.channel_left_over(at) * shooting.sigma
        shooting.sigma = np.maximum(shooting.windows.sigma, left)
        self.state.sigma = shooting.sigma.tolist()

    def _limb_costs(self, candidates: FloatArray) -> FloatArray:
        parts = [candidates[k : k + _BATCH] for k in range(0, len(candidates), _BATCH)]
        costs = [self.rough.costs(self.rough.shooting.residuals(part), part) for part in parts]
        return np.concatenate(costs)

    def _inside(self, x: FloatArray) -> FloatArray:
        low, high = self.fine.low, self.fine.high
        margin = _INSIDE * (high - low)
        return np.clip(x, low + margin, high - margin)


def _state_of(resumed: Checkpoint) -> FitState:
    try:
        return msgspec.convert(resumed.facts, FitState)
    except msgspec.ValidationError as error:
        raise TrueupError(f"this is not the state of a fit: {error}; start anew without --resume") from None
