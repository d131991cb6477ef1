"""Posterior covariance of a fit: sandwich covariance for coloured residuals, prior, and model error.

With H = J^T J and prior precision I (x is in prior widths) the posterior is the sandwich

    C = (H + I)^-1 (M + I) (H + I)^-1,      M = sum over channels of J_c^T R_c J_c,

R_c the autocovariance of channel c's residuals (Bartlett taper, applied by FFT). White residuals of unit size give
M = H and the usual (H + I)^-1; coloured residuals give more; a direction without information has H = M = 0 and keeps
the prior, C = I. A second M, from the scatter of whole windows, includes correlations between channels; the larger
standard error of the two is used.

That is the covariance for a right model. The parameters of a wrong model are biased. Parts of the data that disagree
show some of the bias (`refits`); a bias that is equal everywhere is not visible. But the model error changes the
output by delta, the root mean square of the residuals beyond noise, and parameters that change the output by less than
a share of that cannot be told from the estimate. So the covariance gets a term that lets predictions of draws differ
from those of the estimate by phi delta, equally in every direction that the data show:

    C <- C + f B,      B = (H + I)^-1,   f = phi^2 (delta / left)^2 N / p

for N samples and p parameters of a limb (residuals are in units of their own size, so that sum r^2 = N). Draws then
replay with at most about sqrt(1 + phi^2) times the estimate's error. Without model error delta is zero.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueup.calibrate.fit.residuals import Jacobian
from trueup.core.arrays import FloatArray

_MEMORY_S = 0.5  # residuals further apart than this are taken as independent
_FEWEST_WINDOWS = 6
_REPLAYS = 0.4  # of the mean square: draws replay with at most some 1.2 times the error
_HALVINGS = 40
SHARE = 0.7  # phi


@dataclass(frozen=True, kw_only=True)
class Posterior:
    """Covariance in x, and how coloured the residuals are.

    correlation_time_s  (nchannel,) integrated autocorrelation time of the residuals
    """

    covariance: FloatArray
    correlation_time_s: FloatArray

    @property
    def deviation(self) -> FloatArray:
        return np.sqrt(np.diag(self.covariance))

    @property
    def correlation(self) -> FloatArray:
        return self.covariance / np.outer(self.deviation, self.deviation)


@dataclass(frozen=True, kw_only=True)
class Part:
    """A part of the data: channels, windows or single samples of them (None: all), and a filter over time."""

    channels: NDArray[np.intp]
    windows: NDArray[np.intp] | None = None
    samples: NDArray[np.bool_] | None = None
    over_time: Callable[[FloatArray], FloatArray] | None = None

    def chosen(self, array: NDArray[Any], channel: int) -> NDArray[Any]:
        """The part of a channel's array (..., nwindow, L): fewer windows, zeros elsewhere."""
        if self.samples is not None:
            array = array * self.samples[..., channel]
        return array if self.windows is None else array[..., self.windows, :]

    def filtered(self, array: FloatArray, channel: int) -> FloatArray:
        """The same, filtered over time."""
        array = self.chosen(array, channel)
        return array if self.over_time is None else self.over_time(array)


@dataclass(frozen=True, kw_only=True)
class Information:
    """Sums over samples, prior left out: H = J^T J, J^T r, M = J^T R J, and the channels' correlation times (s)."""

    hessian: FloatArray
    gradient: FloatArray
    meat: FloatArray
    correlation_time_s: FloatArray


