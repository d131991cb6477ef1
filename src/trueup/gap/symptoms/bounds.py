"""Bounds of quantities: from the robot's limits, from simulated runs of the same policy, or from spread between runs.

A bound of simulated runs is the largest (or least) of all simulated robots, drawn as in training, that did not fall:
values beyond it did not occur in training. Each bound carries its origin as text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from trueup.gap.symptoms.measures import Measures
from trueup.tasks.task import Task


class Bound(NamedTuple):
    """A number and its origin."""

    value: float
    origin: str


@dataclass(frozen=True, kw_only=True)
class BoundsReference:
    """Runs that bounds are computed from.

    runs    measures of the robot's runs, by name
    drawn   of simulated robots drawn as in training; `same`: of one simulated robot, started anew each time
    task    that the policy was trained for; None where it is not known
    """

    runs: dict[str, Measures]
    drawn: Sequence[Measures] = ()
    same: Sequence[Measures] = ()
    task: Task | None = None
    commands: dict[str, str] = field(default_factory=dict)

    def simulated(self, quantity: str, *, least: bool = False, floor: float | None = None) -> Bound | None:
        """The largest (or least) value of simulated robots; `floor`: never below (of `least`: above) this."""
        values = [one[quantity] for one in self.drawn if np.isfinite(one.get(quantity, np.nan))]
        if len(values) < 5:
            return None
        bound = min(values) if least else max(values)
        if floor is not None:
            bound = min(bound, floor) if least else max(bound, floor)
        word = "least" if least else "most"
        return Bound(float(bound), f"the {word} of {len(values)} simulated robots with this policy")

    def values(self, quantity: str) -> dict[str, float]:
        """Value of each run that has the quantity."""
        return {name: one[quantity] for name, one in self.runs.items() if np.isfinite(one.get(quantity, np.nan))}

    def typical(self, quantity: str) -> float:
        """Median over the runs; NaN where none has it."""
        values = list(self.values(quantity).values())
        return float(np.median(values)) if values else float("nan")


def spread_bound(reference: BoundsReference, quantity: str, runs: int, *, draws: int = 2000) -> Bound | None:
    """Largest spread (max - min, 99 %) of `runs` runs of one robot, by resampling runs of a simulated one."""
    values = np.array([one[quantity] for one in reference.same if np.isfinite(one.get(quantity, np.nan))])
    if len(values) < 8 or runs < 2:
        return None
    picked = values[np.random.default_rng(0).integers(0, len(values), (draws, runs))]
    bound = float(np.quantile(np.ptp(picked, axis=1), 0.99))
    return Bound(bound, f"99 % of the spreads of {runs} runs of one simulated robot")
