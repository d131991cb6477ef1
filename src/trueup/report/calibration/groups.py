"""Parameters and errors of like joints taken together: the four hips of a quadruped are one row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from trueup.calibrate.parameters import joint_kind
from trueup.report.calibration.words import STATUS, word_shown
from trueup.report.page import Status
from trueup.world.fitted.calibration import Calibration, Estimate


@dataclass(frozen=True, kw_only=True)
class Group:
    """Estimates of one parameter of like joints.

    name      parameter and kind of joint, with the unit
    interval  from the lowest to the highest end of all their 95 % intervals
    verdict   the word of one, or how many have which
    excluded  how many of them have a nominal value that the data exclude
    """

    name: str
    estimates: tuple[Estimate, ...]

    @property
    def median(self) -> float:
        return float(np.median([one.value for one in self.estimates]))

    @property
    def interval(self) -> tuple[float, float]:
        return min(one.interval[0] for one in self.estimates), max(one.interval[1] for one in self.estimates)

    @property
    def nominal(self) -> float | None:
        known = [one.nominal for one in self.estimates if one.nominal is not None]
        return float(np.median(known)) if known else None

    @property
    def verdict(self) -> str:
        words = [one.verdict for one in self.estimates]
        if len(words) == 1:
            return word_shown(self.estimates[0])
        if len(set(words)) == 1:
            return words[0]
        return " ".join(f"{words.count(word)} {word}" for word in STATUS if word in words)

    @property
    def worst(self) -> str:
        """The least of their verdicts."""
        return max((one.verdict for one in self.estimates), key=list(STATUS).index)

    @property
    def status(self) -> Status:
        return STATUS[self.worst]

    @property
    def excluded(self) -> str:
        count = sum(one.nominal_excluded for one in self.estimates)
        return f"{count}/{len(self.estimates)}" if count else ""


def grouped(result: Calibration) -> list[Group]:
    """All estimates, like joints together, in the order in which they were fitted."""
    found: dict[tuple[str, ...], list[Estimate]] = {}
    for one in result.estimates:
        found.setdefault(_key(one), []).append(one)
    return [Group(name=_named(key), estimates=tuple(members)) for key, members in found.items()]


def kind_errors(result: Calibration) -> list[tuple[str, float, float]]:
    """(kind of joint, nominal, calibrated) open-loop errors in mrad, means over like joints; held out if any."""
    before = result.holdout_nominal or result.fit_nominal
    after = result.holdout_calibrated or result.fit_calibrated
    kinds: dict[str, list[int]] = {}
    for k, name in enumerate(result.joint_names):
        kinds.setdefault(joint_kind(name), []).append(k)
    return [
        (_plain(kind), 1e3 * _mean(before.open_loop, at), 1e3 * _mean(after.open_loop, at))
        for kind, at in kinds.items()
    ]


def _mean(values: Sequence[float], at: Sequence[int]) -> float:
    return float(np.mean([values[k] for k in at]))


def _key(one: Estimate) -> tuple[str, ...]:
    entry = one.parameter
    shown = entry.label.split(" ")[0]  # with its axis
    return (shown, entry.unit, *dict.fromkeys(joint_kind(name) for name in entry.of))


def _named(key: tuple[str, ...]) -> str:
    name, unit, *kinds = key
    where = f" {_plain(kinds[0])}" if len(kinds) == 1 else ""
    return f"{name}{where}, {unit}" if unit else f"{name}{where}"


def _plain(kind: str) -> str:
    """*_hip_joint -> hip."""
    return kind.removesuffix("_joint").replace("*", "").strip("_.-") or kind
