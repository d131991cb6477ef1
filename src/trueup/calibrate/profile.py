"""Does the cost rise as the intervals say? Checked along the directions that the data holds least.

An interval comes from the curvature at the optimum. Along the widest direction v of each limb (and of what limbs
share), two standard errors out on either side, the cost must rise by what the curvature promises, d^T H d / 2. Where it
rises by less the valley is flatter than it looked, and the standard error of that direction grows by the root of the
ratio. One rollout carries one direction of every limb.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trueup.calibrate.descent import Descent
from trueup.calibrate.residuals import Jacobian
from trueup.calibrate.uncertainty import Posterior

FloatArray = NDArray[np.float64]
_OUT = 2.0  # standard errors
_RANKS = 2  # directions of each limb
_AS_PROMISED = 0.7  # of the rise: less, and the interval is too narrow
_MOST = 5.0  # times wider
_BLIND = 0.9  # prior widths: such a direction has its prior already


@dataclass(frozen=True, kw_only=True)
class Direction:
    """A direction checked: numbers of its parameters, unit vector, standard error, factor that it grew by."""

    members: NDArray[np.intp]
    vector: FloatArray
    deviation: float
    factor: float = 1.0


def check_profile(
    descent: Descent, x: FloatArray, residuals: FloatArray, jacobian: Jacobian, found: Posterior
) -> tuple[Posterior, tuple[Direction, ...]]:
    """Return the posterior with standard errors that the cost itself supports, and the directions looked at."""
    hessian, _ = descent.normal(jacobian, residuals, x)
    here = descent.costs(residuals[None], x[None])[0]
    covariance, checked = found.covariance.copy(), []
    for rank in range(_RANKS):
        sets = [_directions(descent, found, rank, shared) for shared in (False, True)]
        for group in (directions for directions in sets if directions):
            factors = _factors(descent, x, here, hessian, group)
            for limb, direction in group.items():
                grown = factors[limb]
                block = np.ix_(direction.members, direction.members)
                more = (grown**2 - 1.0) * direction.deviation**2
                covariance[block] += more * np.outer(direction.vector, direction.vector)
                checked.append(Direction(**{**direction.__dict__, "factor": grown}))
    narrow = np.minimum(1.0, np.maximum(found.deviation, 1.0) / np.sqrt(np.diag(covariance)))
    wide = Posterior(
        covariance=covariance * np.outer(narrow, narrow), correlation_time_s=found.correlation_time_s
    )
    return wide, tuple(checked)


def _directions(descent: Descent, found: Posterior, rank: int, shared: bool) -> dict[int, Direction]:
    """The rank-th widest direction of every limb, or of what they share."""
    out = {}
    for limb in (-1,) if shared else range(descent.nlimb):
        members = np.flatnonzero(descent.owner == limb)
        if len(members) <= rank:
            continue
        values, vectors = np.linalg.eigh(found.covariance[np.ix_(members, members)])
        seen = np.flatnonzero(np.sqrt(np.maximum(values, 0.0)) < _BLIND)[::-1]
        if rank < len(seen):
            k = seen[rank]
            deviation = float(np.sqrt(max(values[k], 0.0)))
            out[limb] = Direction(members=members, vector=vectors[:, k], deviation=deviation)
    return out


def _factors(
    descent: Descent, x: FloatArray, here: FloatArray, hessian: FloatArray, group: dict[int, Direction]
) -> dict[int, float]:
    """How much wider each direction is than the curvature says."""
    moved = np.repeat(x[None], 2, axis=0)
    for direction in group.values():
        step = _OUT * direction.deviation * direction.vector
        moved[0, direction.members] += step
        moved[1, direction.members] -= step
    moved = np.clip(moved, descent.low, descent.high)
    costs = descent.costs(descent.shooting.residuals(moved), moved)
    out = {}
    for limb, direction in group.items():
        steps = moved[:, direction.members] - x[direction.members]
        block = hessian[np.ix_(direction.members, direction.members)]
        promised = 0.5 * np.einsum("si,ij,sj->s", steps, block, steps)
        # what limbs share moves them all: the rise of the whole
        rise = (costs - here).sum(axis=1) if limb < 0 else (costs - here)[:, limb]
        ratio = float(np.min(rise / np.maximum(promised, 1e-12)))
        out[limb] = 1.0 if ratio >= _AS_PROMISED else min(_MOST, 1.0 / np.sqrt(max(ratio, 1e-3)))
    return out
