"""Valleys of the cost: combinations of parameters that the data hardly identify, differenced as combinations.

Where gain, inertia and friction can all grow together without an effect, the columns of the Jacobian cancel almost
completely in that combination. The rest of the sum is mostly the error of the columns (a stiction event that moves by
one step is in every column and cancels in none), and it looks like information: in small motions of a light foot it
made a valley look ten times narrower than it is. So the weak directions of the information matrix, limb by limb, are
differenced again along themselves, over about their own standard error, and the Jacobian is corrected:

    J <- J + (d - J v) v^T,      d = (r(x + h v) - r(x - h v)) / 2 h.

A descent with the plain columns stops on a valley's slope; with the corrected Jacobian it goes on to the floor.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trueup.calibrate.config import Loss
from trueup.calibrate.fit.descent import Descent
from trueup.calibrate.fit.fit import Solution
from trueup.calibrate.fit.residuals import Jacobian, Shooting, window_products
from trueup.core.arrays import FloatArray

_CANCELS = 0.1  # of the columns' own information: directions with less are differenced again
_MATTERS = 0.01  # prior widths: smaller standard errors need no correction
_WIDE = 0.1  # prior widths: standard error of a weak direction of an earlier fit
_ROUNDS = 4
_WIDER = 1.05  # as wide in sum as before, or nearly: a further round would find the same
_HALF = 0.5  # of a direction's standard error: how far it is differenced to each side
_STEP = (0.01, 0.5)  # prior widths, at least and at most
_STEPS = 6  # along a valley, at most
_GAIN = 0.05  # of the log posterior: less is not worth a step
_FRACTIONS = np.array([1.0, 0.5, 0.2])  # of a step, tried together


class Direction(NamedTuple):
    """A direction (nparameter,) of one limb, and how far to go along it."""

    limb: int
    along: FloatArray
    step: float


def settled(shooting: Shooting, solution: Solution, loss: Loss = "linear") -> Solution:
    """Return the solution at the floor of its valleys, with the corrected Jacobian; itself if it has none."""
    if not valleys(shooting, solution.x, solution.jacobian):
        return solution
    descent = Descent(shooting, loss)
    at = replace(solution, jacobian=measured(shooting, solution.x, solution.jacobian))
    for _ in range(_STEPS):
        new = _stepped(descent, at)
        if new.cost > at.cost - _GAIN:
            break
        fresh = shooting.jacobian(new.x, new.residuals)
        at = replace(new, jacobian=measured(shooting, new.x, fresh), iterations=at.iterations + 1)
    return at


def _stepped(descent: Descent, at: Solution) -> Solution:
    """The best of a Gauss-Newton step and parts of it."""
    hessian, gradient = descent.normal(at.jacobian, at.residuals, at.x)
    whole = descent.step(hessian, gradient, at.x, np.zeros(descent.nlimb + 1)) - at.x
    tries = np.clip(at.x + _FRACTIONS[:, None] * whole, descent.low, descent.high)
    outs = descent.shooting.residuals(tries)
    costs = descent.costs(outs, tries).sum(axis=1)
    best = int(np.argmin(costs))
    return replace(at, x=tries[best], residuals=outs[best], cost=float(costs[best]))


def measured(shooting: Shooting, x: FloatArray, jacobian: Jacobian) -> Jacobian:
    """Return the Jacobian at x with its valleys differenced along themselves; itself if it has none."""
    found = valleys(shooting, x, jacobian)
    for _ in range(_ROUNDS):
        wide = sum(direction.step for direction in found)
        jacobian = along(shooting, x, jacobian, found)
        found = valleys(shooting, x, jacobian) if found else []
        if sum(direction.step for direction in found) <= _WIDER * wide:
            break
    return jacobian


def valleys(shooting: Shooting, x: FloatArray, jacobian: Jacobian) -> list[Direction]:
    """Directions in which the columns cancel and the standard error is more than a little."""
    out = []
    for limb, free in _free_of_limbs(shooting, x):
        if len(free) < 2:
            continue
        hessian = window_products(jacobian[free]).sum(axis=0)
        size, axes = np.linalg.eigh(hessian)
        own = (axes**2).T @ np.diag(hessian)
        deviation = 1.0 / np.sqrt(np.maximum(size, 0.0) + 1.0)
        weak = np.flatnonzero((size < _CANCELS * own) & (deviation > _MATTERS))
        out += _directions(shooting, x, limb, free, axes[:, weak], deviation[weak])
    return out


def widest_axes(shooting: Shooting, x: FloatArray, covariance: FloatArray) -> list[Direction]:
    """Directions of a covariance's largest variance, limb by limb."""
    out = []
    for limb, free in _free_of_limbs(shooting, x):
        size, axes = np.linalg.eigh(covariance[np.ix_(free, free)])
        wide = np.flatnonzero(size > _WIDE**2)
        out += _directions(shooting, x, limb, free, axes[:, wide], np.sqrt(size[wide]))
    return out


def along(shooting: Shooting, x: FloatArray, jacobian: Jacobian, found: list[Direction]) -> Jacobian:
    """Return the Jacobian with these directions (orthonormal within a limb) differenced along themselves.

    Directions of different limbs share rollouts: the k-th of every limb go together.
    """
    turns: list[list[Direction]] = []
    for direction in found:
        turn = next((t for t in turns if all(other.limb != direction.limb for other in t)), None)
        if turn is None:
            turns.append(turn := [])
        turn.append(direction)
    if not turns:
        return jacobian
    moves = np.array([sum((d.step * d.along for d in turn), np.zeros(len(x))) for turn in turns])
    out = shooting.residuals(np.concatenate([x + moves, x - moves]))
    change = out[: len(turns)] - out[len(turns) :]
    jacobian = jacobian.copy()
    for turn, difference in zip(turns, change, strict=True):
        for limb, axis, step in turn:
            in_limb = shooting.channel_limb == limb
            felt = np.flatnonzero(axis)
            slope = difference[..., in_limb] / (2.0 * step)
            had = np.tensordot(axis[felt], jacobian[felt][..., in_limb], 1)
            for k in felt:
                jacobian[k][..., in_limb] += (axis[k] * (slope - had)).astype(np.float32)
    return jacobian


def _free_of_limbs(shooting: Shooting, x: FloatArray) -> list[tuple[int, NDArray[np.intp]]]:
    """Numbers of each limb's parameters that are on no bound: the others cannot take part in a valley."""
    low, high = shooting.bounds
    free, owner = np.minimum(high - x, x - low) > 2.0 * _STEP[0], shooting.colouring.owner
    limbs = range(int(shooting.colouring.limb.max()) + 1)
    return [(limb, np.flatnonzero((owner == limb) & free)) for limb in limbs]


def _directions(
    shooting: Shooting, x: FloatArray, limb: int, free: NDArray[np.intp], axes: FloatArray, deviation: FloatArray
) -> list[Direction]:
    """Axes (len(mine), n) as directions with steps of about half their standard errors, if bounds leave room."""
    out, (low, high) = [], shooting.bounds
    for axis, spread in zip(axes.T, deviation, strict=True):
        along = np.zeros(len(x))
        along[free] = axis
        room = (np.minimum(high - x, x - low)[free] / np.maximum(np.abs(axis), 1e-12)).min()
        if room > _STEP[0]:  # smaller where a bound is near; none where one is too near
            out.append(Direction(limb, along, min(float(np.clip(_HALF * spread, *_STEP)), float(room))))
    return out
