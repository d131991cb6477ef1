"""Passport: everything that must agree between training and robot, as one JSON file (spec.json).

Observations and actions are in the PolicySpec; the other fields are facts that a robot's user must be able to check.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec
import numpy as np

from trueup._version import __version__
from trueup.core.documents import Strict
from trueup.policy.foreign.layout import is_finite
from trueup.policy.mlp import PolicySpec
from trueup.policy.normalizer import Float32
from trueup.policy.observation import ObservationSpec
from trueup.policy.signal_facts import FACTS, UNKNOWN

SCHEMA = 1
Numbers = tuple[float, ...]


class RobotIdentity(Strict, frozen=True, kw_only=True):
    """Which robot: `model_sha256` is of the bytes of its model file (MJCF or URDF), then of its options as text."""

    name: str
    model_sha256: str
    options: dict[str, float] = msgspec.field(default_factory=dict)


class TermFacts(Strict, frozen=True, kw_only=True):
    """One term of the observation, before its scale: unit, coordinate frame, and columns of one frame."""

    signal: str
    unit: str
    frame: str
    width: int


class NormalizerFacts(Strict, frozen=True, kw_only=True):
    """Statistics that policy.onnx holds and applies itself: y = clip((x - mean) / (std + 0.01), -10, 10)."""

    mean: Numbers
    std: Numbers


class GoalFacts(Strict, frozen=True, kw_only=True):
    """Columns of the command, their units, the range they were trained in, and the fastest change a second (): any.

    source  where the ranges come from: the task, the policy's own layout, or measured
    """

    columns: tuple[str, ...]
    units: tuple[str, ...]
    low: Numbers
    high: Numbers
    rate: Numbers = ()
    source: Literal["task", "layout", "measured"] = "task"

    def __post_init__(self) -> None:
        if {len(self.units), len(self.low), len(self.high)} != {len(self.columns)}:
            raise ValueError("goal: columns, units, low and high differ in number")
        if self.rate and len(self.rate) != len(self.columns):
            raise ValueError("goal: rate needs one number for each column")


class TrainingRange(Strict, frozen=True, kw_only=True):
    """Range of every observation column under the task's randomisation; None with a reason if it never ran.

    low, high   0.1 % and 99.9 % quantiles
    rows        observations that were measured
    """

    low: Numbers
    high: Numbers
    minimum: Numbers
    maximum: Numbers
    mean: Numbers
    std: Numbers
    rows: int
    seconds: float
    randomized: bool = True

    def __post_init__(self) -> None:
        columns = (self.low, self.high, self.minimum, self.maximum, self.mean, self.std)
        if len({len(part) for part in columns}) != 1:
            raise ValueError("ranges: its columns differ in number")


class PolicyOrigin(Strict, frozen=True, kw_only=True):
    """Origin of a policy.

    format            "trueup", or whose layout it was imported from
    run, steps        name of the run's folder, and control steps it was trained for
    files             sha256 of every file it was made from: checkpoint, calibration, logs, network, layout
    """

    format: str
    run: str = ""
    steps: int = 0
    files: dict[str, str] = msgspec.field(default_factory=dict)
    notes: tuple[str, ...] = ()


class Passport(Strict, frozen=True, kw_only=True):
    """Content of spec.json; lists per joint are in the policy's order, `policy.action.joint_names`.

    signs          direction of each joint of the policy against the robot's own; -1 is already in scales and poses
    torque_limit   N m, of each joint, in training
    terms          units and frames of `policy.observation.terms`
    ranges         training range of every column of the observation; None: `ranges_missing` says why
    """

    schema: int = SCHEMA
    trueup: str = __version__
    policy: PolicySpec
    robot: RobotIdentity
    signs: tuple[int, ...]
    torque_limit: Numbers
    physics_hz: float
    terms: tuple[TermFacts, ...]
    goal: GoalFacts
    normalizer: NormalizerFacts | None = None
    ranges: TrainingRange | None = None
    ranges_missing: str = ""
    origin: PolicyOrigin

    def __post_init__(self) -> None:
        if self.schema != SCHEMA:
            raise ValueError(f"schema {self.schema} is not known to this version (it reads schema {SCHEMA})")
        spec, njoint, nactor = self.policy, len(self.joint_names), self.policy.observation.nactor
        for name, values, count in (
            ("signs", self.signs, njoint),
            ("torque_limit", self.torque_limit, njoint),
            ("goal.columns", self.goal.columns, spec.observation.ncommand),
            ("ranges", self.ranges.low if self.ranges else None, nactor),
            ("normalizer.mean", self.normalizer.mean if self.normalizer else None, nactor),
            ("normalizer.std", self.normalizer.std if self.normalizer else None, nactor),
        ):
            if values is not None and len(values) != count:
                raise ValueError(f"{name}: {len(values)} numbers for {count}")
        if spec.observation.joint_names != spec.action.joint_names:
            raise ValueError("observation and action list different joints")
        if spec.robot != self.robot.name:
            raise ValueError(f"policy.robot is {spec.robot!r}, robot.name is {self.robot.name!r}")
        odd = _first_difference(self.terms, term_facts(spec.observation, {t.signal: t.unit for t in self.terms}))
        if odd:
            raise ValueError(f"terms: {odd}")
        if not is_finite(msgspec.to_builtins(self)):
            raise ValueError("a passport needs finite numbers")
        if any(value <= 0.0 for value in (self.physics_hz, *self.torque_limit)):
            raise ValueError("physics_hz and torque_limit must be positive")
        ratio = self.physics_hz / spec.control_hz
        if ratio < 1 - 1e-6 or abs(ratio - round(ratio)) > 1e-6:
            raise ValueError(
                f"physics_hz {self.physics_hz:g} must be a whole multiple of control_hz {spec.control_hz:g}"
            )
        self._check_signs()

    def _check_signs(self) -> None:
        """Check that the signs of a joint's observation and action scales agree."""
        names, action = self.joint_names, self.policy.action
        moved = [self.signs[names.index(name)] for name in action.controlled_joints]
        scales: dict[str, tuple[list[int], Numbers]] = {"action": (moved, action.scale)}
        for term in self.policy.observation.terms:
            if term.signal in ("joint_pos", "joint_vel"):
                each = term.scale if isinstance(term.scale, tuple) else (term.scale,) * len(names)
                scales[term.signal] = (list(self.signs), each)
        for what, (signs, values) in scales.items():
            for sign, value in zip(signs, values, strict=True):
                if sign not in (-1, 1) or sign * value < 0:
                    raise ValueError(f"signs: {sign} does not fit the scale {value:g} of {what}")

    @property
    def joint_names(self) -> tuple[str, ...]:
        return self.policy.action.joint_names

    @property
    def bounds(self) -> tuple[Float32, Float32] | None:
        """Least and largest value of every column in training: as measured, and of the command its whole range."""
        if self.ranges is None:
            return None
        seen, low, high = self.policy.observation, np.array(self.ranges.minimum), np.array(self.ranges.maximum)
        place = seen.columns % seen.nframe
        for part, term in zip(seen.slices, seen.terms, strict=True):
            if term.signal == "command":
                ends = np.sort(np.array([self.goal.low, self.goal.high]) * np.array(term.scale), axis=0)
                inside = (place >= part.start) & (place < part.stop)
                low[inside] = np.minimum(low[inside], ends[0][place[inside] - part.start])
                high[inside] = np.maximum(high[inside], ends[1][place[inside] - part.start])
        return low.astype(np.float32), high.astype(np.float32)


