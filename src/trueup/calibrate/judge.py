"""From a solution to what is said about it: posterior, model error, verdicts, estimates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trueup.calibrate.descent import Descent, Loss
from trueup.calibrate.fit import Solution
from trueup.calibrate.profile import Direction, check_profile
from trueup.calibrate.residuals import Shooting
from trueup.calibrate.uncertainty import Posterior, model_error, posterior, widened
from trueup.calibrate.verdict import Verdict, hide_still, verdicts
from trueup.calibrate.windows import Windows
from trueup.sim.calibration import Misfit
from trueup.sim.sim_params import Estimate

FloatArray = NDArray[np.float64]
_NORMAL_95 = 1.96
_ASKED_RAD, _ASKED_NOISES = 0.2, 100.0  # a shorter way of the commands, all in all, asks for nothing
_NO_DELAY = 0.01  # prior widths from the bound


@dataclass(frozen=True, kw_only=True)
class Judged:
    """A solution with its uncertainty; x has the prior where a joint was not moved."""

    x: FloatArray
    posterior: Posterior
    estimates: tuple[Estimate, ...]
    misfit: Misfit
    notes: tuple[str, ...]


def judge(shooting: Shooting, solution: Solution, loss: Loss = "linear") -> Judged:
    """Return what the data says about every parameter, and how sure it is."""
    windows = shooting.windows
    still = still_joints(windows)
    found = posterior(solution.jacobian, solution.residuals, windows.judged, windows.rate_hz)
    misfit = _misfit(shooting, solution, found)
    factor = model_error(np.array(misfit.left), np.array(misfit.noise), _acts_on(shooting))
    found, checked = check_profile(
        Descent(shooting, loss), solution.x, solution.residuals, solution.jacobian, widened(found, factor)
    )
    found, hidden = hide_still(shooting.parameters, found, still)
    x = np.where(hidden, 0.0, solution.x)
    words = verdicts(shooting.parameters, x, found, still)
    return Judged(
        x=x,
        posterior=found,
        estimates=_estimates(shooting, x, found, words),
        misfit=misfit,
        notes=(*_notes(shooting, misfit, factor, checked, still), *_pairing_notes(shooting, x)),
    )


def still_joints(windows: Windows) -> frozenset[str]:
    """Joints that hardly moved, or were not asked to and only shook because others moved.

    What counts is the way that commands go in all: the way to the start of a recording and back is no excitation.
    """
    noise = windows.sigma[: len(windows.joint_names)]
    asked = np.abs(np.diff(windows.target, axis=1)).sum(axis=(0, 1))
    if windows.torque is not None:
        asked = np.where(np.ptp(windows.torque, axis=(0, 1)) > 0, np.inf, asked)
    still = windows.still | (asked < np.maximum(_ASKED_RAD, _ASKED_NOISES * noise))
    return frozenset(np.array(windows.joint_names)[still].tolist())


def _notes(
    shooting: Shooting,
    misfit: Misfit,
    factor: FloatArray,
    checked: tuple[Direction, ...],
    still: frozenset[str],
) -> Iterator[str]:
    if misfit.structured:
        ratio = np.array(misfit.left) / np.array(misfit.noise)
        worst = np.argsort(-ratio)[:3]
        names = ", ".join(f"{shooting.windows.joint_names[k]} {ratio[k]:.1f}x" for k in worst)
        yield (
            f"the residual is structured: more is left over than noise ({names}; alike for "
            f"{1e3 * np.median(misfit.memory_s):.0f} ms). Standard errors were widened {np.median(factor):.1f} times "
            "for what the model lacks; a richer set of parameters or a learned actuator model would explain more"
        )
    flat = [direction for direction in checked if direction.factor > 1.0]
    if flat:
        names = ", ".join(shooting.parameters[_leader(direction)].label for direction in flat[:3])
        yield f"the cost rises less than its curvature says along {names}: those intervals were widened"
    if still:
        yield f"not moved: {', '.join(sorted(still))}; their parameters keep their prior"


def _pairing_notes(shooting: Shooting, x: FloatArray) -> Iterator[str]:
    """A delay that wants to be negative: answers come before their commands."""
    for k, entry in enumerate(shooting.parameters):
        if entry.name == "delay" and x[k] - entry.x_bounds[0] < _NO_DELAY:
            yield (
                "the delay ended at zero: commands may be written down one row after the states that they caused; look "
                "at how rows pair them (`trueup data check`) and shift target_pos by a row if so"
            )
            return


def _leader(direction: Direction) -> int:
    """The parameter that a direction is mostly about."""
    return int(direction.members[np.abs(direction.vector).argmax()])


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
