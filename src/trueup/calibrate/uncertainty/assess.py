"""From a solution to its report: posterior, intervals, verdicts, ratios, warnings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trueup.calibrate.config import Loss
from trueup.calibrate.data.windows import FitWindows
from trueup.calibrate.fit.descent import Descent
from trueup.calibrate.fit.fit import Solution
from trueup.calibrate.fit.residuals import Shooting
from trueup.calibrate.uncertainty.covariance import (
    Posterior,
    model_error_factor,
    posterior,
    scaled,
    tempered,
    widened,
    with_model_error,
)
from trueup.calibrate.uncertainty.profile import Profiler
from trueup.calibrate.uncertainty.refits import between_parts
from trueup.calibrate.uncertainty.verdict import (
    Evidence,
    estimates,
    hide_still,
    inseparable,
    is_close,
    pairs,
    ratio,
    unlike_joints,
)
from trueup.core.arrays import FloatArray
from trueup.world.fitted.calibration import Estimate, Misfit, Ratio

_ASKED_RAD, _ASKED_NOISES = 0.2, 100.0  # total path of commands below which nothing is excited
_NO_DELAY = 0.01  # prior widths from the bound
_STRUCTURED = 2.0  # residual over noise
_NOISE_WORTH = 1.15  # noise is known to about this factor


@dataclass(frozen=True, kw_only=True)
class AssessedFit:
    """A solution with its uncertainty; x has the prior where a joint was not moved."""

    x: FloatArray
    posterior: Posterior
    estimates: tuple[Estimate, ...]
    ratios: tuple[Ratio, ...]
    misfit: Misfit
    notes: tuple[str, ...]


def assess(
    shooting: Shooting, solution: Solution, loss: Loss = "linear", progress: Callable[[float], None] | None = None
) -> AssessedFit:
    """Return every parameter's interval and verdict.

    The covariance is that of a right model (sandwich), widened by the variance between parts of the data and by the
    model error, set to the standard errors of the profile, and narrowed until draws replay nearly as well as the
    estimate.
    """
    windows, parameters = shooting.windows, shooting.parameters
    still = still_joints(windows)
    right = posterior(solution.jacobian, solution.residuals, windows.compared, windows.rate_hz)
    misfit = _misfit(shooting, solution, right)
    tau = between_parts(shooting, solution.x, solution.residuals, solution.jacobian, progress)
    found = widened(right, np.hypot(right.deviation, tau) / right.deviation)
    descent = Descent(shooting, loss)
    hessian, _ = descent.normal(solution.jacobian, solution.residuals, solution.x)
    found = with_model_error(found, np.asarray(np.linalg.inv(hessian), np.float64), _model_error(shooting))
    profiler = Profiler(descent, solution, found.deviation, smooth=windows.base_quat is None)
    profile, nominal = profiler.profile(), shooting.nominal()
    at_nominal = [e.to_x(min(max(v, e.low), e.high)) for e, v in zip(parameters, nominal, strict=True)]
    rise = profiler.rise_at(np.array(at_nominal))
    found = scaled(found, np.minimum(profile.straight, 1.0) / found.deviation)
    samples = float(windows.compared.sum())
    found = tempered(found, np.asarray(hessian - np.eye(len(hessian)), np.float64), samples)
    found, hidden = hide_still(parameters, found, still)
    known = np.where(hidden, 1.0, profile.deviation)
    x = np.where(hidden, 0.0, solution.x)
    structured = _structured(shooting, misfit)
    partners = pairs(parameters, found.correlation)
    close = np.array(
        [is_close(parameter, float(deviation)) for parameter, deviation in zip(parameters, known, strict=True)]
    )
    together = inseparable(partners, found.correlation, structured, close)
    unlike = unlike_joints(parameters, x, known)
    doubted = together | {k for group in unlike for k in group.members if structured[k]}
    evidence = [
        Evidence(
            x=float(x[k]),
            deviation=float(known[k]),
            ends=(float(profile.ends[k, 0]), float(profile.ends[k, 1])),
            at_bound=(bool(profile.at_bound[k, 0]), bool(profile.at_bound[k, 1])),
            excluded=bool(rise[k] > profiler.wanted[k]),
            doubted=k in doubted,
            still=bool(hidden[k]),
            nominal=float(nominal[k]),
            nominal_cost=float(rise[k] / max(profiler.cost_of(k), 1e-9)),
        )
        for k in range(len(parameters))
    ]
    return AssessedFit(
        x=x,
        posterior=found,
        estimates=estimates(parameters, found, evidence),
        ratios=tuple(ratio(shooting, x, found, pair) for pair in partners if pair.first in together),
        misfit=misfit,
        notes=(*_notes(shooting, x, misfit, tau / right.deviation, still), *(group.text for group in unlike)),
    )


def _model_error(shooting: Shooting) -> FloatArray:
    """(nparameter,) factor f of each parameter's limb (see `covariance`); shared parameters get the largest."""
    windows, owner, limbs = shooting.windows, shooting.colouring.owner, shooting.channel_limb
    noise = np.minimum(_NOISE_WORTH * windows.sigma / shooting.sigma, 1.0)
    count = windows.compared.sum(axis=(0, 1))
    each = []
    for limb in range(int(limbs.max()) + 1):
        in_limb = limbs == limb
        beyond = np.average(1.0 - noise[in_limb] ** 2, weights=np.maximum(count[in_limb], 1))
        parameters = float((owner == limb).sum() + (owner < 0).sum())
        each.append(model_error_factor(float(beyond), float(count[in_limb].sum()), parameters))
    return np.array([max(each) if limb < 0 else each[limb] for limb in owner], np.float64)


