"""A verdict for every parameter: excluded values, confounded parameters, and what to record next.

identified   known to 5 % from both sides, by itself and not only together with a partner
bounded      known from one side: "at most 0.35"
weak         known loosely from both sides, or only together with a partner
not visible  the data exclude almost nothing

Intervals are those of the profile likelihood (`profile`), in prior widths.

Some pairs are identified only together. A swing shows kp / I, not kp: gain and inertia that grow together change only
gravity's effect. Likewise damping and kd (their sum), mass and kp (their ratio). Where both partners are fitted,
neither is identified by itself unless the data separate them by more than the model error; the combination that the
data do show is reported beside them.

Joints of one kind (the calves of four legs) are built alike. When their values differ by more than their intervals
allow, one of them is damaged, or the model puts something into them that is not theirs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri

from trueup.calibrate.fit.residuals import Shooting
from trueup.calibrate.parameters import tied
from trueup.calibrate.rules import NEVER_TIED, SEPARATES, SHOWS
from trueup.calibrate.uncertainty.covariance import Posterior
from trueup.calibrate.uncertainty.profile import SURE
from trueup.core.arrays import FloatArray
from trueup.world.fitted.calibration import Estimate, Ratio, Word
from trueup.world.fitted.fit_parameter import FitParameter
from trueup.world.parameters.params import PARAMETERS

RATIOS, SUMS = (("kp", "armature"), ("kp", "mass_scale")), (("kd", "damping"),)
VISIBLE = 0.6  # standard error over prior width
_CLOSE = 0.05  # half the 95 % interval of an identified parameter over its value (linear scale: over its prior width)
_RATIO_VISIBLE = 0.6  # half the 95 % interval of a ratio over its value
_OPEN = 1.0  # prior widths: an end that is further away bounds nothing
_INFORMS = 1.0  # prior widths from the prior: a bound further out says nothing new
_ON_BOUND = 1e-3  # of the box
_CONFOUNDED = 0.7  # correlation
_SURE_UNLIKE = 0.99
_DIFFER = 0.3  # of the value (of the prior width, on a linear scale): less is not worth a warning


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """Evidence on one parameter, in prior widths.

    ends        95 % interval; at_bound: which of them are bounds of the box
    excluded    the data exclude the nominal value
    doubted     known together with a partner only, or unlike joints of the same kind
    still       its joints were not moved
    nominal, nominal_cost   value without the fit, in the parameter's unit, and relative rise of the cost there
    """

    x: float
    deviation: float
    ends: tuple[float, float]
    at_bound: tuple[bool, bool]
    excluded: bool
    doubted: bool
    still: bool
    nominal: float | None = None
    nominal_cost: float | None = None


def estimates(
    parameters: Sequence[FitParameter], found: Posterior, evidence: Sequence[Evidence]
) -> tuple[Estimate, ...]:
    """Every parameter with its interval, its verdict and advice on what to record."""
    correlation = found.correlation - np.eye(len(parameters))
    nearest = np.abs(correlation).argmax(axis=1)
    return tuple(
        _estimate(entry, known, parameters[near] if len(parameters) > 1 else None, float(correlation[k, near]))
        for k, (entry, known, near) in enumerate(zip(parameters, evidence, nearest, strict=True))
    )


def _estimate(entry: FitParameter, seen: Evidence, partner: FitParameter | None, together: float) -> Estimate:
    """`partner` is the most correlated parameter, `together` that correlation."""
    value, word = float(entry.to_value(np.array(seen.x))), word_for(entry, seen)
    interval = entry.to_value(np.array([-SURE, SURE] if seen.still else seen.ends))
    if not seen.still:  # a bound is what it is, without the rounding of its logarithm
        interval = np.where(seen.at_bound, (entry.low, entry.high), interval)
    return Estimate(
        parameter=entry,
        value=value,
        standard_error=seen.deviation * entry.slope(value),
        interval=(float(interval[0]), float(interval[1])),
        verdict=word,
        ratio=seen.deviation,
        partner="" if partner is None else partner.label,
        correlation=together,
        on_bound=_on_bound(entry, seen.x),
        advice="" if word == "identified" else _advice(entry, seen, partner if abs(together) >= _CONFOUNDED else None),
        nominal=seen.nominal,
        nominal_excluded=seen.excluded and not seen.still,
        nominal_cost=seen.nominal_cost,
    )


def word_for(entry: FitParameter, seen: Evidence) -> Word:
    """The verdict by itself."""
    if seen.still:
        return "not visible"
    low, high = seen.ends
    # an end far away is still a bound if it lies on this side of the prior: friction from nothing to a third of nominal
    open_low = seen.at_bound[0] or (seen.x - low >= _OPEN and low <= 0.0)
    open_high = seen.at_bound[1] or (high - seen.x >= _OPEN and high >= 0.0)
    if _unnatural_bound(entry, seen.x):
        return "weak" if seen.deviation < VISIBLE or seen.excluded else "not visible"
    if open_low and open_high:
        return "weak" if seen.excluded else "not visible"
    if open_low or open_high:
        informs = high < _INFORMS if open_low else low > -_INFORMS
        return "bounded" if informs or seen.excluded else "weak" if seen.deviation < VISIBLE else "not visible"
    return "identified" if is_close(entry, seen.deviation) and not seen.doubted else "weak"


def is_close(entry: FitParameter, deviation: float) -> bool:
    """Whether a standard error in prior widths is that of an identified parameter."""
    return deviation <= _CLOSE / SURE / (entry.width if entry.scale == "log" else 1.0)


def _on_bound(entry: FitParameter, x: float) -> bool:
    low, high = entry.x_bounds
    return min(x - low, high - x) < _ON_BOUND * (high - low)


def _unnatural_bound(entry: FitParameter, x: float) -> bool:
    """Whether a parameter ended on a bound of the search; zero friction or inertia is a result, not a fault."""
    low, high = entry.x_bounds
    none = entry.low == 0.0 or entry.name == "armature"  # on a logarithmic scale its bound stands for zero
    return _on_bound(entry, x) and not (none and x - low < high - x)


def _advice(entry: FitParameter, seen: Evidence, partner: FitParameter | None) -> str:
    shows = SHOWS.get(entry.name, "a motion that depends on it")
    if seen.still:
        return f"the joint was not moved; record {shows}"
    if _unnatural_bound(entry, seen.x):
        return "ended on its bound: something that the model lacks is put here; try a richer set of parameters"
    if partner is not None:
        pair = SEPARATES.get(frozenset({entry.name, partner.name}))
        return f"cannot be told from {partner.label}; record {pair or shows}"
    return f"record {shows}"


def hide_still(
    parameters: Sequence[FitParameter], found: Posterior, still: frozenset[str]
) -> tuple[Posterior, NDArray[np.bool_]]:
    """Reset parameters of joints that did not move to their prior; returns which.

    A joint at rest sticks: friction, encoder bias and gravity can then replace each other, and a linearisation does not
    show it.
    """
    hidden = np.array(
        [bool(parameter.of) and all(joint in still for joint in parameter.of) for parameter in parameters]
    )
    covariance = found.covariance.copy()
    covariance[hidden] = 0.0
    covariance[:, hidden] = 0.0
    covariance[hidden, hidden] = 1.0
    return replace(found, covariance=covariance), hidden


class ParameterPair(NamedTuple):
    """Two parameters that are confounded, by number."""

    first: int
    second: int
    is_sum: bool


def pairs(parameters: Sequence[FitParameter], correlation: FloatArray) -> list[ParameterPair]:
    """Pairs of the known kinds that were fitted together; a body's mass goes with the most correlated gain."""
    out = []
    for names in (*RATIOS, *SUMS):
        first, second = ([k for k, entry in enumerate(parameters) if entry.name == name] for name in names)
        for j in second:
            near = [i for i in first if set(parameters[i].of) & set(parameters[j].of)]
            if names[1] == "mass_scale" and first:
                near = [first[int(np.abs(correlation[first, j]).argmax())]]
            out += [ParameterPair(i, j, names in SUMS) for i in near]
    return out


