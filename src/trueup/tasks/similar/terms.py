"""Reward terms as source code: which call makes this function, and which of its numbers follow a law.

A term is a plain function, a dataclass, or an object of a class that some function of its module returns (by its
annotation). Numbers are found by the parameters' names, with or without an underscore before and the unit behind them.
"""

from __future__ import annotations

import dataclasses
import inspect
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

from trueup.tasks import rewards
from trueup.tasks.similar.laws import SPEED, SUFFIXES, TERMS, Laws, Unit, rounded, unit_of

ALIAS = "r"  # of `trueup.tasks.rewards` in the file that is written


class Argument(NamedTuple):
    """A number of a reward object: what it was, what it becomes, by which law (empty: kept)."""

    name: str
    before: Any
    after: Any
    law: str


class Term(NamedTuple):
    """A call that makes a reward term; `name` as in `laws.TERMS`; `code` None: it cannot be written down."""

    name: str
    code: str | None
    arguments: tuple[Argument, ...]
    unit: Unit | None


def scale_term(function: Callable[..., Any], laws: Laws, extra: dict[str, float] | None = None) -> Term:
    """Scale a reward term; `extra` gives numbers by parameter that follow a law of their own."""
    maker, names = _maker(function)
    name = getattr(maker, "__name__", type(function).__name__)
    if getattr(rewards, name, None) is not maker:
        return Term(name, None, (), TERMS.get(_plain(name)))
    arguments = tuple(_argument(key, value, laws, extra or {}) for key, value in names.items())
    inner = ", ".join(f"{argument.name}={argument.after!r}" for argument in arguments)
    code = f"{ALIAS}.{name}" + (f"({inner})" if maker is not function else "")
    return Term(name, code, arguments, TERMS.get(_plain(name)))


def _argument(name: str, value: Any, laws: Laws, extra: dict[str, float]) -> Argument:
    plain = _number(value)
    if name in extra:
        return Argument(name, plain, rounded(extra[name]), "l")
    unit = unit_of(name)
    if not isinstance(plain, float) or not unit.law:
        return Argument(name, plain, plain, "")
    grows = laws.asked(unit) if unit == SPEED else laws.ratio(unit)
    return Argument(name, plain, plain if grows == 1.0 else rounded(plain * grows), unit.law if grows != 1.0 else "")


def _maker(function: Callable[..., Any]) -> tuple[Callable[..., Any], dict[str, Any]]:
    """What to call for such a term, and with which values; a plain function is itself."""
    if inspect.isfunction(function):
        return function, {}
    kind = type(function)
    if dataclasses.is_dataclass(function):
        return _factory(kind) or kind, {
            field.name: getattr(function, field.name) for field in dataclasses.fields(function) if field.init
        }
    factory = _factory(kind)
    if factory is None:
        return function, {}
    found = {name: _read(function, name) for name in inspect.signature(factory).parameters}
    return (function, {}) if any(value is None for value in found.values()) else (factory, found)


def _factory(kind: type) -> Callable[..., Any] | None:
    """The function beside a class that returns it."""
    module = sys.modules[kind.__module__]
    for function in vars(module).values():
        if inspect.isfunction(function) and function.__annotations__.get("return") in (kind, kind.__name__):
            return function
    return None


def _read(holder: object, parameter: str) -> Any:
    bare = next((parameter[: -len(end)] for end in SUFFIXES if parameter.endswith(end)), parameter)
    for name in (parameter, f"_{parameter}", bare, f"_{bare}"):
        if hasattr(holder, name):
            return getattr(holder, name)
    return None


def _number(value: Any) -> Any:
    """A NumPy scalar as the number that a person would write."""
    if hasattr(value, "item"):
        value = value.item()
    return float(f"{value:.6g}") if isinstance(value, float) else value


def _plain(name: str) -> str:
    """Class names as those of functions: FeetAirTime -> feet_air_time."""
    spaced = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
    return spaced.lstrip("_")
