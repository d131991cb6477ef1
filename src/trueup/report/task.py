"""Tables of tasks, and of the numbers scaled for another robot."""

from __future__ import annotations

import json

from rich.console import Console

from trueup.report.terminal import text_table
from trueup.tasks.load import described_tasks
from trueup.tasks.similar.init import InitiatedTask, init_task
from trueup.tasks.similar.scale import Number
from trueup.tasks.verbs import InitTaskVerb, TasksVerb


def run_list(verb: TasksVerb) -> int:
    """List the built-in tasks."""
    tasks = described_tasks()
    if verb.json:
        print(json.dumps({"tasks": [task._asdict() for task in tasks]}))
        return 0
    rows = [(task.name, task.robot, task.what, "scales it" if task.scalable else "") for task in tasks]
    Console().print(text_table(("task", "robot", "what", "task init"), rows, title="built-in tasks"))
    return 0


def run_init(verb: InitTaskVerb) -> int:
    """Write a task; print scaled numbers, unknowns, and the next command."""
    done = init_task(verb.robot, verb.like, verb.out, speeds=verb.speeds, force=verb.force)
    console, scaled = Console(), done.scaled
    ref, robot = scaled.laws.reference, scaled.laws.robot
    console.print(
        " -> ".join(f"{each.name}: {each.mass:.3g} kg, legs of {each.leg:.3g} m" for each in (ref, robot)),
        markup=False,
        soft_wrap=True,
    )
    rows = [(part, _short(change.before), _short(change.after), change.why) for part, change in _numbers(done)]
    console.print(text_table(("number", done.reference, done.task, "why"), rows))
    for caution in done.cautions:
        console.print(f"look at: {caution}", markup=False, soft_wrap=True)
    console.print(
        f"task in {done.path}; train it: trueup train {done.call} --minutes 15 --out runs/{done.task}",
        markup=False,
        soft_wrap=True,
    )
    return 0


def _numbers(done: InitiatedTask) -> list[tuple[str, Number]]:
    scaled = done.scaled
    parts = {
        "": (scaled.physics, *scaled.servo, *scaled.actions),
        "goal.": scaled.goal,
        "start.": scaled.start,
        "pushes.": scaled.pushes,
    }
    out = [(f"{part}{number.name}", number) for part, numbers in parts.items() for number in numbers]
    for name, (term, weight, _) in scaled.rewards.items():
        out += [(f"{name}.{a.name}", Number(a.name, a.before, a.after, f"~ {a.law}")) for a in term.arguments if a.law]
        if weight.before != weight.after:
            out.append((f"{name} (weight)", weight))
    for name, numbers in scaled.randomize.items():
        out += [(f"{name}.{number.name}", number) for number in numbers]
    return out


def _short(value: object) -> str:
    """A number, a range, or the first of many."""
    if isinstance(value, (tuple, list)) and len(value) > 3:
        return f"{value[0]} ... ({len(value)})"
    return ", ".join(map(str, value)) if isinstance(value, (tuple, list)) else str(value)
