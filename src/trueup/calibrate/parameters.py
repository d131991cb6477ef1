"""Parameters of a fit as data: what each is, its bounds and prior, and how it enters the simulator.

A fit works in x, the distance from the prior in prior widths: t = log(value + offset) or value, x = (t - t_prior) /
width. There the prior is a unit normal, a step of one is a plausible change for every parameter, and zero friction can
be reached although friction is scaled by its logarithm.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from trueup.core.errors import TrueupError, did_you_mean
from trueup.sim.batch import BatchSim
from trueup.sim.params import PARAMETERS

FloatArray = NDArray[np.float64]
Scale = Literal["log", "linear"]
Mode = Literal["set", "times"]
Tie = Literal["none", "side", "all"]


class FitParameter(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One number that a fit may move.

    name    as in `sim.params`
    of      joints or bodies that share it; () for the whole robot
    axis    column of a vector parameter (centre of mass: x, y, z)
    mode    "set": the value itself; "times": a factor on the nominal or logged value
    prior, width   in scaled units t (see the module)
    """

    name: str
    of: tuple[str, ...]
    unit: str
    low: float
    high: float
    scale: Scale
    offset: float
    prior: float
    width: float
    mode: Mode = "set"
    axis: int | None = None
    label: str = ""

    def to_x(self, value: float) -> float:
        t = math.log(value + self.offset) if self.scale == "log" else value
        return (t - self.prior) / self.width

    def to_value(self, x: FloatArray) -> FloatArray:
        t = self.prior + self.width * np.asarray(x, np.float64)
        value = np.exp(t) - self.offset if self.scale == "log" else t
        return np.clip(value, self.low, self.high)

    def slope(self, value: float) -> float:
        """d value / d x: turns a standard error in x into one in the parameter's unit."""
        return self.width * (value + self.offset if self.scale == "log" else 1.0)

    @property
    def x_bounds(self) -> tuple[float, float]:
        return self.to_x(self.low), self.to_x(self.high)


@dataclass(frozen=True, kw_only=True)
class Rule:
    """How a parameter of a name is scaled: bounds, offset of the logarithm, prior mean (None: nominal) and width."""

    low: float
    high: float
    scale: Scale
    width: float
    offset: float = 0.0
    mean: float | None = None
    mode: Mode = "set"
    shared: bool = False  # one value for all joints


# Bounds of PACE (arXiv 2509.06342) where it has them; widths are what modellers' guesses are worth.
RULES: dict[str, Rule] = {
    "armature": Rule(low=1e-4, high=0.2, scale="log", width=1.0),
    "damping": Rule(low=0.0, high=7.0, scale="log", width=1.2, offset=0.02),
    "friction": Rule(low=0.0, high=2.0, scale="log", width=1.2, offset=0.02),
    "encoder_bias": Rule(low=-0.1, high=0.1, scale="linear", width=0.05, mean=0.0),
    "delay": Rule(low=0.0, high=0.04, scale="linear", width=0.01, mean=0.01, shared=True),
    "stiffness": Rule(low=0.0, high=50.0, scale="log", width=1.2, offset=0.1),
    "kp": Rule(low=0.3, high=3.0, scale="log", width=0.3, mean=1.0, mode="times"),
    "kd": Rule(low=0.1, high=10.0, scale="log", width=0.5, mean=1.0, mode="times"),
    "torque_limit": Rule(low=0.2, high=2.0, scale="log", width=0.3, mean=1.0, mode="times"),
    "stall_torque": Rule(low=0.2, high=4.0, scale="log", width=0.4, mean=1.0, mode="times"),
    "no_load_speed": Rule(low=0.2, high=4.0, scale="log", width=0.4, mean=1.0, mode="times"),
    "mass_scale": Rule(low=0.5, high=2.0, scale="log", width=0.15, mean=1.0),
    "com_offset": Rule(low=-0.06, high=0.06, scale="linear", width=0.02, mean=0.0),
    "contact_friction": Rule(low=0.05, high=3.0, scale="log", width=0.5),
    "contact_timeconst": Rule(low=0.002, high=0.2, scale="log", width=0.7),
    "contact_dampratio": Rule(low=0.05, high=3.0, scale="log", width=0.7),
}
PACE = ("armature", "damping", "friction", "encoder_bias", "delay")
FULL = (*PACE, "kp", "kd", "torque_limit", "no_load_speed", "mass_scale", "com_offset")
CONTACT = ("contact_friction", "contact_timeconst", "contact_dampratio")
SETS: dict[str, tuple[str, ...]] = {"pace": PACE, "full": FULL, "contact": CONTACT}
NEEDS_MOTOR = frozenset({"stall_torque", "no_load_speed"})
_AXES = "xyz"
_NEVER_TIED = frozenset({"encoder_bias", "com_offset"})  # a zero set by hand; an axis that mirrors


def parameter_names(wanted: str) -> tuple[str, ...]:
    """Read a set's name or a list such as `armature,delay` or `pace,kp`; sets may stand in the list."""
    names: list[str] = []
    for item in (part.strip() for part in wanted.split(",")):
        if item not in SETS and item not in RULES:
            raise TrueupError(f"nothing to fit is called {item!r}{did_you_mean(item, [*SETS, *RULES])}")
        names += SETS.get(item, (item,))
    return tuple(dict.fromkeys(names))