def term_facts(observation: ObservationSpec, units: Mapping[str, str] | None = None) -> tuple[TermFacts, ...]:
    """Units and frames of an observation, as the builder computes it; `units` of signals that come with the reading."""
    found = []
    for term in observation.terms:
        unit, frame = FACTS.get(term.signal, UNKNOWN)
        unit = unit if term.signal in FACTS else (units or {}).get(term.signal, unit)
        found.append(TermFacts(signal=term.signal, unit=unit, frame=frame, width=observation.width(term.signal)))
    return tuple(found)


def column_names(observation: ObservationSpec) -> tuple[str, ...]:
    """A name for each column of an observation: "joint_vel FL_hip_joint", of older frames "... -2"."""
    single = []
    for term in observation.terms:
        width = observation.width(term.signal)
        joints = observation.joint_names * (width // max(len(observation.joint_names), 1))
        per_joint = term.signal in ("joint_pos", "joint_vel", "joint_angle")
        labels = joints if per_joint else tuple("xyz"[:3]) if width == 3 else tuple(map(str, range(width)))
        single += [f"{term.signal} {label}" for label in labels]
    ages = [observation.history - 1 - int(place) // observation.nframe for place in observation.columns]
    places = [int(place) % observation.nframe for place in observation.columns]
    return tuple(single[place] + (f" -{age}" if age else "") for place, age in zip(places, ages, strict=True))


def _first_difference(found: tuple[TermFacts, ...], expected: tuple[TermFacts, ...]) -> str:
    if len(found) != len(expected):
        return f"{len(found)} terms for {len(expected)} of the policy"
    for found_part, other in zip(found, expected, strict=True):
        for name in found_part.__struct_fields__:
            if getattr(found_part, name) != getattr(other, name):
                actual, known = getattr(found_part, name), getattr(other, name)
                return f"{name} of {other.signal} is {actual!r}, but what a robot gives is {known!r}"
    return ""
