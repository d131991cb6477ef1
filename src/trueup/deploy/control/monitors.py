"""Monitors of a running policy: observations and actions as in training, and the loop on schedule.

The motor guard checks the robot (limits, sensors, tilt, silence); this checks the policy. A monitor warns at once and
trips when its condition has held for longer than its patience, counted by a leaky clock: it rises while the condition
holds and falls while it does not, so that an intermittent condition trips too.

    range      columns of the observation outside what training saw (least to largest, widened by `range_margin` of the
               span), term by term; the command is the operator's and is limited elsewhere
    distance   RMS over columns of (o - mean) / (std + 0.01): 1 in ordinary running, whatever the policy
    action     outputs beyond `action_factor` times the largest of training: at once
    deadline   successive steps that began or ended after the next step was due
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trueup.core.errors import TrueupError
from trueup.deploy.control.controller import ControlStep, action_columns
from trueup.policy.bundle.passport import Passport, column_names

NAMES = ("range", "distance", "action", "deadline")  # bits of `Watched.flags`, in this order
_STD_FLOOR = 1e-2


@dataclass(frozen=True, kw_only=True)
class MonitorCfg:
    """Thresholds of the monitors.

    range_margin    share of the training span by which it is widened
    range_s         longest time that a term may be outside
    distance        RMS z-score allowed; `distance_s` for how long it may be above
    action_factor   times the largest action of training
    misses          missed deadlines in a row
    trip            False: warn only (a hanging robot sees what training never saw)
    """

    range_margin: float = 0.1
    range_s: float = 0.5
    distance: float = 3.0
    distance_s: float = 0.3
    action_factor: float = 3.0
    misses: int = 5
    trip: bool = True

    def __post_init__(self) -> None:
        numbers = (self.range_s, self.distance, self.distance_s, self.action_factor)
        if not all(0.0 < number < np.inf for number in numbers) or self.misses < 1 or self.range_margin < 0.0:
            raise TrueupError("limits of the monitors must be positive and finite")


class Watched(NamedTuple):
    """Result of the monitors for one control step.

    flags     bit k set: the condition of monitor NAMES[k] holds in this step
    distance  RMS z-score; NaN where training's statistics are not known
    outside   terms that have a column outside the training range, each with its worst column and value
    reason    why to stop, "" to go on
    """

    flags: int
    distance: float
    outside: tuple[str, ...]
    reason: str


class Monitors:
    """Watches the control steps of one run."""

    def __init__(self, passport: Passport, cfg: MonitorCfg | None = None) -> None:
        self.cfg, self._dt = cfg or MonitorCfg(), 1.0 / passport.policy.control_hz
        seen = passport.policy.observation
        place = seen.columns % seen.nframe
        self._names = column_names(seen)
        self._terms = {
            term.signal: np.flatnonzero((place >= part.start) & (place < part.stop))
            for part, term in zip(seen.slices, seen.terms, strict=True)
            if term.signal != "command"
        }
        kept = [columns for columns in self._terms.values() if len(columns)]
        self._columns = np.concatenate(kept) if kept else np.zeros(0, np.intp)
        self._bounds = _bounds(passport, self.cfg.range_margin)
        self._mean, self._std = _statistics(passport)
        self._most_action = _most_action(passport, self.cfg.action_factor)
        self._wrong_s: dict[str, float] = {}
        self._misses = 0

    def watch(self, step: ControlStep, *, missed: bool = False) -> Watched:
        """Check a control step; `missed`: it or the one before did not keep the schedule."""
        outside, reason = self._range(step)
        distance, far = self._distance(step)
        odd = self._action(step)
        late = self._deadline(missed)
        wrong = (bool(outside), distance > self.cfg.distance, bool(odd), missed)
        flags = sum(1 << k for k, is_wrong in enumerate(wrong) if is_wrong)
        first = odd or late or reason or far
        return Watched(flags, distance, outside, first if self.cfg.trip or first in (odd, late) else "")

    def _range(self, step: ControlStep) -> tuple[tuple[str, ...], str]:
        if self._bounds is None:
            return (), ""
        low, high = self._bounds
        beyond = np.maximum(low - step.observation, step.observation - high)
        found, reason = [], ""
        for name, columns in self._terms.items():
            is_outside = bool((beyond[columns] > 0.0).any())
            if self._persists(name, is_outside, self.cfg.range_s):
                reason = reason or f"{self._worst(beyond, columns, step)}, for {self.cfg.range_s:g} s"
            if is_outside:
                found.append(self._worst(beyond, columns, step))
        return tuple(found), reason

    def _worst(self, beyond: NDArray[np.floating], columns: NDArray[np.intp], step: ControlStep) -> str:
        k = int(columns[np.argmax(beyond[columns])])
        assert self._bounds is not None
        low, high = self._bounds
        return f"{self._names[k]} is {step.observation[k]:.3g}, in training it was {low[k]:.3g} to {high[k]:.3g}"

    def _distance(self, step: ControlStep) -> tuple[float, str]:
        if not len(self._mean):
            return float("nan"), ""
        z = (step.observation - self._mean)[self._columns] / self._std[self._columns]
        distance = float(np.sqrt(np.mean(z * z))) if len(z) else 0.0
        if not self._persists("distance", distance > self.cfg.distance, self.cfg.distance_s):
            return distance, ""
        name = self._names[int(self._columns[np.argmax(np.abs(z))])]
        return distance, (
            f"what the policy sees is {distance:.1f} standard deviations from its training (allowed "
            f"{self.cfg.distance:g} for {self.cfg.distance_s:g} s), farthest {name}"
        )

    def _action(self, step: ControlStep) -> str:
        if self._most_action is None or (np.abs(step.raw) <= self._most_action).all():
            return ""
        k = int(np.argmax(np.abs(step.raw) / self._most_action))
        return f"output {k} of the policy is {step.raw[k]:.3g}, more than {self._most_action[k]:.3g}"

    def _deadline(self, missed: bool) -> str:
        self._misses = self._misses + 1 if missed else 0
        if self._misses < self.cfg.misses:
            return ""
        return f"{self._misses} control steps in a row missed their deadline of {1e3 * self._dt:g} ms"

    def _persists(self, name: str, is_wrong: bool, patience_s: float) -> bool:
        """Leaky clock: whether the condition of `name` has held longer than its patience."""
        self._wrong_s[name] = max(0.0, self._wrong_s.get(name, 0.0) + (self._dt if is_wrong else -self._dt))
        return is_wrong and self._wrong_s[name] >= patience_s - 1e-9


def _bounds(passport: Passport, margin: float) -> tuple[NDArray[np.floating], NDArray[np.floating]] | None:
    """Least and largest value of every column, widened."""
    bounds = passport.bounds
    if bounds is None:
        return None
    room = margin * (bounds[1] - bounds[0]) + 1e-6
    return bounds[0] - room, bounds[1] + room


def _statistics(passport: Passport) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
    """Mean and standard deviation of every column; none: two empty arrays."""
    if passport.ranges is None:
        return np.zeros(0), np.zeros(0)
    return np.array(passport.ranges.mean), np.array(passport.ranges.std) + _STD_FLOOR


def _most_action(passport: Passport, factor: float) -> NDArray[np.floating] | None:
    """Largest |action| allowed; none where the largest of training is not known."""
    columns = action_columns(passport)
    if passport.ranges is None or columns is None:
        return None
    scale = next(term.scale for term in passport.policy.observation.terms if term.signal == "action")
    ends = np.abs([passport.ranges.minimum, passport.ranges.maximum])[:, columns].max(axis=0)
    most: NDArray[np.floating] = factor * np.maximum(ends / np.maximum(np.abs(np.array(scale)), 1e-9), 1.0)
    return most
