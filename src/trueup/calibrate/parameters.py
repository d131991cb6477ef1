"""The parameters of a fit: made from names, the robot's nominal values and the rules of scaling."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace

import msgspec
import numpy as np

from trueup.calibrate.config import Tie
from trueup.calibrate.data.windows import FitWindows
from trueup.calibrate.rules import NEVER_TIED, RULES, SETS, ScaleRule, friction_parameters
from trueup.core.arrays import FloatArray
from trueup.core.errors import TrueupError, did_you_mean
from trueup.core.own_code import is_own_code
from trueup.models.friction import LAWS
from trueup.robot.load import Robot
from trueup.world.batch import BatchSim, SimCfg
from trueup.world.fitted.fit_parameter import FitParameter
from trueup.world.parameters.params import PARAMETERS

_PUSHED_STOP = 0.1  # rad that a command must go beyond the furthest position for a stop to be suspected
_NEAR_STOP = 0.3  # rad from its nominal stop: a joint that stays further away says nothing about it
_STOP_DEPTH = 0.2  # rad that a soft stop is pressed in


def parameter_names(wanted: str) -> tuple[str, ...]:
    """Parse a set's name or a list such as `armature,delay` or `pace,kp`; the list may contain sets."""
    names: list[str] = []
    for item in (part.strip() for part in wanted.split(",")):
        law = item.removeprefix("friction:")
        if law != item and (is_own_code(law) or law in LAWS):
            names += friction_parameters(law)
        elif item in SETS or item in RULES:
            names += SETS.get(item, (item,))
        else:
            raise TrueupError(f"nothing to fit is called {item!r}{did_you_mean(item, [*SETS, *RULES])}")
    return tuple(dict.fromkeys(names))


def make_parameters(
    sim: BatchSim, names: Sequence[str], *, tie: Tie = "none", bodies: Sequence[str] = ()
) -> tuple[FitParameter, ...]:
    """Make the parameters of a fit from the simulation's nominal values; masses only of the bodies named."""
    if unknown := [body for body in bodies if body not in sim.params.body_names]:
        raise TrueupError(f"no body {unknown[0]!r}{did_you_mean(unknown[0], sim.params.body_names)}")
    out = [parameter for name in names for parameter in _of_name(sim, name, tie, bodies)]
    if not out:
        raise TrueupError(
            "nothing to fit: masses, centres of mass and inertias need their bodies named (--bodies "
            f"{' '.join(sim.params.body_names[:2])})"
        )
    return tuple(out)


def parameters_for(
    robot: Robot, cfg: SimCfg, names: Sequence[str], *, tie: Tie = "none", bodies: Sequence[str] = ()
) -> tuple[FitParameter, ...]:
    """The same, before a simulation is built."""
    return make_parameters(BatchSim(robot, cfg.alone()), names, tie=tie, bodies=bodies)


def _of_name(sim: BatchSim, name: str, tie: Tie, bodies: Sequence[str]) -> list[FitParameter]:
    rule = RULES[name]
    known = PARAMETERS[rule.name or name]
    nominal = sim.params.get(rule.name or name)[0]
    axes: Sequence[int | None] = range(len(known.axes)) if known.axes else (None,)
    if known.scope == "robot":
        return [_make(name, (), rule, nominal, axis) for axis in axes]
    order = sim.robot.spec.joint_names if known.scope == "joint" else sim.params.body_names
    names = order if known.scope == "joint" else tuple(bodies)
    out = []
    for group in [names] if rule.shared else tied(names, "none" if name in NEVER_TIED else tie):
        columns = [order.index(item) for item in group]
        by = float(sim.robot.spec.torque_limit[columns].mean()) if rule.of_torque else 1.0
        scaled = replace(rule, low=rule.low * by, high=rule.high * by, width=rule.width * by)
        out += [_make(name, group, scaled, nominal[columns], axis) for axis in axes]
    return out


