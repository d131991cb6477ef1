"""One problem at several resolutions: the windows and physics of the result, and cheaper ones for the search.

The physics step has an integration error. A coarse step acts like a little more inertia and delay, and a fit
compensates them: on a go2 at 200 Hz armatures come out 11 to 35 % wrong. So the same windows are simulated again with
half the step; the change of the residuals, seen through the Jacobian of the fit, is the change of the parameters:
dx = -(H + I)^-1 J^T (r_half - r). The integrator's error is proportional to its step, so a vanishing step would change
them by twice that.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import msgspec
import numpy as np

from trueup.calibrate.config import CalibrateCfg, WindowCfg
from trueup.calibrate.data.windows import FitWindows, cut_windows
from trueup.calibrate.fit.descent import Descent
from trueup.calibrate.fit.residuals import Jacobian, Shooting, fit_sim_cfg
from trueup.calibrate.parameters import near_stops, parameter_names, parameters_for, reaching
from trueup.core.arrays import FloatArray, sha256_of
from trueup.data.log import Log
from trueup.robot.load import Robot
from trueup.world.fitted.fit_parameter import FitParameter

_ROUGH_WINDOWS = 4
_LIMITS = frozenset({"torque_limit", "stall_torque", "no_load_speed"})
_LEAST_ERRORS = 1.0  # standard errors: smaller effects of the step are not reported
_LEAST_PERCENT = 2.0  # of the value, for parameters on a logarithmic scale
_MOST_SHOWN = 3


@dataclass(frozen=True, kw_only=True)
class Problem:
    """The same parameters on the same logs.

    fine    windows and physics of the result
    bridge  the same windows with coarse physics
    rough   some of the windows with coarse physics
    whole   whole logs with the fine physics, for baselines; None: `fine`
    """

    fine: Shooting
    bridge: Shooting | None = None
    rough: Shooting | None = None
    whole: Shooting | None = None

    @property
    def rollouts(self) -> int:
        """Windows simulated so far."""
        return sum(part.rollouts for part in self._parts())

    @property
    def simulated_s(self) -> float:
        """Robot time simulated so far."""
        return sum(part.rollouts * part.windows.target.shape[1] / part.windows.rate_hz for part in self._parts())

    def _parts(self) -> list[Shooting]:
        parts = (self.fine, self.bridge, self.rough, self.whole)
        return list({id(part): part for part in parts if part is not None}.values())


def make_problem(robot: Robot, logs: Sequence[Log], cfg: CalibrateCfg) -> Problem:
    """Cut the logs and build the simulations; a baseline gets whole logs."""
    windows = _cut(robot, logs, cfg, cfg.window)
    coarse_hz = min(cfg.physics_hz, robot.spec.physics_hz)
    fine = _shooting(robot, windows, cfg, cfg.physics_hz)
    same = fine.parameters
    if cfg.is_baseline:
        complete = _cut(robot, logs, cfg, replace(cfg.window, window_s=math.inf))
        return Problem(fine=fine, whole=_shooting(robot, complete, cfg, cfg.physics_hz, same))
    few = _cut(robot, logs, cfg, replace(cfg.window, max_windows=max(_ROUGH_WINDOWS, len(logs))))
    rough = _shooting(robot, few, cfg, coarse_hz, same)
    bridge = fine if coarse_hz == cfg.physics_hz else _shooting(robot, windows, cfg, coarse_hz, same)
    return Problem(fine=fine, bridge=bridge, rough=rough)


def problem_key(shooting: Shooting, settings: str) -> str:
    """A hash of the data, the parameters and the settings of a fit."""
    windows = shooting.windows
    arrays = (windows.measured, windows.target, windows.pos, windows.compared)
    return sha256_of((settings, msgspec.json.encode(list(shooting.parameters)), *arrays))


def _cut(robot: Robot, logs: Sequence[Log], cfg: CalibrateCfg, window: WindowCfg) -> FitWindows:
    mask = not _LIMITS & set(parameter_names(cfg.params))
    return cut_windows(robot, logs, window, free_base=cfg.base == "free", mask_saturated=mask)


def _shooting(
    robot: Robot,
    windows: FitWindows,
    cfg: CalibrateCfg,
    physics_hz: float,
    parameters: Sequence[FitParameter] | None = None,
) -> Shooting:
    names = parameter_names(cfg.params)
    sim = fit_sim_cfg(robot, windows.rate_hz, names, free_base=cfg.base == "free", physics_hz=physics_hz)
    sim = replace(sim, max_delay_s=cfg.window.max_delay_s)
    if parameters is None:
        usual = reaching(parameters_for(robot, sim, names, tie=cfg.tie, bodies=cfg.bodies), cfg.reach)
        parameters = near_stops(usual, windows)
    return Shooting(robot, windows, parameters, sim)


def step_notes(
    shooting: Shooting, x: FloatArray, residuals: FloatArray, jacobian: Jacobian, deviation: FloatArray
) -> tuple[str, ...]:
    """A warning if a vanishing step would change a parameter by more than its standard error and more than a little.

    One more rollout of the windows, with half the step; arguments as at the end of a fit.
    """
    rate = shooting.cfg.physics_hz or shooting.robot.spec.physics_hz
    half = replace(shooting.cfg, physics_hz=2.0 * rate)
    finer = Shooting(shooting.robot, shooting.windows, shooting.parameters, half)
    finer.sigma = shooting.sigma
    moved = finer.residuals(x[None])[0] - residuals
    hessian, gradient = Descent(shooting).normal(jacobian, moved, np.zeros(len(x)))
    change = -2.0 * np.linalg.solve(hessian, gradient)
    found = []
    for k, entry in enumerate(shooting.parameters):
        size = abs(float(change[k])) / max(float(deviation[k]), 1e-12)
        now, then = (float(entry.to_value(np.array(at))) for at in (x[k], x[k] + change[k]))
        percent = 100.0 * (now - then) / max(abs(then), 1e-12)
        if size > _LEAST_ERRORS and (entry.scale == "linear" or abs(percent) > _LEAST_PERCENT):
            by = f"{percent:+.0f} %" if entry.scale == "log" else f"{now - then:+.2g} {entry.unit}"
            found.append((size, f"{entry.label} {by}"))
    if not found:
        return ()
    worst = ", ".join(text for _, text in sorted(found, reverse=True)[:_MOST_SHOWN])
    return (
        f"physics at {rate:.0f} Hz puts its own error into {len(found)} of {len(x)} parameters: {worst}; fit with "
        f"--physics {max(1000.0, 2 * rate):.0f}, or keep this rate where they are used",
    )
