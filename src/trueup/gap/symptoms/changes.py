"""Changes of training as data: new values of a task's fields, applied to a task or written as Python.

A change names a part of the task (`randomize`, `rewards`, `start`, `sensors`, `pushes`), an entry of it, and new values
of its fields. Where the task already has a wider range or a heavier weight, a change has no effect.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Literal

import msgspec

from trueup.tasks.task import Reward, Task
from trueup.tasks.terms import rewards as terms
from trueup.world.push import PushCfg
from trueup.world.randomization.randomize import Draw

Part = Literal["randomize", "rewards", "start", "sensors", "pushes"]
# kinds of ranges that the task lacks, as in `world.randomization.randomize.locomotion_ranges`
_DRAWS: dict[str, dict[str, Any]] = {
    "contact_friction": {"operation": "set", "distribution": "log_uniform", "factor": True},
    "delay": {"operation": "set", "each": False, "factor": True},
    "encoder_bias": {"operation": "set"},
    "motor_strength": {"operation": "scale", "factor": True},
    "damping": {"operation": "scale"},
    "friction": {"operation": "scale"},
}
_TERMS = ("torque", "action_rate", "joint_limits", "slip", "energy")


class TaskChange(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """New values of fields of one entry of a task's part; `entry` is empty for parts that are one config."""

    part: Part
    entry: str = ""
    values: dict[str, float]

    @property
    def words(self) -> str:
        """The change as text: "contact_friction: low 0.1"."""
        numbers = ", ".join(f"{name} {value:.3g}" for name, value in self.values.items())
        return f"{self.entry or self.part}: {numbers}"


def widened(task: Task, name: str, *, low: float | None = None, high: float | None = None) -> list[TaskChange]:
    """Widen a range to at least these ends; no change if it already reaches them, or if no range is known."""
    draw = task.randomize.get(name)
    if draw is None and name not in _DRAWS:
        return []
    has = (1.0, 1.0) if _DRAWS.get(name, {}).get("operation") == "scale" else (0.0, 0.0)
    now = (draw.low, draw.high) if draw is not None else has
    if draw is None and name == "contact_friction":
        now = (1.0, 1.0)
    ends = {"low": now[0] if low is None else min(now[0], low), "high": now[1] if high is None else max(now[1], high)}
    if draw is not None:
        ends = {key: value for key, value in ends.items() if value != getattr(draw, key)}
    return [TaskChange(part="randomize", entry=name, values=ends)] if ends else []


def stretched(task: Task, *names: str, by: float) -> list[TaskChange]:
    """Widen the task's ranges about their middle by a factor; log-uniform ones by ratio."""
    out = []
    for name in names:
        draw = task.randomize.get(name)
        if draw is None or draw.high == draw.low:
            continue
        if draw.distribution == "log_uniform":
            middle, half = (draw.low * draw.high) ** 0.5, (draw.high / draw.low) ** (0.5 * by)
            ends = {"low": middle / half, "high": middle * half}
        else:
            middle, reach = 0.5 * (draw.low + draw.high), 0.5 * by * (draw.high - draw.low)
            least = 0.0 if draw.low >= 0.0 else middle - reach
            ends = {"low": max(least, middle - reach), "high": middle + reach}
        out.append(TaskChange(part="randomize", entry=name, values=ends))
    return out


def weighed(task: Task, *names: str, by: float, at_least: float | None = None) -> list[TaskChange]:
    """Multiply costs by a factor; a cost that the task lacks gets the weight `at_least` (negative) if given."""
    out = []
    for name in names:
        known = task.rewards.get(name)
        weight = known.weight * by if known is not None else at_least
        if weight is not None and (known is not None or name in _TERMS):
            out.append(TaskChange(part="rewards", entry=name, values={"weight": weight}))
    return out


def fields(task: Task, part: Literal["start", "sensors", "pushes"], **values: float) -> list[TaskChange]:
    """Raise fields of a config to at least these values."""
    now = getattr(task, part)
    larger = {name: value for name, value in values.items() if now is None or value > getattr(now, name)}
    return [TaskChange(part=part, values=larger)] if larger else []


def apply(task: Task, changes: Iterable[TaskChange]) -> Task:
    """The task with the changes."""
    for one in changes:
        values: dict[str, Any] = dict(one.values)
        if one.part == "randomize":
            old = task.randomize.get(one.entry)
            draw = replace(old, **values) if old is not None else Draw(**_DRAWS[one.entry], **values)
            task = replace(task, randomize={**task.randomize, one.entry: draw})
        elif one.part == "rewards":
            known = task.rewards.get(one.entry)
            term = known or Reward(getattr(terms, one.entry), 0.0)
            task = replace(task, rewards={**task.rewards, one.entry: term._replace(**values)})
        else:
            task = _configured(task, one)
    return task


def _configured(task: Task, one: TaskChange) -> Task:
    config: Any = getattr(task, one.part) or PushCfg(newton=0.0)
    changed: dict[str, Any] = {one.part: replace(config, **one.values)}
    return replace(task, **changed)


def merged(changes: Iterable[TaskChange]) -> tuple[TaskChange, ...]:
    """One change per entry, the strongest of all: widest ranges, heaviest weights, largest noise."""
    out: dict[tuple[Part, str], dict[str, float]] = {}
    for one in changes:
        values = out.setdefault((one.part, one.entry), {})
        for name, value in one.values.items():
            pick = min if name == "low" or (one.part == "rewards" and value < 0) else max
            values[name] = pick(values.get(name, value), value)
    return tuple(TaskChange(part=part, entry=entry, values=values) for (part, entry), values in out.items())


def as_python(task: Task, one: TaskChange) -> str:
    """The change as a statement about `task`, `ranges` and `rewards` of the task file."""
    values = ", ".join(f"{name}={_number(value)}" for name, value in one.values.items())
    if one.part == "randomize":
        made = ", ".join(f"{name}={value!r}" for name, value in _DRAWS.get(one.entry, {}).items())
        new = f'replace(ranges["{one.entry}"], {values})' if one.entry in task.randomize else f"Draw({made}, {values})"
        return f'ranges["{one.entry}"] = {new}'
    if one.part == "rewards":
        known = f'rewards["{one.entry}"]._replace({values})'
        return f'rewards["{one.entry}"] = ' + (
            known if one.entry in task.rewards else f"Reward(r.{one.entry}, {values})"
        )
    if one.part == "pushes" and task.pushes is None:
        return f"task = replace(task, pushes=PushCfg({values}))"
    return f"task = replace(task, {one.part}=replace(task.{one.part}, {values}))"


def _number(value: float) -> str:
    return f"{value!r}" if float(f"{value:.4g}") == value else f"{value:.4g}"
