"""A verdict in words for every parameter: what the data exclude, beside whom, and what would show more.

identified   known to 5 % from both sides; and alone, not only together with a partner
bounded      known from one side: "at most 0.35"
weak         known from both sides, loosely, or only together with a partner
not visible  the data exclude next to nothing

Intervals are those of the cost's profile (`profile`), in prior widths.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trueup.calibrate.judge.profile import SURE
from trueup.calibrate.judge.uncertainty import Posterior
from trueup.world.fitted.fit_parameter import FitParameter
from trueup.world.fitted.sim_params import Word

FloatArray = NDArray[np.float64]
VISIBLE = 0.6  # standard error over prior width
CLOSE = (
    0.05  # half a 95 % interval of what is identified: of the value, on a linear scale of the prior's width
)
_OPEN = 1.0  # prior widths: an end that is further away bounds nothing
_SAYS = 1.0  # prior widths from the prior: a bound further out says nothing new
_ON_BOUND = 1e-3  # of the box
ALIKE = 0.7  # correlation from which two parameters stand in each other's way


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """What is known about one parameter, in prior widths.

    ends        95 % interval; at_bound: which of them are bounds of the box
    excluded    the data exclude the nominal value
    doubted     known together with a partner only, or unlike its like
    still       its joints were not moved
    """

    x: float
    deviation: float
    ends: tuple[float, float]
    at_bound: tuple[bool, bool]
    excluded: bool
    doubted: bool
    still: bool


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What can be said about one parameter.

    ratio    standard error over prior width
    partner  number of the most correlated other parameter, -1 for none
    """

    word: Word
    ratio: float
    partner: int
    correlation: float
    on_bound: bool
    advice: str


# what to record so that a parameter shows, alone
_SHOWS = {
    "armature": "fast motion: chirp or multisine up to 10 Hz, strong accelerations",
    "damping": "constant speeds, slow and fast: triangle waves at several rates",
    "friction": "slow reversals and steps with rests: triangle waves below 0.5 Hz",
    "encoder_bias": "slow motion over the whole range, so that gravity's torque tells the true angle",
    "delay": "sharp commands: steps, PRBS or a chirp up to 10 Hz",
    "stiffness": "slow motion over the whole range",
    "kp": "large slow motion against gravity, or a known load: only a known torque shows what the servo gives",
    "kd": "fast motion with a second gain kd",
    "torque_limit": "large steps that reach the torque limit",
    "stall_torque": "large steps that reach the torque limit",
    "no_load_speed": "large fast swings that reach the speed limit",
    "mass_scale": "slow motion over the whole range (gravity) with known gains",
    "com_offset": "holds in many different poses",
    "inertia_shape": "fast turns about several axes: whole-limb swings up to the speed limit",
    "torque_offset": "slow approaches of the same poses from both sides",
    "stop_low": "slow pushes against the lower stop",
    "stop_high": "slow pushes against the upper stop",
    "stop_stiffness": "pushes of several strengths against the stop",
    "stop_damping": "fast arrivals at the stop",
    "tilt": "slow motion of all limbs over their whole range",
    "mount_stiffness": "swings of all limbs together, slow to fast",
    "mount_damping": "swings of all limbs together that stop at once",
    "friction_kcs": "very slow motion with stops: triangle waves below 0.1 Hz",
    "friction_dqs": "a ladder of slow speeds",
    "friction_alpha": "a ladder of slow speeds",
    "friction_kl": "the same motion with a second load (a known extra mass)",
    "friction_kls": "holds and slow starts with a second load",
    "friction_km": "the same motion with a second load (a known extra mass)",
    "friction_ke": "the same motion with a second load (a known extra mass)",
    "friction_kms": "holds and slow starts with a second load",
    "friction_kes": "holds and slow starts with a second load",
    "friction_kmq": "the load driving the motor: lowering a heavy mass",
    "friction_keq": "the motor driving the load: lifting a heavy mass",
    "contact_friction": "sliding contacts: pushes and turns on the ground",
    "contact_timeconst": "landings and drops",
    "contact_dampratio": "landings and drops from several heights",
}
# what separates two, whatever their order
_SEPARATES = {
    frozenset(
        {"armature", "delay"}
    ): "a chirp up to the highest safe frequency: delay grows with f, inertia with f^2",
    frozenset(
        {"armature", "mass_scale"}
    ): "slow motion (gravity shows mass) beside fast motion (shows the sum)",
    frozenset(
        {"damping", "friction"}
    ): "triangle waves at a slow and a fast speed: only damping grows with speed",
    frozenset({"damping", "kd"}): "the same motion with a second kd",
    frozenset({"damping", "delay"}): "steps with rests beside a fast chirp",
    frozenset({"encoder_bias", "friction"}): "slow approaches of the same poses from both sides",
    frozenset({"encoder_bias", "kp"}): "holds in many poses with two gains",
    frozenset(
        {"armature", "kp"}
    ): "large slow motion against gravity, or a known load: swings show only their ratio",
    frozenset({"kp", "mass_scale"}): "the same motion with a known extra mass",
    frozenset({"com_offset", "encoder_bias"}): "holds in many poses over the whole range",
    frozenset({"friction", "kp"}): "steps of several sizes with rests between",
}


