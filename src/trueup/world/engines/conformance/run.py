"""Run the cases in both engines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from trueup.core.errors import TrueupError, did_you_mean
from trueup.world.engines.choose import ENGINES, Engine
from trueup.world.engines.conformance.case import Case
from trueup.world.engines.conformance.contact_cases import CONTACT
from trueup.world.engines.conformance.joint_cases import JOINT

CASES = JOINT | CONTACT


def conformance(names: Iterable[str] = CASES, engines: Sequence[Engine] = ENGINES) -> list[Case]:
    """Run all cases, or those named, in every engine; a few seconds in all."""
    return [_case(name, engines) for name in names]


def _case(name: str, engines: Sequence[Engine]) -> Case:
    if name not in CASES:
        raise TrueupError(f"no case {name!r}{did_you_mean(name, CASES)}")
    question = CASES[name]
    found: dict[str, float] = {engine: question.measure(engine) for engine in engines}
    return Case(name=name, unit=question.unit, exact=question.exact(), found=found)
