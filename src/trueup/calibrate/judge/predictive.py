"""Posterior predictive check: does what is handed on replay data that the fit has not seen?

Draws of the parameters replay the held-out logs, open loop, beside the estimate. Two things are asked. Draws must do
nearly as well as the estimate, or training in them would be training in worse simulators. And the error that was
measured must lie within what was to be expected: what the fit left over on its own data (noise and model error alike),
resampled in blocks, and up to the distance of draws from the estimate on top of it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from trueup.calibrate.data.windows import WindowCfg, cut_windows
from trueup.calibrate.fit.fit import Solution
from trueup.calibrate.fit.residuals import Shooting
from trueup.data.log import Log
from trueup.world.fitted.calibration import Predictive

FloatArray = NDArray[np.float64]
DRAWS = 40
_INSIDE = (2.5, 97.5)  # percent


def predictive_check(
    shooting: Shooting, solution: Solution, x: FloatArray, covariance: FloatArray, held: Sequence[Log]
) -> Predictive:
    """Replay held-out logs with the estimate x and with draws around it."""
    rng = np.random.default_rng(0)
    low, high = shooting.bounds
    draws = np.clip(rng.multivariate_normal(x, covariance, DRAWS, method="eigh"), low, high)
    replayed = _replayed(shooting, held)
    njoint = shooting.robot.spec.njoint
    left = (replayed.residuals(np.vstack([x, draws])) * replayed.sigma)[..., :njoint]
    counted = replayed.windows.judged[..., :njoint]
    errors = _rms(left, counted)
    apart = _square(left[1:] - left[0], counted)
    over = _left_over(shooting, solution, rng, _blocks(shooting, replayed))
    ends = (
        float(np.percentile(np.sqrt(over).mean(axis=1), _INSIDE[0])),
        float(np.percentile(np.sqrt(over + apart).mean(axis=1), _INSIDE[1])),
    )
    ratio = errors[1:] / errors[0]
    return Predictive(
        draws=DRAWS,
        median_ratio=float(np.median(ratio)),
        q95_ratio=float(np.percentile(ratio, 95)),
        estimate_error=float(errors[0]),
        spread=ends,
        covered=bool(ends[0] <= errors[0] <= ends[1]),
    )


def _replayed(shooting: Shooting, held: Sequence[Log]) -> Shooting:
    """The same model and parameters on whole held-out logs, every sample judged."""
    whole = WindowCfg(window_s=math.inf, warm_up_s=0.0, max_delay_s=shooting.cfg.max_delay_s)
    windows = cut_windows(
        shooting.robot, held, whole, free_base=shooting.windows.base_quat is not None, mask_saturated=False
    )
    cfg = replace(shooting.cfg, control_hz=windows.rate_hz, physics_hz=_physics_hz(shooting, windows.rate_hz))
    return Shooting(shooting.robot, windows, shooting.parameters, cfg)


def _physics_hz(shooting: Shooting, rate_hz: float) -> float:
    wanted = shooting.cfg.physics_hz or shooting.robot.spec.physics_hz
    return rate_hz * max(1, math.ceil(wanted / rate_hz - 1e-3))


def _square(left: FloatArray, counted: NDArray[np.bool_]) -> FloatArray:
    """(nvector, njoint) mean squares over the samples of all logs."""
    total = np.where(counted, np.clip(left, -10.0, 10.0) ** 2, 0.0).sum(axis=(1, 2))
    return np.asarray(total / np.maximum(counted.sum(axis=(0, 1)), 1))


def _rms(left: FloatArray, counted: NDArray[np.bool_]) -> FloatArray:
    """(nvector,) mean over joints of the root mean square, the project's open-loop error."""
    return np.sqrt(_square(left, counted)).mean(axis=1)


def _blocks(shooting: Shooting, replayed: Shooting) -> int:
    """How many windows of the fit make up the held-out data."""
    length = shooting.windows.judged.any(axis=2).sum(axis=1).mean()
    return max(1, round(float(replayed.windows.judged.any(axis=2).sum()) / max(float(length), 1.0)))


def _left_over(shooting: Shooting, solution: Solution, rng: np.random.Generator, blocks: int) -> FloatArray:
    """(DRAWS, njoint) mean squares of what the fit left over, in windows drawn with replacement."""
    njoint = shooting.robot.spec.njoint
    judged = shooting.windows.judged[..., :njoint]
    square = ((solution.residuals * shooting.sigma)[..., :njoint] ** 2 * judged).sum(axis=1)
    count = judged.sum(axis=1)
    picks = rng.integers(0, len(square), (DRAWS, blocks))
    return np.asarray(square[picks].sum(axis=1) / np.maximum(count[picks].sum(axis=1), 1))
