"""A calibration made by hand: every parameter at the same distance from its prior, with chosen standard errors."""

from collections.abc import Mapping, Sequence

import numpy as np

from trueup.calibrate.parameters import make_parameters
from trueup.calibrate.uncertainty.verdict import VISIBLE
from trueup.robot.load import Robot
from trueup.robot.model import ModelCfg
from trueup.world.batch import BatchSim, SimCfg
from trueup.world.fitted.calibration import SCHEMA, Calibration, Effort, Estimate, FitScore, Misfit
from trueup.world.parameters.able_to_set import able_to_set

_KNOWN = 0.15  # prior widths: called identified here


def made_calibration(
    robot: Robot,
    names: Sequence[str],
    *,
    bodies: Sequence[str] = (),
    x: float = 0.3,
    deviation: Mapping[str, float] | None = None,
) -> Calibration:
    """All at `x` prior widths; `deviation` by name in prior widths, 0.1 where it says nothing."""
    sim = BatchSim(robot, able_to_set(SimCfg(model=ModelCfg(base="fixed")), names))
    parameters = make_parameters(sim, names, bodies=bodies)
    wide = np.array([(deviation or {}).get(entry.name, 0.1) for entry in parameters])
    estimates = tuple(
        Estimate(
            parameter=entry,
            value=(value := float(entry.to_value(np.array(x)))),
            standard_error=ratio * entry.slope(value),
            interval=tuple(entry.to_value(x + 1.96 * ratio * np.array([-1.0, 1.0])).tolist()),
            verdict="identified" if ratio < _KNOWN else "weak" if ratio < VISIBLE else "not visible",
            ratio=ratio,
            partner="",
            correlation=0.0,
            on_bound=False,
            advice="" if ratio < _KNOWN else "record something that shows it",
        )
        for entry, ratio in zip(parameters, wide.tolist(), strict=True)
    )
    n = robot.spec.njoint
    error = FitScore(
        open_loop=[0.01] * n, window=[0.01] * n, open_loop_mean=0.01, window_mean=0.01, spread=(0.009, 0.011)
    )
    return Calibration(
        schema=SCHEMA,
        robot=robot.spec.name,
        joint_names=robot.spec.joint_names,
        estimates=estimates,
        x=[x] * len(estimates),
        covariance=np.diag(wide**2).tolist(),
        misfit=Misfit(noise=[5e-4] * n, left=[5e-4] * n, memory_s=[0.005] * n),
        effort=Effort(seconds=0, rollouts=0, simulated_s=0, iterations=0, converged=True, interrupted=False),
        fit_nominal=error,
        fit_calibrated=error,
        holdout_nominal=error,
        holdout_calibrated=error,
        provenance={"trueup": "0", "config": {"params": ",".join(names)}},
    )
