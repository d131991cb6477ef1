"""Prediction of what a robot will show, from what simulated worlds show.

A world is one draw of everything that is not known: parameters from the calibration's posterior, or from the task's
ranges where there is none. Its mean error over episodes e_k is what one robot would show. The interval is that of one
more draw: quantiles of e_k. Engines differ in what no draw varies (contact, integration), so with a second engine the
interval of log error is widened by the difference between the two engines' medians, to both sides.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from trueup.core.arrays import FloatArray
from trueup.policy.bundle.certificate import Prediction

_TAILS = (2.5, 97.5)


def predict(
    metric: str,
    unit: str,
    errors: FloatArray,
    fell: NDArray[np.bool_],
    *,
    other_error: float | None = None,
    same_error: float | None = None,
    engines: tuple[str, ...] = ("mujoco",),
) -> Prediction | None:
    """Predict from errors (NaN: fell before it could be measured) and falls (world, episode); None without any error.

    other_error, same_error   of the same policy in the same nominal scenario in the second and in the first engine
    """
    known = errors[np.isfinite(errors).any(axis=1)]
    if not len(known):
        return None
    by_world = np.nanmean(known, axis=1)
    low, median, high = np.percentile(by_world, [_TAILS[0], 50.0, _TAILS[1]])
    if other_error and same_error:
        widening = abs(math.log(other_error / same_error))
        low, high = low * math.exp(-widening), high * math.exp(widening)
    stood = 1.0 - fell.mean(axis=1)
    # a share of n episodes cannot tell 1 from 1 - 1/n: one fall more or less belongs to the interval
    grain = 1.0 / fell.shape[1]
    worst, usual, best = np.percentile(stood, [_TAILS[0], 50.0, _TAILS[1]])
    return Prediction(
        metric=metric,
        unit=unit,
        error=float(median),
        error_low=float(low),
        error_high=float(high),
        success=float(usual),
        success_low=float(max(0.0, worst - grain)),
        success_high=float(min(1.0, best + grain)),
        worlds=len(errors),
        engines=engines,
    )