def inseparable(
    found: list[ParameterPair], correlation: FloatArray, structured: NDArray[np.bool_], close: NDArray[np.bool_]
) -> set[int]:
    """Members of pairs that the data do not separate, or separate by less than the model error.

    Correlated partners that are both close (`is_close`) are told apart: their standard errors have the correlation in.
    """
    out: set[int] = set()
    for first, second, _ in found:
        confounded = abs(correlation[first, second]) >= _CONFOUNDED and not (close[first] and close[second])
        if confounded or structured[first] or structured[second]:
            out |= {first, second}
    return out


def ratio(shooting: Shooting, x: FloatArray, found: Posterior, pair: ParameterPair) -> Ratio:
    """kp / armature, kp / mass (gains in N m/rad) or kd + damping, its standard error from the joint covariance."""
    first, second = (shooting.parameters[k] for k in pair[:2])
    gain = shooting.gain("kd" if pair.is_sum else "kp", first.of or shooting.robot.spec.joint_names)
    values = [float(entry.to_value(x[k])) for entry, k in zip((first, second), pair[:2], strict=True)]
    slopes = np.array([first.slope(values[0]) * gain, second.slope(values[1])])
    value = values[0] * gain + values[1] if pair.is_sum else values[0] * gain / values[1]
    if not pair.is_sum:
        slopes *= np.array([1.0 / values[1], -value / values[1]])
    block = found.covariance[np.ix_(pair[:2], pair[:2])]
    deviation = float(np.sqrt(max(slopes @ block @ slopes, 0.0)))
    half = SURE * deviation
    share = half / max(abs(value), 1e-12)
    return Ratio(
        label=f"{first.name} {'+' if pair.is_sum else '/'} {second.label}",
        members=(first.label, second.label),
        value=value,
        standard_error=deviation,
        interval=(value - half, value + half),
        unit=second.unit if pair.is_sum else f"N m/rad / ({second.unit})",
        verdict="identified" if share < _CLOSE else "weak" if share < _RATIO_VISIBLE else "not visible",
    )


