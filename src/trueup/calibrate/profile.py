"""Intervals that the cost itself supports: the profile of every parameter, and what nominal values would cost.

The profile of parameter k is the cost as a function of x_k with the others refitted. Near the optimum the others follow
u_k = B_k / B_kk (B the inverse of the limb's Gauss-Newton matrix), and at a distance d the cost has risen by
d^2 / 2 B_kk. A standard error s_k, which knows of coloured residuals and model error, therefore stands for a rise of
1.96^2 T / 2 at the ends of its 95 % interval, T = s_k^2 / B_kk. Both ends are simulated; where the cost rises otherwise
than its curvature promised, each end moves to where it has risen by that much. A friction near zero may fall to zero
for nothing while three times as much is excluded: its interval is as lopsided as the cost.

The same way leads to the nominal value: x_k is set there, the others follow and take a Gauss-Newton step more, and the
rise of the cost says how surely the data exclude the model as it was delivered. One rollout carries one parameter of
every limb.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trueup.calibrate.descent import Descent
from trueup.calibrate.fit import Solution

FloatArray = NDArray[np.float64]
SURE = 1.96  # standard errors to either end of a 95 % interval
_ROUNDS = 2
_AS_PROMISED = (0.7, 1.5)  # rise over what is wanted within which an end stays where it is
_MOST = 3.0  # times an end may move in a round
_LEAST = 1e-6  # of a rise: below is rounding
_NEAR_BOUND = 1e-3  # of the box
_SEEN = 0.25  # prior variances left
_REACH = 1.5  # prior widths that others may follow
_PARTS = np.array([1.0, 0.4])  # of a refitting step, tried together


@dataclass(frozen=True, kw_only=True)
class Profile:
    """95 % intervals in x, (nparameter, 2), and which of their ends are bounds of the box, (nparameter, 2)."""

    ends: FloatArray
    at_bound: NDArray[np.bool_]

    def deviation(self, x: FloatArray) -> FloatArray:
        """(nparameter,) the standard error of a normal distribution that stays within both ends.

        An end on a bound does not count: nothing lies beyond it.
        """
        width = np.where(self.at_bound, np.inf, np.abs(self.ends - x[:, None])).min(axis=1)
        both = np.abs(self.ends - x[:, None]).max(axis=1)
        return np.where(np.isfinite(width), width, both) / SURE


class Profiler:
    """Profiles around a solution; `deviation` (nparameter,) are the standard errors to be checked."""

    def __init__(self, descent: Descent, solution: Solution, deviation: FloatArray) -> None:
        self.descent, self.solution, self.x = descent, solution, solution.x
        self.hessian, _ = descent.normal(solution.jacobian, solution.residuals, solution.x)
        self.here = descent.costs(solution.residuals[None], solution.x[None])[0]
        self.ways, self.bread = self._ways()
        self._deviation = np.minimum(deviation, 1.0)
        self.wanted = 0.5 * SURE**2 * self._temperature()
        self._turns = self._share_rollouts()

    def profile(self) -> Profile:
        """Both ends of every parameter's interval."""
        sides = [self._ends(side) for side in (-1.0, 1.0)]
        ends = self.x[:, None] + np.stack([-sides[0], sides[1]], axis=1)
        low, high = self.descent.low, self.descent.high
        near = _NEAR_BOUND * (high - low)
        at_bound = np.stack([ends[:, 0] - low < near, high - ends[:, 1] < near], axis=1)
        return Profile(ends=ends, at_bound=at_bound)

    def rise_at(self, values: FloatArray) -> FloatArray:
        """Rise of the cost (nparameter,) when each x_k in turn is set to values (nparameter,), the others refitted."""
        steps = np.clip(values, self.descent.low, self.descent.high) - self.x
        moved = self._moved(steps)
        outs = self.descent.shooting.residuals(moved)
        best = self._rises(outs, moved)
        refitted = self._refitted(moved, outs)
        for part in _PARTS:
            tries = np.clip(moved + part * (refitted - moved), self.descent.low, self.descent.high)
            best = np.minimum(best, self._rises(self.descent.shooting.residuals(tries), tries))
        return np.maximum(best, 0.0)

    # --- inside ---
    def _ends(self, side: float) -> FloatArray:
        """Distance of one end from the estimate."""
        room = np.where(side > 0, self.descent.high - self.x, self.x - self.descent.low)
        most = np.minimum(room, SURE)
        distance = np.minimum(SURE * self._deviation, most)
        for _ in range(_ROUNDS):
            moved = self._moved(side * distance)
            rise = self._rises(self.descent.shooting.residuals(moved), moved)
            ratio = np.maximum(rise, _LEAST) / np.maximum(self.wanted, _LEAST)
            kept = (ratio > _AS_PROMISED[0]) & (ratio < _AS_PROMISED[1])
            move = np.clip(1.0 / np.sqrt(ratio), 1.0 / _MOST, _MOST)
            distance = np.where(kept, distance, np.minimum(distance * move, most))
        return distance

    def _temperature(self) -> FloatArray:
        """(nparameter,) variance over that of white residuals of a right model, B_kk.

        Where B_kk is nearly the prior's the ratio says nothing: the others of the limb stand in.
        """
        own, owner = np.maximum(self._deviation**2 / self.bread, 1.0), self.descent.owner
        seen = self.bread < _SEEN
        out = own.copy()
        for k in np.flatnonzero(~seen):
            limb = seen & ((owner == owner[k]) | (owner[k] < 0))
            out[k] = max(own[k], float(np.median(own[limb])) if limb.any() else 1.0)
        return out

    def _ways(self) -> tuple[FloatArray, FloatArray]:
        """(nparameter, nparameter) direction in which each profile leads, and B_kk (nparameter,)."""
        owner, count = self.descent.owner, len(self.x)
        ways, bread = np.eye(count), np.ones(count)
        for limb in range(-1, self.descent.nlimb):
            mine = np.flatnonzero(owner == limb) if limb >= 0 else np.arange(count)
            if not len(mine):
                continue
            inverse = np.linalg.inv(self.hessian[np.ix_(mine, mine)])
            for at, k in enumerate(mine):
                if owner[k] == limb:
                    ways[k] = 0.0
                    ways[k, mine] = inverse[:, at] / inverse[at, at]
                    bread[k] = inverse[at, at]
        return ways, bread

    def _share_rollouts(self) -> list[list[int]]:
        """Parameters that may be moved together: one of every limb; what limbs share goes alone."""
        owner = self.descent.owner
        limbs = [np.flatnonzero(owner == limb).tolist() for limb in range(self.descent.nlimb)]
        longest = max(map(len, limbs), default=0)
        turns = [[limb[rank] for limb in limbs if rank < len(limb)] for rank in range(longest)]
        return turns + [[k] for k in np.flatnonzero(owner == -1).tolist()]

    def _moved(self, steps: FloatArray) -> FloatArray:
        """(nturn, nparameter): every turn's parameters moved by their steps, the others following."""
        out = np.repeat(self.x[None], len(self._turns), axis=0)
        for row, turn in enumerate(self._turns):
            for k in turn:
                way = np.clip(self.ways[k] * steps[k], -_REACH, _REACH)
                way[k] = steps[k]
                out[row] += way
        return np.clip(out, self.descent.low, self.descent.high)

    def _rises(self, outs: FloatArray, moved: FloatArray) -> FloatArray:
        """(nparameter,) rise of the cost of what each parameter's limb feels."""
        more = self.descent.costs(outs, moved) - self.here
        rise = np.zeros(len(self.x))
        for row, turn in enumerate(self._turns):
            for k in turn:
                limb = self.descent.owner[k]
                rise[k] = more[row].sum() if limb < 0 else more[row, limb]
        return rise

    def _refitted(self, moved: FloatArray, outs: FloatArray) -> FloatArray:
        """A Gauss-Newton step of all but the parameters that were moved, with the Jacobian of the solution."""
        new = moved.copy()
        for row, turn in enumerate(self._turns):
            gradient = self.descent.gradient(self.solution.jacobian, outs[row], moved[row])
            for k in turn:
                limb = self.descent.owner[k]
                mine = np.arange(len(self.x)) if limb < 0 else np.flatnonzero(self.descent.owner == limb)
                free = mine[mine != k]
                if len(free):
                    step = np.linalg.solve(self.hessian[np.ix_(free, free)], gradient[free])
                    new[row, free] -= np.clip(step, -_REACH, _REACH)
        return new
