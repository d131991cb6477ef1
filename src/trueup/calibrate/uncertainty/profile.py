"""Profile likelihood intervals of every parameter, and the cost of the nominal values.

The profile of parameter k is the cost as a function of x_k with the others refitted. Near the optimum the others follow
u_k = B_k / B_kk (B the inverse of the limb's Gauss-Newton matrix), and at a distance d the cost has risen by
d^2 / 2 B_kk. A standard error s_k, which accounts for coloured residuals and model error, therefore stands for a rise
of 1.96^2 T / 2 at the ends of its 95 % interval, T = s_k^2 / B_kk. Both ends are simulated; where the cost rises more
or less than its curvature predicts, each end moves to where it has risen by that much. Friction near zero may fall to
zero at no cost while three times as much is excluded: its interval is as asymmetric as the cost.

Valleys bend: mass and rotor inertia that only show as a sum leave the straight line u_k soon, and the cost rises on
that line although it does not in the valley. So the interval of a parameter that others could replace (variance
inflation B_kk H_kk of 4 and more) is not made narrower than its standard error. The posterior is a normal distribution,
which has straight lines only: its standard errors are those of the straight ends.

The nominal value is treated alike: x_k is set to it, the others are refitted, and the rise of the cost shows how
clearly the data exclude the nominal model. One rollout carries one parameter of every limb.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest

import numpy as np
from numpy.typing import NDArray

from trueup.calibrate.fit.descent import Descent
from trueup.calibrate.fit.fit import Solution
from trueup.core.arrays import FloatArray

Turns = list[list[int]]
SURE = 1.96  # standard errors to either end of a 95 % interval
_ROUNDS = 2
_REFITS = 2  # Gauss-Newton steps of the others at a nominal value
_CLEAR = 30.0  # times the rise that excludes a value: needs no refit
_VALLEY = 4.0  # variance inflation
_AS_PREDICTED = (0.7, 1.5)  # rise over the wanted one within which an end stays where it is
_MOST = 3.0  # times an end may move in a round
_LEAST = 1e-6  # of a rise: below is rounding
_NEAR_BOUND = 1e-3  # of the box
_SEEN = 0.25  # prior variances left
_REACH = 1.5  # prior widths that others may follow


@dataclass(frozen=True, kw_only=True)
class Profile:
    """Profile likelihood intervals, in prior widths.

    ends       (nparameter, 2) 95 % intervals; at_bound: which of their ends are bounds of the box
    deviation  (nparameter,) standard errors that correspond to the intervals
    straight   (nparameter,) standard errors of a normal distribution that stays within both straight ends
    """

    ends: FloatArray
    at_bound: NDArray[np.bool_]
    straight: FloatArray

    @property
    def deviation(self) -> FloatArray:
        return np.asarray((self.ends[:, 1] - self.ends[:, 0]) / (2.0 * SURE))


class Profiler:
    """Profiles around a solution; `deviation` (nparameter,) are the standard errors to check.

    smooth  the cost has no jumps; contacts make some, and a rise over a jump narrows no interval
    """

    def __init__(self, descent: Descent, solution: Solution, deviation: FloatArray, *, smooth: bool = True) -> None:
        self.descent, self.solution, self.x, self._smooth = descent, solution, solution.x, smooth
        self.hessian, _ = descent.normal(solution.jacobian, solution.residuals, solution.x)
        self.here = descent.costs(solution.residuals[None], solution.x[None])[0]
        owner = descent.owner
        # parameters that may follow parameter k: those of its limb; all, if limbs share it
        self._members = [np.flatnonzero((owner == limb) | (limb < 0)) for limb in owner]
        self.ways, self.bread = self._ways()
        self._deviation = np.minimum(deviation, 1.0)
        self.wanted = 0.5 * SURE**2 * self._temperature()
        # parameters that may be moved together: one of every limb; what limbs share goes alone
        limbs = [np.flatnonzero(owner == limb).tolist() for limb in range(descent.nlimb)]
        turns = [[k for k in turn if k is not None] for turn in zip_longest(*limbs)]
        self._turns: Turns = turns + [[k] for k in np.flatnonzero(owner == -1).tolist()]

    def profile(self) -> Profile:
        """Both ends of every parameter's interval."""
        straight = np.stack([self._ends(side) for side in (-1.0, 1.0)], axis=1)
        expected = np.minimum(SURE * self._deviation[:, None], self._room())
        if not self._smooth:
            straight = np.maximum(straight, expected)
        valley = self.bread * np.diag(self.hessian) >= _VALLEY
        away = np.where(valley[:, None], np.maximum(straight, expected), straight)
        return Profile(
            ends=self.x[:, None] + np.array([-1.0, 1.0]) * away,
            at_bound=self._at_bound(away),
            straight=self._narrower(straight),
        )

    def rise_at(self, values: FloatArray) -> FloatArray:
        """Rise of the cost (nparameter,) when each x_k in turn is set to values (nparameter,), the others refitted."""
        steps = np.clip(values, self.descent.low, self.descent.high) - self.x
        moved = self._moved(steps, self._turns)
        rise = self._rises(self.descent.shooting.residuals(moved), moved, self._turns)
        doubtful = (rise > self.wanted) & (rise < _CLEAR * self.wanted)
        if turns := self._only(doubtful):
            moved = self._moved(steps, turns)
            outs = self.descent.shooting.residuals(moved)
            for _ in range(_REFITS):
                moved, outs = self._refined(moved, outs, turns)
            rise = np.where(doubtful, self._rises(outs, moved, turns), rise)
        return np.maximum(rise, 0.0)

    def cost_of(self, k: int) -> float:
        """Cost at the solution of parameter k's limb."""
        return self._felt(self.here, k)

    # --- inside ---
    def _felt(self, costs: FloatArray, k: int) -> float:
        """The part of costs (nlimb + 1,) that parameter k affects."""
        limb = self.descent.owner[k]
        return float(costs.sum() if limb < 0 else costs[limb])

    def _ends(self, side: float) -> FloatArray:
        """Distance (nparameter,) of one end from the estimate, on the straight line."""
        most = np.minimum(self._room()[:, 0 if side < 0 else 1], SURE)
        distance = np.minimum(SURE * self._deviation, most)
        sought = np.ones(len(distance), bool)
        for _ in range(_ROUNDS):
            turns = self._only(sought)
            moved = self._moved(side * distance, turns)
            rise = self._rises(self.descent.shooting.residuals(moved), moved, turns)
            ratio = np.maximum(rise, _LEAST) / np.maximum(self.wanted, _LEAST)
            move = np.clip(1.0 / np.sqrt(ratio), 1.0 / _MOST, _MOST)
            new = np.minimum(distance * move, most)
            sought &= ((ratio < _AS_PREDICTED[0]) | (ratio > _AS_PREDICTED[1])) & (new != distance)
            distance = np.where(sought, new, distance)
            if not sought.any():
                break
        return distance

    def _only(self, wanted: NDArray[np.bool_]) -> Turns:
        """Turns of the given parameters alone."""
        return [some for turn in self._turns if (some := [k for k in turn if wanted[k]])]

    def _at_bound(self, distance: FloatArray) -> NDArray[np.bool_]:
        near = _NEAR_BOUND * (self.descent.high - self.descent.low)
        return np.asarray(self._room() - distance < near[:, None])

    def _narrower(self, distance: FloatArray) -> FloatArray:
        """The narrower side over 1.96; an end on a bound does not count, since nothing lies beyond it."""
        narrow = np.where(self._at_bound(distance), np.inf, distance).min(axis=1)
        return np.where(np.isfinite(narrow), narrow, distance.max(axis=1)) / SURE

    def _room(self) -> FloatArray:
        """(nparameter, 2) distance of the estimate from its bounds."""
        return np.stack([self.x - self.descent.low, self.descent.high - self.x], axis=1)

    def _refined(self, moved: FloatArray, outs: FloatArray, turns: Turns) -> tuple[FloatArray, FloatArray]:
        """One Gauss-Newton step of all but the moved parameters; each limb takes it where it helps.

        The Jacobian is that of the solution.
        """
        descent, tries = self.descent, moved.copy()
        for row, turn in enumerate(turns):
            gradient = descent.gradient(self.solution.jacobian, outs[row], moved[row])
            for k in turn:
                free = self._members[k][self._members[k] != k]
                step = np.linalg.solve(self.hessian[np.ix_(free, free)], gradient[free])
                tries[row, free] -= np.clip(step, -_REACH, _REACH)
        tries = np.clip(tries, descent.low, descent.high)
        new = descent.shooting.residuals(tries)
        better = self._rises(new, tries, turns) < self._rises(outs, moved, turns)
        moved, outs, limbs = moved.copy(), outs.copy(), descent.shooting.channel_limb
        for row, turn in enumerate(turns):
            for k in (k for k in turn if better[k]):
                members, limb = self._members[k], descent.owner[k]
                felt = slice(None) if limb < 0 else limbs == limb
                moved[row, members], outs[row][..., felt] = tries[row, members], new[row][..., felt]
        return moved, outs

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
        count = len(self.x)
        ways, bread, inverses = np.zeros((count, count)), np.ones(count), {}
        for k, (limb, members) in enumerate(zip(self.descent.owner.tolist(), self._members, strict=True)):
            if limb not in inverses:
                inverses[limb] = np.linalg.inv(self.hessian[np.ix_(members, members)])
            column = inverses[limb][:, np.searchsorted(members, k)]
            bread[k] = column[np.searchsorted(members, k)]
            ways[k, members] = column / bread[k]
        return ways, bread

    def _moved(self, steps: FloatArray, turns: Turns) -> FloatArray:
        """(nturn, nparameter): every turn's parameters moved by their steps, the others along the profile."""
        out = np.repeat(self.x[None], len(turns), axis=0)
        for row, turn in enumerate(turns):
            for k in turn:
                way = np.clip(self.ways[k] * steps[k], -_REACH, _REACH)
                way[k] = steps[k]
                out[row] += way
        return np.clip(out, self.descent.low, self.descent.high)

    def _rises(self, outs: FloatArray, moved: FloatArray, turns: Turns) -> FloatArray:
        """(nparameter,) rise of the cost of each parameter's limb; zero for those of no turn."""
        more, rise = self.descent.costs(outs, moved) - self.here, np.zeros(len(self.x))
        for row, turn in enumerate(turns):
            for k in turn:
                rise[k] = self._felt(more[row], k)
        return rise
