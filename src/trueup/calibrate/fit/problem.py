"""One problem in several finenesses: the windows and physics of the result, and cheaper ones for the way there."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from trueup.calibrate.data.windows import WindowCfg, Windows, cut_windows
from trueup.calibrate.fit.residuals import Shooting, fit_sim_cfg, parameters_for
from trueup.calibrate.parameters import Tie, parameter_names
from trueup.data.log import Log
from trueup.robot.load import Robot
from trueup.world.fitted.fit_parameter import FitParameter

_ROUGH_WINDOWS = 4
_LIMITS = frozenset({"torque_limit", "stall_torque", "no_load_speed"})


@dataclass(frozen=True, kw_only=True)
class Problem:
    """The same parameters on the same logs.

    fine    what the result is judged on
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
        return sum(
            part.rollouts * part.windows.target.shape[1] / part.windows.rate_hz for part in self._parts()
        )

    def _parts(self) -> list[Shooting]:
        parts = (self.fine, self.bridge, self.rough, self.whole)
        return list({id(part): part for part in parts if part is not None}.values())


@dataclass(frozen=True, kw_only=True)
class ProblemCfg:
    """What is fitted; see `CalibrateCfg`."""

    params: str
    tie: Tie
    bodies: tuple[str, ...]
    free_base: bool
    physics_hz: float
    window: WindowCfg


def make_problem(robot: Robot, logs: Sequence[Log], cfg: ProblemCfg, *, whole: bool = False) -> Problem:
    """Cut the logs and build the simulations; `whole`: for a baseline, on whole logs."""
    windows = _cut(robot, logs, cfg, cfg.window)
    coarse_hz = min(cfg.physics_hz, robot.spec.physics_hz)
    fine = _shooting(robot, windows, cfg, cfg.physics_hz)
    same = fine.parameters
    if whole:
        complete = _cut(robot, logs, cfg, replace(cfg.window, window_s=math.inf))
        return Problem(fine=fine, whole=_shooting(robot, complete, cfg, cfg.physics_hz, same))
    few = _cut(robot, logs, cfg, replace(cfg.window, max_windows=max(_ROUGH_WINDOWS, len(logs))))
    rough = _shooting(robot, few, cfg, coarse_hz, same)
    bridge = fine if coarse_hz == cfg.physics_hz else _shooting(robot, windows, cfg, coarse_hz, same)
    return Problem(fine=fine, bridge=bridge, rough=rough)


def _cut(robot: Robot, logs: Sequence[Log], cfg: ProblemCfg, window: WindowCfg) -> Windows:
    mask = not _LIMITS & set(parameter_names(cfg.params))
    return cut_windows(robot, logs, window, free_base=cfg.free_base, mask_saturated=mask)


def _shooting(
    robot: Robot,
    windows: Windows,
    cfg: ProblemCfg,
    physics_hz: float,
    parameters: Sequence[FitParameter] | None = None,
) -> Shooting:
    names = parameter_names(cfg.params)
    sim = fit_sim_cfg(robot, windows.rate_hz, names, free_base=cfg.free_base, physics_hz=physics_hz)
    sim = replace(sim, max_delay_s=cfg.window.max_delay_s)
    if parameters is None:
        parameters = parameters_for(robot, sim, names, tie=cfg.tie, bodies=cfg.bodies, windows=windows)
    return Shooting(robot, windows, parameters, sim)
