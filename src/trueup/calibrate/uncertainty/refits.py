"""Random-effects variance between parts of the data: the scatter that a wrong model leaves in its parameters.

The parameters of a wrong model depend on the data: on slow or fast motion, low or high frequencies, positions or
velocities, one stretch of the log or the next. Each part g is refitted by one Gauss-Newton step from the estimate,
with the existing Jacobian:

    x_g - x = -(H_g + I)^-1 (J_g^T r_g + x / G),      C_g = (H_g + I)^-1 M_g (H_g + I)^-1

(G parts in a split, the prior divided among them, M_g as in `uncertainty`). If refits differ by no more than their own
standard errors the data agree with one model. If they differ by more, the excess is the variance tau^2 between parts,
by the method of moments for random effects (DerSimonian and Laird 1986); it does not shrink with more of the same data,
and is added to the parameter's variance, split by split: effects of speed and of frequency are taken as independent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import uniform_filter1d  # type: ignore[attr-defined]
from scipy.special import chdtri

from trueup.calibrate.data.cutting import BASE_CHANNELS
from trueup.calibrate.fit.residuals import Jacobian, Shooting
from trueup.calibrate.uncertainty.covariance import Part, information
from trueup.core.arrays import FloatArray

_STRETCHES = 4
_FEWEST_WINDOWS = 8  # for stretches of two windows and more
_SMOOTH_S = 0.25  # low frequencies: what a moving mean of this length leaves
_SURE = 0.95
_SEES = 0.5  # of a parameter's prior variance that a part must remove to count
_REACH = 1.5  # prior widths: largest change of a one-step refit


def between_parts(
    shooting: Shooting,
    x: FloatArray,
    residuals: FloatArray,
    jacobian: Jacobian,
    progress: Callable[[float], None] | None = None,
) -> FloatArray:
    """Return tau (nparameter,), the standard deviation between refits of parts, in prior widths."""
    variance, ways = np.zeros(len(x)), list(splits(shooting))
    total, done = sum(len(split) for split in ways), 0
    for split in ways:
        found = []
        for part in split:
            found.append(_refit(shooting, part, x / len(split), residuals, jacobian))
            done += 1
            if progress is not None:
                progress(done / total)
        shift, own, sees = (np.array(column) for column in zip(*found, strict=True))
        variance += random_effect(shift, own, sees) ** 2
    return np.sqrt(variance)


def random_effect(shift: FloatArray, variance: FloatArray, sees: NDArray[np.bool_]) -> FloatArray:
    """Return the standard deviation between parts beyond what their variances explain, 0 where that is not sure.

    shift, variance, sees  (npart, nparameter): estimates, their variances, and whether a part is informative
    """
    weight = np.where(sees, 1.0 / np.maximum(variance, 1e-12), 0.0)
    total = np.maximum(weight.sum(axis=0), 1e-12)
    mean = (weight * shift).sum(axis=0) / total
    scatter = (weight * (shift - mean) ** 2).sum(axis=0)
    freedom = sees.sum(axis=0) - 1
    excess = scatter - freedom
    scale = total - (weight**2).sum(axis=0) / total
    sure = (freedom >= 1) & (scatter > chdtri(np.maximum(freedom, 1), 1.0 - _SURE))
    return np.where(sure, np.sqrt(np.maximum(excess, 0.0) / np.maximum(scale, 1e-12)), 0.0)


def splits(shooting: Shooting) -> Iterator[list[Part]]:
    """Ways to divide the data: stretches of time, kinds of channels, frequencies, speeds."""
    windows, njoint = shooting.windows, shooting.robot.spec.njoint
    every = np.arange(windows.measured.shape[-1])
    if windows.count >= _FEWEST_WINDOWS:
        groups = np.array_split(np.arange(windows.count), _STRETCHES)
        yield [Part(channels=every, windows=group) for group in groups]
    if len(every) >= 2 * njoint and windows.base_quat is None:
        yield [Part(channels=half) for half in (every[:njoint], every[njoint : 2 * njoint])]
    if windows.base_quat is not None:
        yield [Part(channels=every[:-BASE_CHANNELS]), Part(channels=every[-BASE_CHANNELS:])]
        yield [Part(channels=every, windows=np.arange(k, windows.count, 2)) for k in range(2)]
    size = max(2, round(_SMOOTH_S * windows.rate_hz))
    if 2 * size < windows.target.shape[1]:
        low = partial(uniform_filter1d, size=size, axis=-1, mode="constant")
        yield [Part(channels=every, over_time=kind) for kind in (low, lambda array: array - low(array))]
    if windows.base_quat is None:
        speed = np.abs(np.gradient(windows.measured[..., :njoint], axis=1))  # of the channel's joint
        fast = np.tile(speed > np.median(speed, axis=(0, 1)), len(every) // njoint)
        yield [Part(channels=every, samples=samples) for samples in (fast, ~fast)]


def _refit(
    shooting: Shooting, part: Part, prior: FloatArray, residuals: FloatArray, jacobian: Jacobian
) -> tuple[FloatArray, FloatArray, NDArray[np.bool_]]:
    """Change of x, its variance, and whether the part sees each parameter."""
    windows = shooting.windows
    found = information(jacobian, residuals, windows.compared, windows.rate_hz, part=part)
    bread = np.linalg.inv(found.hessian + np.eye(len(prior)))
    shift = np.clip(-bread @ (found.gradient + prior), -_REACH, _REACH)
    variance = np.einsum("ij,jk,ki->i", bread, found.meat, bread)
    return shift, variance, np.asarray(np.diag(bread) < 1.0 - _SEES)
