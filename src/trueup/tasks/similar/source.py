"""Source: a scaled task as a Python file that a person reads and edits, each number with its reason beside it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator

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
    lines = [
        *_docstring(scaled, name, like),
        *imports.splitlines(),
        "",
        f"ROBOT = {robot}",
        "",
        "",
        f"def {function_name(name)}() -> Task:",
        f'    """Walking speeds for {scaled.laws.robot.name}."""',
        f'    like = load_task("{like}")',
        "    return replace(",
        "        like,",
        f'        name="{name}",',
        "        robot=ROBOT,",
        *_replaced("rates", [scaled.physics]),
        *_call("servo", "Servo", scaled.servo),
        *_replaced("actions", scaled.actions),
        *_goal(scaled),
        *_rewards(scaled.rewards),
        *_replaced("start", scaled.start),
        *_randomize(scaled),
        *_replaced("pushes", scaled.pushes),
        *_mirror(mirror),
        "    )",
    ]
    return "\n".join(lines) + "\n"


def _docstring(scaled: Scaled, name: str, like: str) -> Iterator[str]:
    ref, robot = scaled.laws.reference, scaled.laws.robot
    yield f'"""{name}: what {like} asks, for {robot.name}, by dynamic similarity. Yours to edit.'
    yield ""
    yield f"{'':28}{ref.name:>12}{robot.name:>16}{'ratio':>9}"
    weakest = [min(joint.torque for joint in each.joints.values()) for each in (ref, robot)]
    rows: list[tuple[str, float, float]] = [
        ("mass m, kg", ref.mass, robot.mass),
        ("hip height l, m", ref.leg, robot.leg),
        ("m g l, N m", ref.moment, robot.moment),
        ("sqrt(l/g), s", ref.time, robot.time),
        ("weakest leg motor, N m", weakest[0], weakest[1]),
    ]
    for what, before, after in rows:
        yield f"{what:28}{before:12.3g}{after:16.3g}{after / before:9.2f}"
    yield ""
    yield "Lengths go with l, times with sqrt(l/g), forces with m g, torques with m g l, the weight of a cost with the"
    yield f"inverse of its unit. What is not written here is as in {like}."
    yield '"""'
    yield ""


def _replaced(part: str, numbers: Iterable[Number]) -> Iterator[str]:
    yield from _call(part, f"replace(like.{part}", numbers)


def _call(part: str, opening: str, numbers: Iterable[Number]) -> Iterator[str]:
    numbers = list(numbers)
    if not numbers:
        return
    if opening.startswith("replace("):
        yield f"        {part}=replace("
        yield f"            {opening.removeprefix('replace(')},"
    else:
        yield f"        {part}={opening}("
    yield from (f"            {number.name}={_code(number.after)},{_why(number)}" for number in numbers)
    yield "        ),"


def _why(number: Number) -> str:
    was = f"was {_code(number.before)}; " if number.before != number.after else ""
    return f"  # {was}{number.why}"


def _code(value: object) -> str:
    """Python for a number, a name, or a tuple of them, as a formatter would write it."""
    if isinstance(value, tuple):
        inner = ", ".join(map(_code, value))
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    return json.dumps(value) if isinstance(value, str) else repr(value)


def _goal(scaled: Scaled) -> Iterator[str]:
    if scaled.goal:
        yield from _replaced("goal", scaled.goal)
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
        yield f'            "{name}": replace('
        yield f'                like.randomize["{name}"],'
        yield from (f"                {number.name}={_code(number.after)},{_why(number)}" for number in numbers)
        yield "            ),"
    yield "        },"


def _mirror(reason: str | None) -> Iterator[str]:
    if reason is None:
        return
    yield f"        # {reason}"
    yield "        symmetric=False,"
    yield "        learner=replace(like.learner, symmetry=False),"
