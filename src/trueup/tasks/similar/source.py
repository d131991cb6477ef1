"""Source: a scaled task as a Python file that a person reads and edits, each number with its reason beside it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence

from trueup.tasks.similar.scale import Number, Scaled, ScaledReward

_WIDTH = 100  # of a line with its comment
_IMPORTS = """from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from trueup.tasks.terms import rewards as r
from trueup.tasks.load import load_task
from trueup.tasks.task import Reward, Servo, Task
"""


def function_name(task: str) -> str:
    """A task's name as that of a Python function: b2-velocity -> b2_velocity."""
    plain = re.sub(r"\W", "_", task)
    return f"_{plain}" if plain[0].isdigit() else plain


def task_source(scaled: Scaled, *, name: str, like: str, robot: str, mirror: str | None) -> str:
    """The file. `robot` is code for the robot; `mirror` says why left and right cannot be exchanged (None: can)."""
    imports = _IMPORTS if "Path" in robot else _IMPORTS.replace("from pathlib import Path\n", "")
    head = f"""{imports}
ROBOT = {robot}


def {function_name(name)}() -> Task:
    \"""Walking speeds for {scaled.laws.robot.name}.\"""
    like = load_task("{like}")
    return replace(
        like,
        name="{name}",
        robot=ROBOT,"""
    lines = [
        *_docstring(scaled, name, like),
        head,
        *_call("rates=replace", (scaled.physics,), "like.rates"),
        *_call("servo=Servo", scaled.servo),
        *_call("actions=replace", scaled.actions, "like.actions"),
        *_goal(scaled),
        *_rewards(scaled.rewards),
        *_call("start=replace", scaled.start, "like.start"),
        *_randomize(scaled),
        *_call("pushes=replace", scaled.pushes, "like.pushes"),
        *_mirror(mirror),
        "    )",
    ]
    return "\n".join(lines) + "\n"


def _docstring(scaled: Scaled, name: str, like: str) -> Iterator[str]:
    ref, robot = scaled.laws.reference, scaled.laws.robot
    yield f'"""{name}: what {like} asks, for {robot.name}, by dynamic similarity. Yours to edit.'
    yield ""
    yield f"{'':28}{ref.name:>12}{robot.name:>16}{'ratio':>9}"
    labels = ("mass m, kg", "hip height l, m", "m g l, N m", "sqrt(l/g), s", "weakest leg motor, N m")
    before, after = ((each.mass, each.leg, each.moment, each.time, each.weakest_nm) for each in (ref, robot))
    for label, a, b in zip(labels, before, after, strict=True):
        yield f"{label:28}{a:12.3g}{b:16.3g}{b / a:9.2f}"
    yield ""
    yield "Lengths go with l, times with sqrt(l/g), forces with m g, torques with m g l, the weight of a cost with the"
    yield f"inverse of its unit. What is not written here is as in {like}."
    yield '"""'
    yield ""


def _call(opening: str, numbers: Sequence[Number], first: str = "", pad: str = 8 * " ") -> Iterator[str]:
    """A call with numbers as arguments, each with its reason beside it; nothing where there are no numbers."""
    if numbers:
        yield f"{pad}{opening}("
        if first:
            yield f"{pad}    {first},"
        for number in numbers:
            was = f"was {_code(number.before)}; " if number.before != number.after else ""
            yield f"{pad}    {number.name}={_code(number.after)},  # {was}{number.why}"
        yield f"{pad}),"


def _code(value: object) -> str:
    """Python for a number, a name, or a tuple of them, as a formatter would write it."""
    if isinstance(value, tuple):
        inner = ", ".join(map(_code, value))
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    return json.dumps(value) if isinstance(value, str) else repr(value)


def _goal(scaled: Scaled) -> Iterator[str]:
    if scaled.goal:
        yield from _call("goal=replace", scaled.goal, "like.goal")
        return
    ref, robot = scaled.laws.reference, scaled.laws.robot
    yield "        # goal: the same in m/s and rad/s; 1 m/s is a Froude number v^2/(g l) of"
    yield f"        # {robot.froude(1.0):.2f} here and of {ref.froude(1.0):.2f} for {ref.name}"


def _rewards(rewards: dict[str, ScaledReward]) -> Iterator[str]:
    yield "        rewards={"
    for name, (term, weight, late) in rewards.items():
        call = term.code or f'like.rewards["{name}"].function'
        reasons = [f"{a.name} was {a.before!r}, ~ {a.law}" for a in term.arguments if a.law]
        if weight.before != weight.after or term.unit is None:
            reasons.append(f"weight was {weight.before!r}, {weight.why}")
        if term.code is None:
            reasons.append("its numbers, if it has any, are not scaled")
        line = f'            "{name}": Reward({call}, {weight.after!r}{", late=True" if late else ""}),'
        if len(line) + sum(map(len, reasons)) > _WIDTH:
            yield from (f"            # {reason}" for reason in reasons)
            reasons = []
        yield line + (f"  # {'; '.join(reasons)}" if reasons else "")
    yield "        },"


def _randomize(scaled: Scaled) -> Iterator[str]:
    if not scaled.randomize:
        return
    yield "        randomize={"
    yield "            **like.randomize,"
    for name, numbers in scaled.randomize.items():
        yield from _call(f'"{name}": replace', numbers, f'like.randomize["{name}"]', 12 * " ")
    yield "        },"


def _mirror(reason: str | None) -> Iterator[str]:
    if reason is None:
        return
    yield f"        # {reason}"
    yield "        symmetric=False,"
    yield "        learner=replace(like.learner, symmetry=False),"