class Unlike(NamedTuple):
    """Joints of one kind with different values: numbers of their parameters, and a warning."""

    members: tuple[int, ...]
    text: str


def unlike_joints(parameters: Sequence[FitParameter], x: FloatArray, deviation: FloatArray) -> list[Unlike]:
    """Groups of joints of one kind whose values differ by more than chance and by more than a little."""
    out = []
    for name in dict.fromkeys(entry.name for entry in parameters):
        if PARAMETERS[name].scope != "joint" or name in NEVER_TIED:
            continue
        single = {entry.of[0]: k for k, entry in enumerate(parameters) if entry.name == name and len(entry.of) == 1}
        for group in tied(tuple(single), "kind"):
            members = [single[joint] for joint in group]
            if len(members) > 1 and _differ(parameters, x, deviation, members):
                shown = ", ".join(f"{parameters[k].of[0]} {float(parameters[k].to_value(x[k])):.3g}" for k in members)
                text = (
                    f"like joints came out unlike in {name}: {shown} {parameters[members[0]].unit}. Joints of one "
                    "kind are built alike: one is worn, or the model puts something else there. `--tie kind` fits "
                    "one value for all of them"
                )
                out.append(Unlike(tuple(members), text))
    return out


def _differ(parameters: Sequence[FitParameter], x: FloatArray, deviation: FloatArray, members: list[int]) -> bool:
    own, weight = x[members], 1.0 / np.maximum(deviation[members], 1e-6) ** 2
    scatter = float((weight * (own - np.average(own, weights=weight)) ** 2).sum())
    entry = parameters[members[0]]
    large = float(np.ptp(own)) * (entry.width if entry.scale == "log" else 1.0) > np.log1p(_DIFFER)
    return large and scatter > float(chdtri(len(members) - 1, 1.0 - _SURE_UNLIKE))
