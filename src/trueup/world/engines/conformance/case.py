"""A case: a number that each engine is asked for, and the exact one where it is known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from trueup.world.engines.choose import Engine

G = 9.81  # m/s^2


class Question(NamedTuple):
    """Unit, what physics says (None where nobody can tell by hand), and how an engine is asked."""

    unit: str
    exact: Callable[[], float | None]
    measure: Callable[[Engine], float]


@dataclass(frozen=True, kw_only=True)
class Case:
    """What was found in each engine."""

    name: str
    unit: str
    exact: float | None
    found: dict[str, float]
