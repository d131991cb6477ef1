"""Where a randomised simulation's parameters come from: a calibration, its prior, a range, or nowhere.

For people: the records are kept beside a run, the lines are printed when it begins.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Literal

import msgspec

from trueup.sim.batch import BatchSim
from trueup.sim.fitted import Fitted
from trueup.sim.parameter_table import PARAMETERS
from trueup.sim.randomize import Ranges
from trueup.sim.sim_params import Word
from trueup.sim.targets import parts_of

Source = Literal["calibration", "prior width", "range", "left out"]
_THINGS = {"joint": ("joint", "joints"), "body": ("body", "bodies"), "robot": ("number", "numbers")}


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """Where one parameter, or a range's part that a fit left over, comes from.

    of      joints or bodies; () for the whole robot
    source  "calibration": drawn from its posterior; "prior width": the same, but the data did not show it, so that its
            width is the prior's; "range": the task's; "left out": fitted, and not used for `reason`
    """

    name: str
    of: tuple[str, ...]
    label: str
    source: Source
    verdict: Word | None = None
    reason: str = ""


def origins(sim: BatchSim, ranges: Ranges, fitted: Fitted | None) -> tuple[Origin, ...]:
    """Every parameter that differs from the robot's own model, or was fitted and does not."""
    out: list[Origin] = []
    for one in () if fitted is None else fitted.estimates:
        shown: Source = "prior width" if one.verdict == "not visible" else "calibration"
        entry = one.parameter
        out.append(Origin(name=entry.name, of=entry.of, label=entry.label, source=shown, verdict=one.verdict))
    for left in () if fitted is None else fitted.left_out:
        entry = left.estimate.parameter
        out.append(
            Origin(
                name=entry.name,
                of=entry.of,
                label=entry.label,
                source="left out",
                verdict=left.estimate.verdict,
                reason=left.reason,
            )
        )
    for name, draw in ranges.items():
        acts, of = _left_over(sim, name, draw.of, fitted)
        if acts:
            out.append(Origin(name=name, of=of, label=name, source="range"))
    return tuple(out)


def _left_over(
    sim: BatchSim, name: str, of: tuple[str, ...] | None, fitted: Fitted | None
) -> tuple[bool, tuple[str, ...]]:
    """Whether a range acts beside a fit, and on which joints or bodies; a payload always does."""
    if fitted is None or name == "payload":
        return True, of or ()
    scope = PARAMETERS[parts_of(name)[0]].scope
    if scope == "robot":
        return not set(parts_of(name)) <= set(fitted.names), ()
    known = of or (sim.robot.spec.joint_names if scope == "joint" else sim.params.body_names)
    taken = [_taken(part, fitted) for part in parts_of(name)]
    free = tuple(item for item in known if not all(item in part for part in taken))
    return bool(free), () if free == known and of is None else free


def _taken(name: str, fitted: Fitted) -> set[str]:
    return {item for one in fitted.estimates if one.parameter.name == name for item in one.parameter.of}


def origin_lines(found: Sequence[Origin]) -> list[str]:
    """A line for each name and source: `damping  12 joints from the calibration: 9 bounded, 3 weak`."""
    groups: dict[tuple[str, str], list[Origin]] = {}
    for one in found:
        kind = f"left out: {one.reason}" if one.source == "left out" else one.source
        groups.setdefault((one.name, kind), []).append(one)
    wide = max((len(name) for name, _ in groups), default=0)
    return [f"{name:<{wide}}  {_line(name, kind, group)}" for (name, kind), group in groups.items()]


def _line(name: str, kind: str, group: Sequence[Origin]) -> str:
    parts = dict.fromkeys(item for one in group for item in one.of)
    things = _THINGS[PARAMETERS[parts_of(name)[0]].scope]
    count = len(parts) or len(group)
    amount = f"{count} {things[count != 1]}"
    if kind == "calibration":
        words = Counter(one.verdict for one in group)
        return f"{amount} from the calibration: " + ", ".join(f"{n} {word}" for word, n in words.items())
    if kind == "prior width":
        return f"{amount} with prior width around the estimate: the data did not show it"
    if kind == "range":
        return "task's range" + (f" for {amount} that the fit left over" if parts else "")
    return kind