def _structured(shooting: Shooting, misfit: Misfit) -> NDArray[np.bool_]:
    """(nparameter,) whether residuals far exceed noise in any joint that a parameter acts on."""
    left = np.array(misfit.left) > _STRUCTURED * np.array(misfit.noise)
    own = np.array([[name in entry.of for name in shooting.robot.spec.joint_names] for entry in shooting.parameters])
    # a joint's own parameter acts on that joint, others on all that they reach
    acts_on = np.where(own.any(axis=1, keepdims=True), own, shooting.colouring.reach)
    return np.asarray((acts_on & left).any(axis=1))


def still_joints(windows: FitWindows) -> frozenset[str]:
    """Joints that hardly moved, or were not commanded and only shook because others moved.

    Measured by the total path of the commands: moving to the start of a recording and back is no excitation.
    """
    noise = windows.sigma[: len(windows.joint_names)]
    path = np.abs(np.diff(windows.target, axis=1)).sum(axis=(0, 1))
    if windows.torque is not None:
        path = np.where(np.ptp(windows.torque, axis=(0, 1)) > 0, np.inf, path)
    still = windows.still | (path < np.maximum(_ASKED_RAD, _ASKED_NOISES * noise))
    return frozenset(np.array(windows.joint_names)[still].tolist())


def _notes(
    shooting: Shooting, x: FloatArray, misfit: Misfit, pulled: FloatArray, still: frozenset[str]
) -> Iterator[str]:
    if misfit.structured:
        ratio = np.array(misfit.left) / np.array(misfit.noise)
        worst = np.argsort(-ratio)[:3]
        names = ", ".join(f"{shooting.windows.joint_names[k]} {ratio[k]:.1f}x" for k in worst)
        yield (
            f"the residual is structured: more is left over than noise ({names}; alike for "
            f"{1e3 * np.median(misfit.memory_s):.0f} ms): the model lacks something. A richer set of parameters or a "
            "learned actuator model would explain more"
        )
    apart = np.flatnonzero(pulled > 1.0)
    if len(apart):
        names = ", ".join(shooting.parameters[k].label for k in apart[np.argsort(-pulled[apart])][:3])
        yield (
            f"parts of the data disagree on {len(apart)} of {len(pulled)} parameters ({names}"
            f"{', ...' if len(apart) > 3 else ''}): their standard errors are mostly that scatter, and more of "
            "the same data will not shrink them"
        )
    if still:
        yield f"not moved: {', '.join(sorted(still))}; their parameters keep their prior"
    delays = [k for k, entry in enumerate(shooting.parameters) if entry.name == "delay"]
    if any(x[k] - shooting.parameters[k].x_bounds[0] < _NO_DELAY for k in delays):  # answers before their commands
        yield (
            "the delay ended at zero: commands may be written down one row after the states that they caused; look "
            "at how rows pair them (`trueup data check`) and shift target_pos by a row if so"
        )


def _misfit(shooting: Shooting, solution: Solution, found: Posterior) -> Misfit:
    windows, njoint = shooting.windows, shooting.robot.spec.njoint
    left = (solution.residuals * shooting.sigma)[..., :njoint]
    count = np.maximum(windows.compared[..., :njoint].sum(axis=(0, 1)), 1)
    return Misfit(
        noise=windows.sigma[:njoint].tolist(),
        left=np.sqrt((left**2).sum(axis=(0, 1)) / count).tolist(),
        memory_s=found.correlation_time_s[:njoint].tolist(),
    )
