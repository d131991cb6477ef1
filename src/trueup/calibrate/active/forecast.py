"""Fisher information of many plans at once, from finite-difference rollouts.

A plan's information is F = sum_t J_t^T W J_t with J the change of the measured positions per prior width of each
parameter, around draws of the posterior; weak directions of the earlier fit are differenced along themselves (see
`valleys`). W is the weight of a sample by the residuals of the earlier fit: their size and their correlation time
(correlated samples count once). With the earlier covariance as prior,

    C_after = (C_before^-1 + F)^-1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trueup.calibrate.data.windows import Windows
from trueup.calibrate.fit.residuals import Shooting, fit_sim_cfg, window_products
from trueup.calibrate.judge.valleys import along, widest_axes
from trueup.core.errors import TrueupError
from trueup.robot.load import Robot
from trueup.world.fitted.calibration import Calibration, Misfit

FloatArray = NDArray[np.float64]
_SETTLE_S = 0.5  # the servos sag under gravity before a motion begins
_PHYSICS_HZ = 200.0  # motions are compared, not fitted: a coarse step ranks them alike
_MAX_DELAY_S = 0.04


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """Motion and information of K plans.

    information  (ndraw, K, nparameter, nparameter), in prior widths
    joint_pos    (K, T, njoint) simulated at the posterior mean
    """

    information: FloatArray
    joint_pos: FloatArray


class Forecaster:
    """Forecasts for one calibrated robot; simulations are kept between calls."""

    def __init__(self, robot: Robot, result: Calibration, *, rate_hz: float, draws: int = 2, seed: int = 0) -> None:
        if result.joint_names != robot.spec.joint_names:
            raise TrueupError(f"this calibration is of {result.robot!r} with other joints than {robot.spec.name!r}")
        self.robot, self.parameters, self.rate_hz = robot, result.parameters, rate_hz
        self._covariance = np.array(result.covariance)
        self.before = np.linalg.inv(self._covariance)
        self._sigma = worth(result.misfit, rate_hz)
        names = tuple(dict.fromkeys(entry.name for entry in self.parameters))
        physics = min(_PHYSICS_HZ, robot.spec.physics_hz)
        self._cfg = fit_sim_cfg(robot, rate_hz, names, physics_hz=physics)
        self._points = _points(result, draws, seed)
        self._shootings: dict[int, Shooting] = {}

    def __call__(self, targets: FloatArray) -> Forecast:
        """Forecast plans (K, T, njoint) that all begin at rest in their first pose."""
        shooting, settle = self._shooting(targets)
        found = []
        for x in self._points:
            at_x = shooting.residuals(x[None])[0]
            jacobian = shooting.jacobian(x, at_x)
            jacobian = along(shooting, x, jacobian, widest_axes(shooting, x, self._covariance))
            found.append(window_products(jacobian))
            if len(found) == 1:
                path = (at_x * self._sigma)[:, settle:]
        return Forecast(information=np.array(found), joint_pos=path)

    @property
    def limb(self) -> NDArray[np.intp]:
        """(njoint,) joints that feel each other have the same number."""
        return self._any().colouring.limb

    @property
    def owner(self) -> NDArray[np.intp]:
        """(nparameter,) the limb that alone feels a parameter, -1: several do."""
        return self._any().colouring.owner

    def _any(self) -> Shooting:
        if not self._shootings:
            self._shooting(np.tile(self.robot.spec.default_pose, (1, 2, 1)))
        return next(iter(self._shootings.values()))

    def _shooting(self, targets: FloatArray) -> tuple[Shooting, int]:
        """The problem whose windows are the plans; 'measured' is zero, so that residuals are the motion."""
        settle = round(_SETTLE_S * self.rate_hz)
        windows = _windows(self.robot, targets, settle, self.rate_hz, self._sigma)
        count = len(targets)
        if count not in self._shootings:
            self._shootings[count] = Shooting(self.robot, windows, self.parameters, self._cfg)
        shooting = self._shootings[count]
        shooting.windows = windows
        return shooting, settle


def deviations(before: FloatArray, information: FloatArray) -> FloatArray:
    """Standard errors in prior widths (..., nparameter) after information (..., p, p); `before` is a precision."""
    covariance = np.linalg.inv(before + information)
    return np.sqrt(np.maximum(np.diagonal(covariance, axis1=-2, axis2=-1), 0.0))


def worth(misfit: Misfit, rate_hz: float) -> FloatArray:
    """(njoint,) noise of a white sample with as little information as one sample of the earlier fit."""
    left, noise = np.array(misfit.left), np.array(misfit.noise)
    repeats = np.sqrt(np.maximum(1.0, np.array(misfit.memory_s) * rate_hz))
    return np.asarray(np.maximum(left, noise) * repeats, np.float64)


def _points(result: Calibration, draws: int, seed: int) -> list[FloatArray]:
    """The posterior mean and draws around it, in x and inside the bounds."""
    low, high = np.array([entry.x_bounds for entry in result.parameters]).T
    rng = np.random.default_rng(seed)
    spread = rng.multivariate_normal(np.array(result.x), np.array(result.covariance), max(0, draws - 1), method="eigh")
    return [np.clip(x, low, high) for x in (np.array(result.x), *spread)]


def _windows(robot: Robot, targets: FloatArray, settle: int, rate_hz: float, sigma: FloatArray) -> Windows:
    count, _, njoint = targets.shape
    start = targets[:, 0]
    past = np.repeat(start[:, None], int(np.ceil(_MAX_DELAY_S * rate_hz)) + 1, axis=1)
    target = np.concatenate([np.repeat(start[:, None], settle, axis=1), targets], axis=1)
    judged = np.ones(target.shape, bool)
    judged[:, :settle] = False
    return Windows(
        rate_hz=rate_hz,
        joint_names=robot.spec.joint_names,
        past=past,
        target=target,
        pos=start,
        vel=np.zeros((count, njoint)),
        measured=np.zeros(target.shape),
        judged=judged,
        sigma=sigma,
        still=np.zeros(njoint, bool),
    )


def weak_of(result: Calibration) -> NDArray[np.intp]:
    """Numbers of the parameters that are not identified."""
    return np.flatnonzero([estimate.verdict != "identified" for estimate in result.estimates])
