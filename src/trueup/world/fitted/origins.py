"""Origins of a randomised simulation's parameters: a calibration, its prior, a range, or left out.

For people: the records are kept beside a run, the lines are printed when it begins.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Literal

import msgspec

from trueup.robot.model import trunk_body
from trueup.world.batch import BatchSim
from trueup.world.fitted.calibration import Estimate, Word
from trueup.world.fitted.posterior import Fitted
from trueup.world.parameters.table import PARAMETERS
from trueup.world.randomization.randomize import Ranges
from trueup.world.randomization.targets import PAYLOAD, parts_of

Source = Literal["calibration", "prior width", "range", "left out"]
_THINGS = {
    "joint": ("joint", "joints"),
    "body": ("body", "bodies"),
    "object": ("object", "objects"),
    "robot": ("number", "numbers"),
}


class ValueOrigin(msgspec.Struct, frozen=True, kw_only=True):
    """Origin of one parameter, or of the part of a range outside a fit.

    of      joints or bodies; () for the whole robot
    source  "calibration": drawn from its posterior; "prior width": the same, but not visible in the data, so that its
            width is the prior's; "range": the task's, for what a fit does not cover; "left out": fitted, and not used
            for `reason`
    """

    name: str
    of: tuple[str, ...]
    label: str
    source: Source
    verdict: Word | None = None
    reason: str = ""


def origins(sim: BatchSim, ranges: Ranges, fitted: Fitted | None) -> tuple[ValueOrigin, ...]:
    """Every parameter that differs from the robot's own model, or was fitted and does not."""
    out: list[ValueOrigin] = []
    for estimate in () if fitted is None else fitted.estimates:
        out.append(_fitted(estimate, "prior width" if estimate.verdict == "not visible" else "calibration"))
    for left in () if fitted is None else fitted.left_out:
        out.append(_fitted(left.estimate, "left out", left.reason))
    for name, draw in ranges.items():
        left_over = _left_over(sim, name, draw.of, fitted)
        if left_over is not None:
            out.append(ValueOrigin(name=name, of=left_over, label=name, source="range"))
    return tuple(out)


def _fitted(estimate: Estimate, source: Source, reason: str = "") -> ValueOrigin:
    name, of, label = estimate.parameter.name, estimate.parameter.of, estimate.parameter.label
    return ValueOrigin(name=name, of=of, label=label, source=source, verdict=estimate.verdict, reason=reason)


def _left_over(sim: BatchSim, name: str, of: tuple[str, ...] | None, fitted: Fitted | None) -> tuple[str, ...] | None:
    """Joints or bodies that a range acts on beside a fit: () for all that it names, None for none.

    A payload is in a fitted mass of the trunk already.
    """
    scope = PARAMETERS[parts_of(name)[0]].scope
    if fitted is None:
        return ()
    if name == PAYLOAD:
        return None if trunk_body(sim.model, sim.robot) in fitted.bodies("mass_scale") else ()
    if scope == "robot":
        return None if set(parts_of(name)) <= set(fitted.names) else ()
    known = of or sim.params.names_of(scope)
    taken = [_taken(part, fitted) for part in parts_of(name)]
    free = tuple(item for item in known if not all(item in part for part in taken))
    return () if free == known else free or None


def _taken(name: str, fitted: Fitted) -> set[str]:
    return {item for estimate in fitted.estimates if estimate.parameter.name == name for item in estimate.parameter.of}


def origin_lines(found: Sequence[ValueOrigin]) -> list[str]:
    """A line for each name: `damping  12 joints from the calibration: 9 bounded, 3 weak`."""
    names = dict.fromkeys(origin.name for origin in found)
    wide = max((len(name) for name in names), default=0)
    return [f"{name:<{wide}}  {_line([origin for origin in found if origin.name == name])}" for name in names]


def _line(group: Sequence[ValueOrigin]) -> str:
    drawn = [origin for origin in group if origin.source in ("calibration", "prior width")]
    parts = [_drawn(drawn)] if drawn else []
    for origin in group:
        if origin.source == "range":
            rest = f" for {_amount(origin.name, len(origin.of))} that the fit left over" if origin.of else ""
            parts.append(f"task's range{rest}")
    return "; ".join([*parts, *dict.fromkeys(f"left out: {origin.reason}" for origin in group if origin.reason)])


def _drawn(group: Sequence[ValueOrigin]) -> str:
    words = Counter(origin.verdict for origin in group)
    texts = [f"{n} {word}" + (" (prior width)" if word == "not visible" else "") for word, n in words.items()]
    of = len(dict.fromkeys(item for origin in group for item in origin.of)) or len(group)
    amount = _amount(group[0].name, of)
    if len(group) < of:
        amount += f" with {len(group)} value" + ("s" if len(group) > 1 else "")
    return f"{amount} from the calibration: {', '.join(texts)}"


def _amount(name: str, count: int) -> str:
    return f"{count} {_THINGS[PARAMETERS[parts_of(name)[0]].scope][count != 1]}"
