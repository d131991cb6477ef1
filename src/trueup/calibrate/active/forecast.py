"""Fisher information of many plans at once, from finite-difference rollouts.

A plan's information is F = sum_t J_t^T W J_t with J the change of the measured positions per prior width of each
parameter, around draws of the posterior; weak directions of the earlier fit are differenced along themselves (see
`valleys`). W is the weight of a sample by the residuals of the earlier fit: their size and their correlation time
(correlated samples count once). With the earlier covariance as prior,

    C_after = (C_before^-1 + F)^-1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trueup.calibrate.data.windows import FitWindows
from trueup.calibrate.fit.residuals import Shooting, fit_sim_cfg, window_products
from trueup.calibrate.uncertainty.valleys import along, widest_axes
from trueup.core.arrays import FloatArray
from trueup.core.errors import TrueupError
from trueup.robot.load import Robot
from trueup.world.fitted.calibration import Calibration, Misfit

_SETTLE_S = 0.5  # the servos sag under gravity before a motion begins
_PHYSICS_HZ = 200.0  # motions are compared, not fitted: a coarse step ranks them alike
_MAX_DELAY_S = 0.04


class Forecast(NamedTuple):
    """Motion and information of K plans.

    information  (ndraw, K, nparameter, nparameter), in prior widths
    joint_pos    (K, T, njoint) simulated at the posterior mean
    """

    information: FloatArray
    joint_pos: FloatArray


class Forecaster:
    """Forecasts for one calibrated robot; simulations are kept between calls.

    limb   (njoint,) number of each joint's limb; dynamically coupled joints have the same
    owner  (nparameter,) the only limb that a parameter affects, -1: several
    """

    def __init__(self, robot: Robot, result: Calibration, *, rate_hz: float, draws: int = 2, seed: int = 0) -> None:
        if result.joint_names != robot.spec.joint_names:
            raise TrueupError(f"this calibration is of {result.robot!r} with other joints than {robot.spec.name!r}")
        self.robot, self.parameters, self.rate_hz = robot, result.parameters, rate_hz
        self._covariance = np.array(result.covariance)
        self.before = np.linalg.inv(self._covariance)
        self._sigma, self._settle = worth(result.misfit, rate_hz), round(_SETTLE_S * rate_hz)
        names = tuple(dict.fromkeys(entry.name for entry in self.parameters))
        self._cfg = fit_sim_cfg(robot, rate_hz, names, physics_hz=min(_PHYSICS_HZ, robot.spec.physics_hz))
        low, high = np.array([entry.x_bounds for entry in result.parameters]).T
        mean, rng = np.array(result.x), np.random.default_rng(seed)
        spread = rng.multivariate_normal(mean, self._covariance, max(0, draws - 1), method="eigh")
        self._points = [np.clip(x, low, high) for x in (mean, *spread)]
        self._shootings: dict[int, Shooting] = {}
        colouring = self._shooting(np.tile(robot.spec.excitation_pose, (1, 2, 1))).colouring
        self.limb, self.owner = colouring.limb, colouring.owner

    def __call__(self, targets: FloatArray) -> Forecast:
        """Forecasts of plans (K, T, njoint) that begin at rest in their first pose."""
        shooting, found, paths = self._shooting(targets), [], []
        for x in self._points:
            at_x = shooting.residuals(x[None])[0]
            jacobian = shooting.jacobian(x, at_x)
            jacobian = along(shooting, x, jacobian, widest_axes(shooting, x, self._covariance))
            found.append(window_products(jacobian))
            paths.append((at_x * self._sigma)[:, self._settle :])
        return Forecast(np.array(found), paths[0])

    def _shooting(self, targets: FloatArray) -> Shooting:
        """The problem whose windows are the plans; 'measured' is zero, so that residuals are the motion."""
        count, _, njoint = targets.shape
        start = targets[:, :1]
        target = np.concatenate([np.repeat(start, self._settle, axis=1), targets], axis=1)
        compared = np.ones(target.shape, bool)
        compared[:, : self._settle] = False
        windows = FitWindows(
            rate_hz=self.rate_hz,
            joint_names=self.robot.spec.joint_names,
            past=np.repeat(start, int(np.ceil(_MAX_DELAY_S * self.rate_hz)) + 1, axis=1),
            target=target,
            pos=start[:, 0],
            vel=np.zeros((count, njoint)),
            measured=np.zeros(target.shape),
            compared=compared,
            sigma=self._sigma,
            still=np.zeros(njoint, bool),
        )
        if count not in self._shootings:
            self._shootings[count] = Shooting(self.robot, windows, self.parameters, self._cfg)
        self._shootings[count].windows = windows
        return self._shootings[count]


def deviations(before: FloatArray, information: FloatArray) -> FloatArray:
    """Standard errors in prior widths (..., nparameter) after information (..., p, p); `before` is a precision."""
    covariance = np.linalg.inv(before + information)
    return np.sqrt(np.maximum(np.diagonal(covariance, axis1=-2, axis2=-1), 0.0))


def worth(misfit: Misfit, rate_hz: float) -> FloatArray:
    """(njoint,) noise of a white sample with as little information as one sample of the earlier fit."""
    left, noise = np.array(misfit.left), np.array(misfit.noise)
    repeats = np.sqrt(np.maximum(1.0, np.array(misfit.memory_s) * rate_hz))
    return np.asarray(np.maximum(left, noise) * repeats, np.float64)
