"""Parameters that only show together, and like joints that came out unlike.

A swing tells kp / I, not kp: gain and inertia that grow together leave no trace but gravity's. Likewise damping and kd
(their sum), mass and kp (their ratio). Where both partners are fitted neither is identified alone unless the data tell
them apart more surely than the model is right; the combination that the data do see is reported beside them.

Joints of one kind (the calves of four legs) are built alike. When their values differ by more than their intervals
allow, one of them is damaged, or the model puts something into them that is not theirs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri

from trueup.calibrate.fit.residuals import Shooting
from trueup.calibrate.judge.rules import NEVER_TIED
from trueup.calibrate.judge.uncertainty import Posterior
from trueup.calibrate.judge.verdict import ALIKE
from trueup.calibrate.parameters import tied
from trueup.world.fitted.fit_parameter import FitParameter
from trueup.world.parameters.params import PARAMETERS

FloatArray = NDArray[np.float64]
RATIOS, SUMS = (("kp", "armature"), ("kp", "mass_scale")), (("kd", "damping"),)
_SURE = 0.99
_DIFFER = 0.3  # of the value (of the prior width, on a linear scale): less is not worth a warning


class Pair(NamedTuple):
    """Two parameters that stand in each other's way, by number."""

    first: int
    second: int
    is_sum: bool


class Combination(NamedTuple):
    """What the data see of a pair: value, standard error, unit."""

    pair: Pair
    label: str
    value: float
    deviation: float
    unit: str


def pairs(parameters: Sequence[FitParameter], correlation: FloatArray) -> list[Pair]:
    """Pairs of the known kinds that were fitted together; a body's mass goes with the gain most like it."""
    out = []
    for names in (*RATIOS, *SUMS):
        first, second = ([k for k, entry in enumerate(parameters) if entry.name == name] for name in names)
        for j in second:
            near = [i for i in first if set(parameters[i].of) & set(parameters[j].of)]
            if names[1] == "mass_scale" and first:
                near = [first[int(np.abs(correlation[first, j]).argmax())]]
            out += [Pair(i, j, names in SUMS) for i in near]
    return out


def inseparable(found: list[Pair], correlation: FloatArray, structured: NDArray[np.bool_]) -> set[int]:
    """Members of pairs that the data do not tell apart: correlated, or apart by less than the model is wrong."""
    out: set[int] = set()
    for first, second, _ in found:
        if abs(correlation[first, second]) >= ALIKE or structured[first] or structured[second]:
            out |= {first, second}
    return out


def combinations(
    shooting: Shooting, x: FloatArray, found: Posterior, of: Sequence[Pair]
) -> Iterator[Combination]:
    """kp / armature and kp / mass (gains in N m/rad), kd + damping, with standard errors that know correlations."""
    for pair in of:
        first, second = (shooting.parameters[k] for k in pair[:2])
        gain = shooting.gain("kd" if pair.is_sum else "kp", first.of or shooting.robot.spec.joint_names)
        values = [float(entry.to_value(x[k])) for entry, k in zip((first, second), pair[:2], strict=True)]
        slopes = np.array([first.slope(values[0]) * gain, second.slope(values[1])])
        value = values[0] * gain + values[1] if pair.is_sum else values[0] * gain / values[1]
        if not pair.is_sum:
            slopes *= np.array([1.0 / values[1], -value / values[1]])
        block = found.covariance[np.ix_(pair[:2], pair[:2])]
        sign, unit = ("+", second.unit) if pair.is_sum else ("/", f"N m/rad / ({second.unit})")
        yield Combination(
            pair=pair,
            label=f"{first.name} {sign} {second.label}",
            value=value,
            deviation=float(np.sqrt(max(slopes @ block @ slopes, 0.0))),
            unit=unit,
        )


class Unlike(NamedTuple):
    """Like joints with unlike values, by number of their parameters, and in words."""

    members: tuple[int, ...]
    text: str


def unlike_joints(parameters: Sequence[FitParameter], x: FloatArray, deviation: FloatArray) -> list[Unlike]:
    """Groups of like joints whose values differ by more than chance and by more than a little."""
    out = []
    for name in dict.fromkeys(entry.name for entry in parameters):
        if PARAMETERS[name].scope != "joint" or name in NEVER_TIED:
            continue
        single = {
            entry.of[0]: k for k, entry in enumerate(parameters) if entry.name == name and len(entry.of) == 1
        }
        for group in tied(tuple(single), "kind"):
            members = [single[joint] for joint in group]
            if len(members) > 1 and _differ(parameters, x, deviation, members):
                shown = ", ".join(
                    f"{parameters[k].of[0]} {float(parameters[k].to_value(x[k])):.3g}" for k in members
                )
                out.append(
                    Unlike(
                        tuple(members),
                        f"like joints came out unlike in {name}: {shown} {parameters[members[0]].unit}. Joints of one "
                        "kind are built alike: one is worn, or the model puts something else there. `--tie kind` fits "
                        "one value for all of them",
                    )
                )
    return out


def _differ(
    parameters: Sequence[FitParameter], x: FloatArray, deviation: FloatArray, members: list[int]
) -> bool:
    own, weight = x[members], 1.0 / np.maximum(deviation[members], 1e-6) ** 2
    scatter = float((weight * (own - np.average(own, weights=weight)) ** 2).sum())
    entry = parameters[members[0]]
    large = float(np.ptp(own)) * (entry.width if entry.scale == "log" else 1.0) > np.log1p(_DIFFER)
    return large and scatter > float(chdtri(len(members) - 1, 1.0 - _SURE))