def information(
    jacobian: Jacobian, residuals: FloatArray, compared: NDArray[np.bool_], rate_hz: float, *, part: Part | None = None
) -> Information:
    """Return the sums over all samples, or over a part of them.

    jacobian (nparameter, nwindow, L, nchannel); residuals and compared (nwindow, L, nchannel)
    """
    count, part = len(jacobian), part or Part(channels=np.arange(residuals.shape[-1]))
    lags = min(max(1, round(_MEMORY_S * rate_hz)), residuals.shape[1] // 2)
    hessian, meat, gradient = np.zeros((count, count)), np.zeros((count, count)), np.zeros(count)
    times = np.zeros(residuals.shape[-1])
    for c in part.channels.tolist():
        feel = np.flatnonzero(np.any(jacobian[..., c], axis=(1, 2)))
        left = part.filtered(np.where(compared[..., c], residuals[..., c], 0.0), c)
        covariance = autocovariance(left, part.chosen(compared[..., c], c), lags)
        times[c] = _correlation_time(covariance, rate_hz)
        columns = part.filtered(jacobian[feel][..., c].astype(np.float64), c)
        flat = columns.reshape(len(feel), -1)
        hessian[np.ix_(feel, feel)] += flat @ flat.T
        gradient[feel] += flat @ left.reshape(-1)
        meat[np.ix_(feel, feel)] += _coloured_product(columns, covariance)
    return Information(hessian=hessian, gradient=gradient, meat=meat, correlation_time_s=times)


def posterior(jacobian: Jacobian, residuals: FloatArray, compared: NDArray[np.bool_], rate_hz: float) -> Posterior:
    """Return the covariance of x at the optimum; arguments as for `information`."""
    count = len(jacobian)
    found = information(jacobian, residuals, compared, rate_hz)
    # a fit of p parameters makes residuals smaller than the noise was
    samples = max(int(compared.sum()), count + 1)
    meat = found.meat * samples / (samples - count)
    bread = np.linalg.inv(found.hessian + np.eye(count))
    smooth = bread @ (meat + np.eye(count)) @ bread
    blocks = bread @ (_block_meat(jacobian, residuals) + np.eye(count)) @ bread
    wider = np.sqrt(np.maximum(1.0, np.diag(blocks) / np.diag(smooth)))
    if len(residuals) < _FEWEST_WINDOWS:
        wider = np.ones(count)  # the scatter of a handful of windows is no estimate
    covariance = smooth * np.outer(wider, wider)
    narrow = np.minimum(1.0, 1.0 / np.sqrt(np.diag(covariance)))  # data cannot make the posterior wider than the prior
    return Posterior(covariance=covariance * np.outer(narrow, narrow), correlation_time_s=found.correlation_time_s)


def scaled(found: Posterior, factor: FloatArray) -> Posterior:
    """Multiply standard errors by `factor` (nparameter,), correlations kept."""
    return replace(found, covariance=found.covariance * np.outer(factor, factor))


def widened(found: Posterior, factor: FloatArray) -> Posterior:
    """Multiply standard errors by `factor` (nparameter,), up to the prior's."""
    return scaled(found, np.minimum(found.deviation * factor, np.maximum(found.deviation, 1.0)) / found.deviation)


def with_model_error(found: Posterior, bread: FloatArray, factor: FloatArray) -> Posterior:
    """Add f B; `bread` is B, `factor` (nparameter,) is f of each parameter's limb. No wider than the prior."""
    root = np.sqrt(factor)
    covariance = found.covariance + bread * np.outer(root, root)
    narrow = np.minimum(1.0, np.maximum(found.deviation, 1.0) / np.sqrt(np.diag(covariance)))
    return replace(found, covariance=covariance * np.outer(narrow, narrow))


def tempered(found: Posterior, information_matrix: FloatArray, samples: float) -> Posterior:
    """Narrow a covariance until draws replay the fitted data nearly as well as the estimate.

    Draws have tr(H C) / N more mean square than the estimate (residuals of unit size). Where widenings that were made
    parameter by parameter exceed `_REPLAYS`, information is added in proportion to H, C <- (C^-1 + m H)^-1:
    directions that the data identify get narrower, the others stay.
    """

    def narrowed(m: float) -> FloatArray:
        precision = np.linalg.inv(found.covariance) + m * information_matrix
        return np.asarray(np.linalg.inv(precision), np.float64)

    def too_wide(covariance: FloatArray) -> bool:
        return bool(np.sum(information_matrix * covariance) > _REPLAYS * samples)

    if not too_wide(found.covariance):
        return found
    low, high = -12.0, 4.0  # of log10 m
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if too_wide(narrowed(10.0**middle)) else (low, middle)
    return replace(found, covariance=narrowed(10.0**high))


def model_error_factor(beyond: float, samples: float, parameters: float, share: float = SHARE) -> float:
    """f of a limb: `beyond` is (delta / left)^2, with the limb's numbers of samples and parameters."""
    return share**2 * beyond * samples / max(parameters, 1.0)


def autocovariance(values: FloatArray, compared: NDArray[np.bool_], lags: int) -> FloatArray:
    """Return the tapered autocovariance (lags + 1,) of windows (nwindow, L); samples not compared are zero."""
    size = values.shape[1] + lags + 1
    spectrum = np.abs(np.fft.rfft(np.where(compared, values, 0.0), size, axis=1)) ** 2
    pairs = np.abs(np.fft.rfft(compared.astype(np.float64), size, axis=1)) ** 2
    total = np.fft.irfft(spectrum.sum(axis=0), size)[: lags + 1]
    number = np.fft.irfft(pairs.sum(axis=0), size)[: lags + 1]
    taper = 1.0 - np.arange(lags + 1) / (lags + 1)
    return taper * total / np.maximum(number, 1.0)


def _coloured_product(part: FloatArray, covariance: FloatArray) -> FloatArray:
    """J^T R J with R the Toeplitz matrix of `covariance`; part (nparameter, nwindow, L)."""
    lags = len(covariance) - 1
    size = part.shape[-1] + lags + 1
    column = np.zeros(size)
    column[: lags + 1] = covariance
    column[-lags:] = covariance[:0:-1]
    density = np.maximum(np.fft.rfft(column).real, 0.0)
    turned = np.fft.rfft(part, size, axis=-1) * np.sqrt(density)
    weight = np.full(turned.shape[-1], 2.0)
    weight[0] = 1.0
    if size % 2 == 0:
        weight[-1] = 1.0
    flat = (turned * np.sqrt(weight / size)).reshape(len(part), -1)
    parts = flat.view(np.float64)  # Re(z z^H) = Re Re^T + Im Im^T: a quarter of the work of the complex product
    return np.asarray(parts @ parts.T, np.float64)


def _block_meat(jacobian: Jacobian, residuals: FloatArray) -> FloatArray:
    """Sum over windows of g g^T, g the window's share of the gradient."""
    shares = np.einsum("pwtc,wtc->wp", jacobian, residuals.astype(np.float32)).astype(np.float64)
    count = len(shares)
    shares -= shares.mean(axis=0)
    return shares.T @ shares * (count / max(count - 1, 1))


def _correlation_time(covariance: FloatArray, rate_hz: float) -> float:
    if covariance[0] <= 0:
        return 0.0
    return float(max(1.0, 1.0 + 2.0 * covariance[1:].sum() / covariance[0]) / rate_hz)
