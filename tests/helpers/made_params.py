"""A calibration's file made by hand: parameters, their verdicts and their joint distribution are chosen."""

from collections.abc import Sequence

import numpy as np

from trueup.world.fitted.calibration import SCHEMA, Calibration, Effort, Estimate, FitScore, Misfit, Word
from trueup.world.fitted.fit_parameter import FitParameter


def one(name: str, of: Sequence[str], verdict: Word, prior: float, **more) -> Estimate:
    """A parameter on a linear scale with a prior width of 0.1 and wide bounds."""
    given = {"unit": "", "low": -100.0, "high": 100.0, "scale": "linear", "offset": 0.0, "width": 0.1} | more
    label = f"{name} {of[0]}" if of else name
    parameter = FitParameter(name=name, of=tuple(of), prior=prior, label=label, **given)
    return Estimate(
        parameter=parameter,
        value=prior,
        standard_error=0.1,
        interval=(prior - 0.2, prior + 0.2),
        verdict=verdict,
        ratio=1.0,
        partner="",
        correlation=0.0,
        on_bound=False,
        advice="",
    )


def made_params(
    joint_names: Sequence[str], estimates: Sequence[Estimate], x: Sequence[float], covariance: np.ndarray
) -> Calibration:
    """The whole file, with scores that say nothing."""
    n = len(joint_names)
    score = FitScore(
        open_loop=[0.01] * n, window=[0.01] * n, open_loop_mean=0.01, window_mean=0.01, spread=(0.01, 0.01)
    )
    return Calibration(
        schema=SCHEMA,
        robot="go2",
        joint_names=tuple(joint_names),
        estimates=tuple(estimates),
        x=list(x),
        covariance=np.asarray(covariance, float).tolist(),
        misfit=Misfit(noise=[1e-3] * n, left=[1e-3] * n, memory_s=[0.01] * n),
        effort=Effort(seconds=0, rollouts=0, simulated_s=0, iterations=0, converged=True, interrupted=False),
        fit_nominal=score,
        fit_calibrated=score,
        holdout_nominal=None,
        holdout_calibrated=None,
        provenance={},
    )
