"""Levenberg-Marquardt steps inside a box, limb by limb, with a Jacobian that is reused while it helps.

The cost is sum r^2 / 2 + |x|^2 / 2: residuals in standard deviations of noise, and the prior, which determines
directions that the data do not show. A step solves the small bounded quadratic problem exactly for several dampings,
and one batched rollout evaluates them all. Dynamically independent limbs have their own dampings and take their own
best step, so that a slowly converging limb does not slow the others. A Jacobian costs many rollouts and a step few:
after a step the same Jacobian is used again (the chord method) until it gains little.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace

import msgspec
import numpy as np
from scipy.optimize import lsq_linear

from trueup.calibrate.config import Loss
from trueup.calibrate.fit.residuals import Jacobian, Shooting
from trueup.core.arrays import FloatArray

Watch = Callable[[FloatArray, float], None]
_NONE_YET = 1e300  # gain of the last step, before there was one
_LOG = logging.getLogger(__name__)
_FIRST = 1e-2  # damping to begin with
_NEARBY = 1e-4  # with the Jacobian of a problem much like this one
_LAST = 1e-6  # damping of the last steps: weak directions must converge too
_FACTORS = np.array([1e-2, 1.0, 1e2])  # of the damping, tried together with a new Jacobian
_AGAIN = np.array([1e-1, 1e1])  # with an old one; weak damping needs no choice
_WEAK = 1e-3
_SETTLED = 0.03  # largest possible gain at the end, in noise variances: about a tenth of a standard error
_REACH = 1.5  # prior widths a step may go
_NEAR = 0.15  # prior widths within which a Jacobian is as good as new
_SLOW = 0.5  # of the last step's gain: more of the same means slow progress, and a new Jacobian is due
_FAILURES = 2  # steps without gain, each with stronger damping, before a point counts as a minimum


@dataclass(frozen=True, kw_only=True)
class Point:
    """A point of a descent.

    jacobian   of the newest linearisation, at `linear_at`; None before the first
    standing   the descent has converged
    """

    x: FloatArray
    residuals: FloatArray
    cost: float
    jacobian: Jacobian | None = None
    linear_at: FloatArray | None = None
    standing: bool = False

    @property
    def is_linear_here(self) -> bool:
        """Whether the Jacobian is as good as one taken at x."""
        return self.linear_at is not None and bool(np.abs(self.x - self.linear_at).max() < _NEAR)


class Standing(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """State of a descent between two steps, sufficient for bit-for-bit resume.

    linear_at   where the Jacobian in use was taken; None: it was handed in (`given`), or a new one is due
    last        gain of the step before
    """

    x: list[float]
    cost: float
    damping: list[float]
    linear_at: list[float] | None = None
    given: bool = False
    last: float = _NONE_YET
    failures: int = 0
    step: int = 0


Keep = Callable[[Standing], None]


class Descent:
    """Steps on one problem; `steps` counts them."""

    def __init__(self, shooting: Shooting, loss: Loss = "linear") -> None:
        self.shooting, self.loss = shooting, loss
        self.low, self.high = shooting.bounds
        self.owner = shooting.colouring.owner
        self.nlimb = int(shooting.colouring.limb.max()) + 1
        self.steps = 0

    def at(self, x: FloatArray) -> Point:
        """The point x, without a Jacobian."""
        residuals = self.shooting.residuals(x[None])[0]
        return Point(x=x, residuals=residuals, cost=float(self.costs(residuals[None], x[None]).sum()))

    def left_over(self, at: Point) -> FloatArray:
        """(nlimb,) root mean square of the residuals, in standard deviations of noise, mean over a limb's channels."""
        left, limb = self.channel_left_over(at), self.shooting.channel_limb
        return np.array([left[limb == k].mean() for k in range(self.nlimb)])

    def channel_left_over(self, at: Point) -> FloatArray:
        """(nchannel,) root mean square of the residuals, in the channels' present weights."""
        count = np.maximum(self.shooting.windows.compared.sum(axis=(0, 1)), 1)
        return np.asarray(np.sqrt((at.residuals**2).sum(axis=(0, 1)) / count))

    def run(
        self,
        x: FloatArray,
        *,
        tolerance: float,
        iterations: int,
        jacobian: Jacobian | None = None,
        watch: Watch | None = None,
        keep: Keep | None = None,
        resumed: Standing | None = None,
        exact: bool = False,
    ) -> Point:
        """Step from x until a step gains less than `tolerance` of the cost.

        jacobian  of a problem much like this one, to begin with
        keep      called with the state before every step; `resumed` continues from one
        exact     end only where a Jacobian taken here predicts no gain worth a step
        """
        first = _LAST if exact else _FIRST if jacobian is None else _NEARBY
        at, damping = self.at(x), np.full(self.nlimb + 1, first)
        linear_at: FloatArray | None = None
        last, failures, done = _NONE_YET, 0, 0
        if resumed is not None:
            at, damping = replace(self.at(np.array(resumed.x)), cost=resumed.cost), np.array(resumed.damping)
            last, failures, done = resumed.last, resumed.failures, resumed.step
            if resumed.linear_at is not None:
                linear_at = np.array(resumed.linear_at)
                jacobian = self.shooting.jacobian(linear_at, self.shooting.residuals(linear_at[None])[0])
            elif not resumed.given:
                jacobian = None
        for step in range(done, iterations):
            if keep is not None:
                taken_at = None if jacobian is None or linear_at is None else linear_at.tolist()
                given = jacobian is not None and linear_at is None
                keep(
                    Standing(
                        x=at.x.tolist(), cost=at.cost, damping=damping.tolist(), linear_at=taken_at, given=given,
                        last=last, failures=failures, step=step,
                    )
                )  # fmt: skip
            if watch is not None:
                watch(at.x, at.cost)
            fresh = jacobian is None
            if jacobian is None:
                jacobian, linear_at = self.shooting.jacobian(at.x, at.residuals), at.x
            self.steps += 1
            choices = _FACTORS if fresh or failures else _AGAIN if damping.max() > _WEAK else np.ones(1)
            new, damping = self._try(at, jacobian, damping, choices)
            gain = at.cost - new.cost
            _LOG.debug("cost %.6g, gain %.3g, new %s, dampings %s", at.cost, gain, fresh, damping)
            at = replace(new if gain > 0 else at, jacobian=jacobian, linear_at=linear_at)
            here = at.is_linear_here
            if gain <= 0 and here and failures < _FAILURES:
                failures += 1
                damping = np.minimum(damping * 10.0, 1e6)
                continue
            failures = 0
            if exact:
                little = gain < _SETTLED or (here and self._decrement(at, jacobian) < _SETTLED)
            else:
                little = gain <= tolerance * max(at.cost, 1.0)
            if little and (fresh or here or (gain > 0 and not exact)):
                return replace(at, standing=True)
            if not fresh and (little or gain > _SLOW * last):
                jacobian = None
            last = gain
        return at

    def _decrement(self, at: Point, jacobian: Jacobian) -> float:
        """Gain of the best step if the residuals were linear, bounds left aside (half the Newton decrement squared)."""
        hessian, gradient = self.normal(jacobian, at.residuals, at.x)
        free = ((at.x > self.low + 1e-9) | (gradient < 0)) & ((at.x < self.high - 1e-9) | (gradient > 0))
        part = gradient[free]
        return float(0.5 * part @ np.linalg.solve(hessian[np.ix_(free, free)], part))

    def _try(self, at: Point, jacobian: Jacobian, damping: FloatArray, factors: FloatArray) -> tuple[Point, FloatArray]:
        """The best of steps with several dampings and of their mix by limb; and the best damping of each limb."""
        hessian, gradient = self.normal(jacobian, at.residuals, at.x)
        tries = np.array([self.step(hessian, gradient, at.x, damping * factor) for factor in factors])
        outs = self.shooting.residuals(tries)
        costs = self.costs(outs, tries)
        mixed = self.mix(tries, costs)
        if not (tries == mixed).all(axis=1).any():
            out = self.shooting.residuals(mixed[None])
            tries, outs = np.concatenate([tries, mixed[None]]), np.concatenate([outs, out])
        totals = self.costs(outs, tries).sum(axis=1)
        pick = int(np.argmin(totals))
        chosen = np.append(costs[:, :-1].argmin(axis=0), costs.sum(axis=1).argmin())
        suited = np.clip(damping * factors[chosen], 1e-8, 1e6)
        return Point(x=tries[pick], residuals=outs[pick], cost=float(totals[pick])), suited

    def normal(self, jacobian: Jacobian, at: FloatArray, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Gauss-Newton matrix and gradient of the cost, prior included."""
        root = np.broadcast_to(np.sqrt(self._loss_weight(at)), at.shape)
        hessian, gradient = np.eye(len(x)), x.copy()
        for w in range(len(at)):  # window by window: sums in double precision without a second copy of all
            flat = (jacobian[:, w] * root[w]).reshape(len(x), -1).astype(np.float64)
            hessian += flat @ flat.T
            gradient += flat @ (root[w] * at[w]).reshape(-1)
        return hessian, gradient

    def gradient(self, jacobian: Jacobian, at: FloatArray, x: FloatArray) -> FloatArray:
        """Gradient of the cost alone, prior included, of residuals `at` (nwindow, L, nchannel)."""
        weighed = (self._loss_weight(at) * at).astype(np.float32)
        parts = [jacobian[:, w].reshape(len(x), -1) @ weighed[w].reshape(-1) for w in range(len(at))]
        return np.asarray(x + np.sum(parts, axis=0, dtype=np.float64))

    def step(self, hessian: FloatArray, gradient: FloatArray, x: FloatArray, damping: FloatArray) -> FloatArray:
        """The minimum of the damped quadratic within the box and within reach."""
        damped = hessian + np.diag(damping[self.owner] * np.diag(hessian))  # owner -1: the last damping
        upper = np.linalg.cholesky(damped).T
        wanted = -np.linalg.solve(upper.T, gradient)
        low, high = np.maximum(self.low - x, -_REACH), np.minimum(self.high - x, _REACH)
        step = np.linalg.solve(upper, wanted)
        if ((step < low) | (step > high)).any():
            step = lsq_linear(upper, wanted, bounds=(low - 1e-12, high + 1e-12), method="bvls").x  # type: ignore[operator]
        return np.clip(x + step, self.low, self.high)

    def mix(self, candidates: FloatArray, costs: FloatArray) -> FloatArray:
        """Each limb's parameters from its best candidate; shared parameters from the best candidate in total."""
        mixed = candidates[costs.sum(axis=1).argmin()].copy()
        for limb, pick in enumerate(costs[:, :-1].argmin(axis=0)):
            in_limb = self.owner == limb
            mixed[in_limb] = candidates[pick, in_limb]
        return mixed

    def costs(self, residuals: FloatArray, x: FloatArray) -> FloatArray:
        """(nvector, nlimb + 1) costs: of each limb's joints and parameters, and of the shared parameters' prior."""
        if self.loss == "linear":
            data = 0.5 * np.einsum("vwtc,vwtc->vc", residuals, residuals)
        else:
            size = np.abs(residuals)
            data = np.where(size <= 3, 0.5 * size**2, 3 * size - 4.5).sum(axis=(1, 2))
        out = np.zeros((self.nlimb + 1, len(x)))
        np.add.at(out, self.shooting.channel_limb, data.T)
        np.add.at(out, self.owner, 0.5 * x.T**2)
        return out.T

    def _loss_weight(self, at: FloatArray) -> FloatArray:
        if self.loss == "linear":
            return np.ones(())
        return np.minimum(1.0, 3.0 / np.maximum(np.abs(at), 1e-12))
