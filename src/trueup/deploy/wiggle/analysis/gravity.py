"""Gravity against kinematics: do the torques along slow sweeps fit the robot's masses, and what would fit better?

Torque of a joint j that moves slowly, at reported positions q:

    tau = s g_j(q) + f sign(v) + noise                       s: 1 if motors and masses are as the model says

For a mistake h that would turn g into g_h, the weight alpha_h of the difference is fitted beside s and f:

    tau = s g_j(q) + alpha_h (g_h - g)_j(q) + f sign(v)

alpha is 0 where the robot is as described and 1 where h is true. Motion up and down at one speed makes friction cancel.
s is drawn towards 1 with the weight of a prior of 1 +- 0.25 against torques that the model predicts to a tenth. A
mistake whose difference is small against gravity and noise is not testable by torques.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trueup.core.arrays import FloatArray
from trueup.deploy.wiggle.analysis.limb_model import LimbModel
from trueup.deploy.wiggle.analysis.mistakes import Mistake, no_mistake
from trueup.deploy.wiggle.motion.trace import SweepRows
from trueup.robot.spec import RobotSpec

_PRIOR = 0.4  # weight of s = 1: model error of a tenth over a prior of a quarter
_WEAKEST = 0.06  # difference, as a share of the gravity torque of the joints concerned
_SURE = 0.15  # standard error of alpha
_LEAST_NM = 0.01
_BLOCK = 8


@dataclass(frozen=True, kw_only=True)
class JointFit:
    """Fit of one joint without mistakes: scale of gravity, Coulomb friction (N m), residual and gravity, RMS (N m)."""

    scale: float
    friction: float
    residual: float
    gravity: float


@dataclass(frozen=True, kw_only=True)
class Weight:
    """How much of a mistake's torques is in the data: alpha and its standard error.

    share     size of the difference, of the gravity torque of the joints concerned (RMS)
    testable  whether torques could show it; `gain`: by how much it lowers the sum of squares, in units of the noise
    """

    alpha: float
    error: float
    share: float
    testable: bool
    gain: float


class GravityTest:
    """Torques along sweeps against the static model."""

    def __init__(self, spec: RobotSpec, limbs: LimbModel, rows: SweepRows, gravity: FloatArray) -> None:
        self._rows = _averaged(rows)
        self._limbs, self._down, self._n = limbs, gravity, spec.njoint
        self._predicted = self._torque(no_mistake(spec))
        self.fits = {j: self._fit(j) for j in range(spec.njoint) if (self._rows.joint == j).sum() > 5}

    def weigh(self, mistake: Mistake) -> Weight:
        """Fit the weight of a mistake over all joints whose torques it would change."""
        difference = self._torque(mistake) - self._predicted
        above = below = heavy = size = 0.0
        for j, fit in self.fits.items():
            mine = self._rows.joint == j
            change, plain = difference[mine], self._predicted[mine]
            if np.sqrt(np.mean(change**2)) < _LEAST_NM:
                continue
            columns, weight = self._columns(mine)
            new, left = _without(columns, change, 0.0), _without(columns, self._rows.torque[mine], weight)
            variance = max(fit.residual, _LEAST_NM) ** 2
            above += float(new @ left) / variance
            below += float(new @ new) / variance
            size += float(new @ new)
            heavy += float(np.maximum(plain**2, (plain + change) ** 2).sum())
        if below == 0.0:
            return Weight(alpha=0.0, error=np.inf, share=0.0, testable=False, gain=0.0)
        alpha, error = above / below, float(np.sqrt(1.0 / below))
        share = float(np.sqrt(size / heavy))
        return Weight(
            alpha=alpha, error=error, share=share, testable=error < _SURE and share > _WEAKEST, gain=above * alpha
        )

    def _torque(self, mistake: Mistake) -> FloatArray:
        """Gravity torque (T,) of the joint that each row swept, if the mistake were made."""
        all_joints = mistake.torque(self._limbs, self._rows.joint_pos, self._down)
        return all_joints[np.arange(len(self._rows.joint)), self._rows.joint]

    def _columns(self, mine: NDArray[np.bool_]) -> tuple[FloatArray, float]:
        """Regressors of gravity and friction, with a last row that draws the scale to 1; and that row's value."""
        predicted, sign = self._predicted[mine], np.sign(self._rows.velocity[mine])
        weight = _PRIOR * float(np.linalg.norm(predicted)) + 1e-9
        return np.vstack([np.stack([predicted, sign], axis=1), [weight, 0.0]]), weight

    def _fit(self, j: int) -> JointFit:
        mine = self._rows.joint == j
        columns, weight = self._columns(mine)
        found, *_ = np.linalg.lstsq(columns, np.append(self._rows.torque[mine], weight), rcond=None)
        left = self._rows.torque[mine] - columns[:-1] @ found
        return JointFit(
            scale=float(found[0]),
            friction=float(found[1]),
            residual=float(np.sqrt(np.mean(left**2))),
            gravity=float(np.sqrt(np.mean(self._predicted[mine] ** 2))),
        )


def _without(columns: FloatArray, values: FloatArray, last: float) -> FloatArray:
    """What of `values` the columns do not explain; `last` belongs to their last row."""
    full = np.append(values, last)
    explained, *_ = np.linalg.lstsq(columns, full, rcond=None)
    left: FloatArray = full - columns @ explained
    return left


def _averaged(rows: SweepRows) -> SweepRows:
    """Means of up to `_BLOCK` successive instants of one joint in one direction: the same information in fewer rows."""
    order = np.argsort(rows.joint, kind="stable")
    joint, side = rows.joint[order], np.sign(rows.velocity[order])
    begins = np.append(True, (np.diff(joint) != 0) | (np.diff(side) != 0))
    since = np.arange(len(joint)) - np.maximum.accumulate(np.where(begins, np.arange(len(joint)), 0))
    starts = np.flatnonzero(since % _BLOCK == 0)
    count = np.diff(np.append(starts, len(joint)))

    def mean(values: FloatArray) -> FloatArray:
        total: FloatArray = np.add.reduceat(values[order], starts, axis=0)
        return total / count.reshape(-1, *[1] * (values.ndim - 1))

    return SweepRows(mean(rows.joint_pos), joint[starts], mean(rows.velocity), mean(rows.torque))
