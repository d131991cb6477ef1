"""Reward terms as source code: which call makes this term, and which of its numbers follow a law.

A term is a plain function of `tasks.terms.rewards`, or a dataclass there whose fields say their units in their names.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from trueup.tasks.similar.laws import SPEED, TERMS, Laws, Unit, rounded, unit_of
from trueup.tasks.terms import rewards

ALIAS = "r"  # of `trueup.tasks.terms.rewards` in the file that is written


class Argument(NamedTuple):
    """A number of a reward object: what it was, what it becomes, by which law (empty: kept)."""

    name: str
    before: Any
    after: Any
    law: str


class ScaledTerm(NamedTuple):
    """A call that makes a reward term, None if it cannot be written down; `unit` of what it returns, None: unknown."""

    name: str
    code: str | None
    arguments: tuple[Argument, ...]
    unit: Unit | None


def scale_term(function: Callable[..., Any], laws: Laws, own: Mapping[tuple[str, str], float]) -> ScaledTerm:
    """Scale a reward term; `own` has numbers, by (term, field), that follow a law of their own."""
    maker = function if inspect.isfunction(function) else type(function)
    name = _snake(maker.__name__)
    unit = TERMS.get(name)
    if getattr(rewards, maker.__name__, None) is not maker:
        return ScaledTerm(name, None, (), unit)
    if maker is function:
        return ScaledTerm(name, f"{ALIAS}.{name}", (), unit)
    if not dataclasses.is_dataclass(function):
        return ScaledTerm(name, None, (), unit)
    fields = [field.name for field in dataclasses.fields(function) if field.init]
    arguments = tuple(_argument(field, getattr(function, field), laws, own.get((name, field))) for field in fields)
    inner = ", ".join(f"{argument.name}={argument.after!r}" for argument in arguments)
    return ScaledTerm(name, f"{ALIAS}.{maker.__name__}({inner})", arguments, unit)


def _argument(name: str, value: Any, laws: Laws, own: float | None) -> Argument:
    plain = value.item() if hasattr(value, "item") else value
    if own is not None:
        return Argument(name, plain, rounded(own), "l")
    unit = unit_of(name)
    if not isinstance(plain, float) or not unit.law:
        return Argument(name, plain, plain, "")
    grows = laws.asked(unit) if unit == SPEED else laws.ratio(unit)
    return Argument(name, plain, plain, "") if grows == 1.0 else Argument(name, plain, rounded(plain * grows), unit.law)


def _snake(name: str) -> str:
    """A class's name as that of a function: FeetAirTime -> feet_air_time."""
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip("_")
