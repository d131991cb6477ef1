"""From a solution to what is said about it: posterior, model error, verdicts, estimates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trueup.calibrate.fit import Solution
from trueup.calibrate.residuals import Shooting
from trueup.calibrate.result import Estimate, Misfit
from trueup.calibrate.uncertainty import Posterior, model_error, posterior, widened
from trueup.calibrate.verdict import Verdict, hide_still, verdicts

FloatArray = NDArray[np.float64]
_NORMAL_95 = 1.96


@dataclass(frozen=True, kw_only=True)
class Judged:
    """A solution with its uncertainty; x has the prior where a joint did not move."""

    x: FloatArray
    posterior: Posterior
    estimates: tuple[Estimate, ...]
    misfit: Misfit
    notes: tuple[str, ...]


def judge(shooting: Shooting, solution: Solution) -> Judged:
    """Return what the data says about every parameter, and how sure it is."""
    windows = shooting.windows
    still = frozenset(np.array(windows.joint_names)[windows.still].tolist())
    found = posterior(solution.jacobian, solution.residuals, windows.judged, windows.rate_hz)
    misfit = _misfit(shooting, solution, found)
    factor = model_error(np.array(misfit.left), np.array(misfit.noise), _acts_on(shooting))
    found, hidden = hide_still(shooting.parameters, widened(found, factor), still)
    x = np.where(hidden, 0.0, solution.x)
    words = verdicts(shooting.parameters, x, found, still)
    notes: tuple[str, ...] = ()
    if misfit.structured:
        notes = (
            f"more is left over than noise: standard errors were widened {np.median(factor):.1f} times for what the "
            "model lacks",
        )
    return Judged(
        x=x,
        posterior=found,
        estimates=_estimates(shooting, x, found, words),
        misfit=misfit,
        notes=notes,
    )


def _estimates(
    shooting: Shooting, x: FloatArray, found: Posterior, words: Sequence[Verdict]
) -> tuple[Estimate, ...]:
    out = []
    for k, (entry, verdict) in enumerate(zip(shooting.parameters, words, strict=True)):
        value, deviation = float(entry.to_value(x[k])), float(found.deviation[k])
        ends = entry.to_value(x[k] + _NORMAL_95 * deviation * np.array([-1.0, 1.0]))
        out.append(
            Estimate(
                parameter=entry,
                value=value,
                standard_error=deviation * entry.slope(value),
                interval=(float(ends[0]), float(ends[1])),
                verdict=verdict.word,
                ratio=verdict.ratio,
                partner=shooting.parameters[verdict.partner].label if verdict.partner >= 0 else "",
                correlation=verdict.correlation,
                on_bound=verdict.on_bound,
                advice=verdict.advice,
            )
        )
    return tuple(out)


def _acts_on(shooting: Shooting) -> NDArray[np.bool_]:
    """(nparameter, njoint): a joint's own parameter acts on that joint, others on all that they reach."""
    names = shooting.robot.spec.joint_names
    rows = []
    for entry, reach in zip(shooting.parameters, shooting.colouring.reach, strict=True):
        own = np.array([name in entry.of for name in names])
        rows.append(own if own.any() else reach)
    return np.array(rows)


def _misfit(shooting: Shooting, solution: Solution, found: Posterior) -> Misfit:
    windows, njoint = shooting.windows, shooting.robot.spec.njoint
    left = (solution.residuals * shooting.sigma)[..., :njoint]
    count = np.maximum(windows.judged[..., :njoint].sum(axis=(0, 1)), 1)
    return Misfit(
        noise=windows.sigma[:njoint].tolist(),
        left=np.sqrt((left**2).sum(axis=(0, 1)) / count).tolist(),
        memory_s=found.correlation_time_s[:njoint].tolist(),
    )
