"""Parameter identification on the logs of a delta action: `trueup calibrate` without its intervals and verdicts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from trueup.calibrate.config import CalibrateCfg, FitCfg, WindowCfg
from trueup.calibrate.delta.problem import DeltaProblem
from trueup.calibrate.delta.shooting import DeltaShooting
from trueup.calibrate.delta.states import with_base
from trueup.calibrate.fit.fit import Fitter, Progress
from trueup.calibrate.fit.problem import make_problem
from trueup.data.resample import at_rate
from trueup.world.batch import BatchSim
from trueup.world.fitted.fit_parameter import ParamWriter

FITTED = "delay,friction,kp,kd,encoder_bias"
ON_GROUND = "delay,friction,kp,kd,encoder_bias,mass_scale,contact"

_WINDOWS, _ITERATIONS = 30, 8


def identified(problem: DeltaProblem, progress: Progress | None = None) -> tuple[DeltaShooting, dict[str, float]]:
    """The simulator with fitted parameters, and their values by label.

    Delay, gains, dry friction and encoder bias of every joint; of a robot on its feet also the trunk's mass and the
    ground.
    """
    robot, shooting = problem.robot, problem.shooting
    is_free = shooting.tracks.base_pos is not None
    # the physics that a policy will train in, so that the fit makes up for its step too
    cfg = CalibrateCfg(
        params=ON_GROUND if is_free else FITTED,
        bodies=(robot.spec.base.body,) if is_free else (),
        base="free" if is_free else "fixed",
        physics_hz=robot.spec.physics_hz,
        window=WindowCfg(window_s=0.1 if is_free else None, max_windows=_WINDOWS),
        fit=FitCfg(method="local", starts=1, iterations=_ITERATIONS, loss="huber"),
    )
    rate = shooting.tracks.rate_hz
    logs = [at_rate(with_base(robot, log) if is_free else log, rate) for log in problem.fitted_logs]
    found = make_problem(robot, logs, cfg)
    fitter = Fitter(found, cfg.fit, progress=progress)
    x = fitter.run(None).x
    parameters = found.fine.parameters
    values = np.array([float(one.to_value(np.array(at))) for one, at in zip(parameters, x, strict=True)])

    def apply(sim: BatchSim) -> None:
        writer = ParamWriter(sim, parameters)
        writer.write(np.broadcast_to(values, (sim.nsim, len(values))), writer.base())

    sim = replace(shooting.cfg, max_delay_s=cfg.window.max_delay_s)
    labels = {one.label: float(value) for one, value in zip(parameters, values, strict=True)}
    return DeltaShooting(robot, shooting.tracks, apply, sim), labels