def _make(name: str, of: tuple[str, ...], rule: ScaleRule, nominal: FloatArray, axis: int | None) -> FitParameter:
    """One parameter; a wide bound gives way to a nominal value that is wider still, so no start is on a bound."""
    name = rule.name or name
    known = PARAMETERS[name]
    mean = float(np.mean(nominal if axis is None else nominal[..., axis])) if rule.mean is None else rule.mean
    low, high = rule.low, rule.high
    if rule.around:
        low, high = mean + low, mean + high
    elif rule.mean is None:
        high = max(high, 5.0 * mean)
        mean = max(mean, 5.0 * low, 1e-3)
    shown = name if axis is None else f"{name}[{known.axes[axis]}]"
    where = "" if not of or rule.shared else f" {of[0]}" if len(of) == 1 else f" of {len(of)}: {of[0]}, ..."
    return FitParameter(
        name=name,
        of=of,
        unit="times nominal" if rule.mode == "times" else known.unit,
        low=low,
        high=high,
        scale=rule.scale,
        offset=rule.offset,
        prior=math.log(mean + rule.offset) if rule.scale == "log" else mean,
        width=rule.width,
        mode=rule.mode,
        axis=axis,
        label=shown + where,
    )


def reaching(parameters: Sequence[FitParameter], reach: Sequence[tuple[str, float, float]]) -> tuple[FitParameter, ...]:
    """Parameters with bounds widened to at least (name, lowest, highest)."""
    out = list(parameters)
    for name, low, high in reach:
        out = [
            msgspec.structs.replace(parameter, low=min(parameter.low, low), high=max(parameter.high, high))
            if parameter.name == name
            else parameter
            for parameter in out
        ]
    return tuple(out)


def tied(names: tuple[str, ...], tie: Tie) -> list[tuple[str, ...]]:
    """Group names that share one value.

    side  left with right: FL_hip with FR_hip
    kind  the same joint of every leg or arm: FL_hip with FR_hip, RL_hip and RR_hip
    """
    if tie == "none":
        return [(name,) for name in names]
    if tie == "all":
        return [names] if names else []
    groups: dict[str, list[str]] = {}
    for name in names:
        key = _sideless(name) if tie == "side" else joint_kind(name)
        groups.setdefault(key, []).append(name)
    return [tuple(group) for group in groups.values()]


def joint_kind(name: str) -> str:
    """The name without side, front and rear: FL_hip and RR_hip -> *_hip, hind_left_knee -> *_knee."""
    sideless = re.sub(r"[FRHBfrhb]\*", "*", _sideless(name))
    ends = r"(?<![A-Za-z])(front|rear|hind|back|Front|Rear|Hind|Back)(?![A-Za-z])"
    return re.sub(r"\*[_.-]?\*", "*", re.sub(ends, "*", sideless))


def _sideless(name: str) -> str:
    """The name with its side taken out: FL_hip -> F*_hip, left_knee -> *_knee, arm_r_1 -> arm_*_1."""
    word = re.sub(r"(?<![A-Za-z])(left|right|Left|Right|LEFT|RIGHT)(?![A-Za-z])", "*", name)
    if word != name:
        return word
    return re.sub(r"(?<![A-Za-z])([FRHBfrhb]?)[LRlr](?![A-Za-z])", r"\1*", name, count=1)


def near_stops(parameters: Sequence[FitParameter], windows: FitWindows) -> tuple[FitParameter, ...]:
    """Drop stops that no joint came near, and start the others where the joint was stopped.

    A stop that is never touched has no derivative.
    """
    out: list[FitParameter] = []
    held: set[str] = set()
    for entry in parameters:
        if entry.name not in ("stop_low", "stop_high"):
            out.append(entry)
            continue
        sign = 1.0 if entry.name == "stop_high" else -1.0
        met = [_stop_met(windows.joint_names.index(joint), windows, sign, entry.prior) for joint in entry.of]
        if found := [value for value in met if value is not None]:
            mean = float(np.clip(np.mean(found), entry.low + 0.05, entry.high - 0.05))
            out.append(msgspec.structs.replace(entry, prior=mean))
            held |= set(entry.of)
    return tuple(entry for entry in out if not entry.name.startswith("stop_") or held & set(entry.of))


def _stop_met(joint: int, windows: FitWindows, sign: float, nominal: float) -> float | None:
    """Position at which this joint seems to have met its stop; None: it did not come near."""
    furthest = float((sign * windows.measured[..., joint]).max())
    command, limit = float((sign * windows.target[..., joint]).max()), sign * nominal
    if furthest < limit - _NEAR_STOP or command < min(furthest + _PUSHED_STOP, limit):
        return None
    return sign * (furthest - _STOP_DEPTH)