def make_parameters(
    sim: BatchSim, names: Sequence[str], *, tie: Tie = "none", bodies: Sequence[str] = ()
) -> tuple[FitParameter, ...]:
    """Make the parameters of a fit from the simulation's nominal values; masses only of the bodies named."""
    out: list[FitParameter] = []
    for name in names:
        out += _of_name(sim, name, tie, bodies)
    if not out:
        raise TrueupError(
            "nothing to fit: mass_scale and com_offset need the bodies named (--bodies "
            f"{' '.join(sim.params.body_names[:2])})"
        )
    return tuple(out)


def apply_values(
    sim: BatchSim, parameters: Sequence[FitParameter], values: FloatArray, base: Mapping[str, FloatArray]
) -> None:
    """Write (nsim, nparameter) values; `base` has the values that stand without the fit, by name.

    Every name is written whole, so that what an earlier call wrote does not remain.
    """
    for name in dict.fromkeys(entry.name for entry in parameters):
        new = base[name].copy()
        for k, entry in enumerate(parameters):
            if entry.name == name:
                _place(sim, entry, new, values[:, k])
        sim.params.set(name, new)


def _place(sim: BatchSim, entry: FitParameter, into: FloatArray, values: FloatArray) -> None:
    if PARAMETERS[entry.name].scope == "robot":
        into[:] = into * values if entry.mode == "times" else values
        return
    joint = PARAMETERS[entry.name].scope == "joint"
    known = sim.robot.spec.joint_names if joint else sim.params.body_names
    columns = [known.index(name) for name in entry.of]
    at = into[:, columns] if entry.axis is None else into[:, columns, entry.axis]
    new = at * values[:, None] if entry.mode == "times" else np.broadcast_to(values[:, None], at.shape)
    if entry.axis is None:
        into[:, columns] = new
    else:
        into[:, columns, entry.axis] = new


def _of_name(sim: BatchSim, name: str, tie: Tie, bodies: Sequence[str]) -> list[FitParameter]:
    rule, known = RULES[name], PARAMETERS[name]
    if name in _NEVER_TIED:
        tie = "none"
    if known.scope == "robot":
        return [_make(name, (), rule, float(sim.params.get(name)[0]))]
    nominal = sim.params.get(name)[0]
    if known.scope == "joint":
        joints = sim.robot.spec.joint_names
        groups = [joints] if rule.shared else tied(joints, tie)
        return [
            _make(name, group, rule, float(np.mean([nominal[joints.index(joint)] for joint in group])))
            for group in groups
        ]
    for body in bodies:
        if body not in sim.params.body_names:
            raise TrueupError(f"no body {body!r}{did_you_mean(body, sim.params.body_names)}")
    groups = tied(tuple(bodies), tie)
    if known.shape:
        return [_make(name, group, rule, 0.0, axis) for group in groups for axis in range(3)]
    return [_make(name, group, rule, 1.0) for group in groups]


def _make(
    name: str, of: tuple[str, ...], rule: Rule, nominal: float, axis: int | None = None
) -> FitParameter:
    """One parameter; a wide bound gives way to a nominal value that is wider still, so no start is on a bound."""
    mean = nominal if rule.mean is None else rule.mean
    low, high, scale = rule.low, rule.high, rule.scale
    if rule.mean is None:
        high = max(high, 5.0 * mean)
        mean = max(mean, 5.0 * low, 1e-3)
    shown = f"{name}[{_AXES[axis]}]" if axis is not None else name
    where = "" if not of else f" {of[0]}" if len(of) == 1 else f" of {len(of)}: {of[0]}, ..."
    return FitParameter(
        name=name,
        of=of,
        unit="times nominal" if rule.mode == "times" else PARAMETERS[name].unit,
        low=low,
        high=high,
        scale=scale,
        offset=rule.offset,
        prior=math.log(mean + rule.offset) if scale == "log" else mean,
        width=rule.width,
        mode=rule.mode,
        axis=axis,
        label=shown if rule.shared else shown + where,
    )


def tied(names: tuple[str, ...], tie: Tie) -> list[tuple[str, ...]]:
    """Group names that share one value: left with right by their names (`FL_hip` with `FR_hip`), all, or none."""
    if tie == "none":
        return [(name,) for name in names]
    if tie == "all":
        return [names] if names else []
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(_sideless(name), []).append(name)
    return [tuple(group) for group in groups.values()]


def _sideless(name: str) -> str:
    """The name with its side taken out: FL_hip -> F*_hip, left_knee -> *_knee, arm_r_1 -> arm_*_1."""
    word = re.sub(r"(?<![A-Za-z])(left|right|Left|Right|LEFT|RIGHT)(?![A-Za-z])", "*", name)
    if word != name:
        return word
    return re.sub(r"(?<![A-Za-z])([FRHBfrhb]?)[LRlr](?![A-Za-z])", r"\1*", name, count=1)
