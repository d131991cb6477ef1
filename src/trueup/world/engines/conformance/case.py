"""A case: a quantity computed in each engine, and its exact value where known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from trueup.world.engines.choose import Engine

G = 9.81  # m/s^2


class Question(NamedTuple):
    """Unit, exact value (None where there is none), and how it is computed in an engine."""

    unit: str
    exact: Callable[[], float | None]
    measure: Callable[[Engine], float]


@dataclass(frozen=True, kw_only=True)
class Case:
    """Results of a case in each engine."""

    name: str
    unit: str
    exact: float | None
    found: dict[str, float]
