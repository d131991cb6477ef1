"""Parameter identification on the logs of a delta action: `trueup calibrate` without its intervals and verdicts.

Published comparisons (ASAP, arXiv 2502.01143) identify gains and the mass and centre of mass of the trunk: nothing that
could explain a delay or dry friction. That is a method of its own here (`published`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from trueup.calibrate.config import CalibrateCfg, FitCfg, WindowCfg
from trueup.calibrate.delta.problem import DeltaProblem
from trueup.calibrate.delta.shooting import DeltaShooting
from trueup.calibrate.delta.states import with_base
from trueup.calibrate.fit.fit import Fitter, Progress
from trueup.calibrate.fit.problem import Problem, make_problem
from trueup.data.resample import at_rate
from trueup.world.batch import BatchSim
from trueup.world.fitted.fit_parameter import FitParameter, ParamWriter

FITTED = "delay,friction,kp,kd,encoder_bias"
ON_GROUND = "delay,friction,kp,kd,encoder_bias,mass_scale,contact"
PUBLISHED, PUBLISHED_ON_GROUND = "kp,kd", "kp,kd,mass_scale,com_offset"

_WINDOWS, _ITERATIONS = 30, 8


def identified(
    problem: DeltaProblem, progress: Progress | None = None, *, published: bool = False
) -> tuple[DeltaShooting, dict[str, float]]:
    """The simulator with fitted parameters, and their values by label.

    Delay, gains, dry friction and encoder bias of every joint; of a robot on its feet also the trunk's mass and the
    ground. `published`: gains, and of a robot on its feet the trunk's mass and centre of mass.
    """
    found, cfg = _fit_problem(problem, published)
    x = Fitter(found, cfg.fit, progress=progress).run(None).x
    parameters = found.fine.parameters
    values = {one.label: float(one.to_value(np.array(at))) for one, at in zip(parameters, x, strict=True)}
    return _with(problem, parameters, values), values


def with_values(problem: DeltaProblem, values: dict[str, float], *, published: bool = False) -> DeltaShooting:
    """The simulator with parameters that `identified` found before."""
    return _with(problem, _fit_problem(problem, published)[0].fine.parameters, values)


def _fit_problem(problem: DeltaProblem, published: bool) -> tuple[Problem, CalibrateCfg]:
    robot, shooting = problem.robot, problem.shooting
    is_free = shooting.tracks.base_pos is not None
    fixed, on_ground = (PUBLISHED, PUBLISHED_ON_GROUND) if published else (FITTED, ON_GROUND)
    # the physics that a policy will train in, so that the fit makes up for its step too
    cfg = CalibrateCfg(
        params=on_ground if is_free else fixed,
        bodies=(robot.spec.base.body,) if is_free else (),
        base="free" if is_free else "fixed",
        physics_hz=robot.spec.physics_hz,
        window=WindowCfg(window_s=0.1 if is_free else None, max_windows=_WINDOWS),
        fit=FitCfg(method="local", starts=1, iterations=_ITERATIONS, loss="huber"),
    )
    rate = shooting.tracks.rate_hz
    logs = [at_rate(with_base(robot, log) if is_free else log, rate) for log in problem.fitted_logs]
    return make_problem(robot, logs, cfg), cfg


def _with(problem: DeltaProblem, parameters: Sequence[FitParameter], values: dict[str, float]) -> DeltaShooting:
    shooting, row = problem.shooting, np.array([values[one.label] for one in parameters])

    def apply(sim: BatchSim) -> None:
        writer = ParamWriter(sim, parameters)
        writer.write(np.broadcast_to(row, (sim.nsim, len(row))), writer.base())

    sim = replace(shooting.cfg, max_delay_s=WindowCfg().max_delay_s)
    return DeltaShooting(problem.robot, shooting.tracks, apply, sim)