def verdicts(
    parameters: Sequence[FitParameter], found: Posterior, evidence: Sequence[Evidence]
) -> tuple[Verdict, ...]:
    """Judge every parameter."""
    correlation = found.correlation - np.eye(len(parameters))
    return tuple(_judge(k, parameters, one, correlation[k]) for k, one in enumerate(evidence))


def word_for(entry: FitParameter, seen: Evidence) -> Word:
    """The word alone."""
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
        says = high < _SAYS if open_low else low > -_SAYS
        return "bounded" if says or seen.excluded else "weak" if seen.deviation < VISIBLE else "not visible"
    return "identified" if is_close(entry, seen.deviation) and not seen.doubted else "weak"


def is_close(entry: FitParameter, deviation: float) -> bool:
    """Whether a standard error in prior widths is that of an identified parameter."""
    return deviation <= close_deviation(entry)


def close_deviation(entry: FitParameter) -> float:
    """The largest standard error, in prior widths, of an identified parameter."""
    return CLOSE / SURE / (entry.width if entry.scale == "log" else 1.0)


def _unnatural_bound(entry: FitParameter, x: float) -> bool:
    """Whether a parameter ended on a bound of the search; no friction or rotor at all is a finding, not a fault."""
    low, high = entry.x_bounds
    near = min(x - low, high - x) < _ON_BOUND * (high - low)
    none = entry.low == 0.0 or entry.name == "armature"  # on a logarithmic scale its bound stands for zero
    return near and not (none and x - low < high - x)


def hide_still(
    parameters: Sequence[FitParameter], found: Posterior, still: frozenset[str]
) -> tuple[Posterior, NDArray[np.bool_]]:
    """Give parameters of joints that were not moved their prior back; returns which they were.

    A joint at rest sticks: friction, encoder bias and gravity then answer for each other, and a linearisation does not
    see it.
    """
    hidden = np.array([is_hidden(entry, still) for entry in parameters])
    covariance = found.covariance.copy()
    covariance[hidden] = 0.0
    covariance[:, hidden] = 0.0
    covariance[hidden, hidden] = 1.0
    return Posterior(covariance=covariance, correlation_time_s=found.correlation_time_s), hidden


def is_hidden(entry: FitParameter, still: frozenset[str]) -> bool:
    """Whether none of a parameter's joints was moved."""
    return bool(entry.of) and all(joint in still for joint in entry.of)


def _judge(k: int, parameters: Sequence[FitParameter], seen: Evidence, correlation: FloatArray) -> Verdict:
    entry = parameters[k]
    low, high = entry.x_bounds
    partner = int(np.argmax(np.abs(correlation))) if len(parameters) > 1 else -1
    alike = float(correlation[partner]) if partner >= 0 else 0.0
    word, advice = word_for(entry, seen), ""
    if word != "identified":
        other = parameters[partner] if abs(alike) >= ALIKE else None
        advice = _advice(entry, other, _unnatural_bound(entry, seen.x), seen.still)
    return Verdict(
        word=word,
        ratio=seen.deviation,
        partner=partner,
        correlation=alike,
        on_bound=min(seen.x - low, high - seen.x) < _ON_BOUND * (high - low),
        advice=advice,
    )


def _advice(entry: FitParameter, other: FitParameter | None, on_bound: bool, hidden: bool) -> str:
    shows = _SHOWS.get(entry.name, "a motion that depends on it")
    if hidden:
        return f"the joint was not moved; record {shows}"
    if on_bound:
        return (
            "ended on its bound: something that the model lacks is put here; try a richer set of parameters"
        )
    if other is not None:
        pair = _SEPARATES.get(frozenset({entry.name, other.name}))
        return f"cannot be told from {other.label}; record {pair or shows}"
    return f"record {shows}"
