"""Scale: every number of a task that follows a law, as arguments for `dataclasses.replace`, each with its reason.

A reward term is a plain function of `tasks.terms.rewards`, or a dataclass there whose fields say their units in their
names.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from trueup.core.errors import TrueupError
from trueup.robot.load import Robot
from trueup.tasks.load import described_tasks
from trueup.tasks.similar import laws as units
from trueup.tasks.similar.laws import Laws, Unit, rounded
from trueup.tasks.similar.servo import ScaledServo, SettledServo, give_servo, scale_servo
from trueup.tasks.task import Servo, Task
from trueup.tasks.terms import rewards
from trueup.world.randomization.randomize import Draw

_ASKED = {"m/s": units.SPEED, "rad/s": units.RATE}  # units of what a goal asks


class Number(NamedTuple):
    """One number of the new task: its name there, before and after, and why."""

    name: str
    before: Any
    after: Any
    why: str


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


class ScaledReward(NamedTuple):
    """A reward term, its weight before and after, and whether it is late."""

    term: ScaledTerm
    weight: Number
    late: bool


@dataclass(frozen=True, kw_only=True)
class Scaled:
    """Everything that is scaled; parts in the order of a task."""

    laws: Laws
    physics: Number
    servo: tuple[Number, ...]
    actions: tuple[Number, ...]
    goal: tuple[Number, ...]
    rewards: dict[str, ScaledReward]
    start: tuple[Number, ...]
    randomize: dict[str, tuple[Number, ...]]
    pushes: tuple[Number, ...]


def require_scalable(task: Task) -> None:
    """Refuse tasks whose goal is not a walking speed or whose terms name joints, naming those that can be scaled."""
    known = {other.name: other.scalable for other in described_tasks()}
    if not known.get(task.name, bool(task.goal.scales)):
        names = [name for name, scalable in known.items() if scalable]
        raise TrueupError(
            f"task {task.name!r} cannot be scaled to another robot: only tasks of walking speeds and general terms can "
            f"({', '.join(names)}); start from dataclasses.replace(load_task({task.name!r}), ...) instead"
        )


def scale_task(task: Task, robot: Robot, laws: Laws, settled: SettledServo) -> Scaled:
    """Scale a task of walking speeds."""
    servo = scale_servo(task.rates, laws, settled.stiffer)
    turn = (max(gains.kp for gains in servo.gains.values()) / laws.robot.lightest) ** 0.5 / servo.physics_hz
    why = f"sqrt(kp/I) dt = {turn:.2f} at the lightest joint"
    return Scaled(
        laws=laws,
        physics=Number("physics_hz", task.rates.physics_hz, servo.physics_hz, why),
        servo=_servo(servo, give_servo(servo, robot, laws.robot), settled),
        actions=_actions(task, robot, laws),
        goal=_goal(task, laws),
        rewards={name: _reward(name, task, laws) for name in task.rewards},
        start=_plain(task.start, {"joint_vel": units.RATE, "vel": units.SPEED, "spin": units.RATE}, laws),
        randomize=_randomize(task.randomize, laws),
        pushes=() if task.pushes is None else _plain(task.pushes, {"newton": units.FORCE, "seconds": units.TIME}, laws),
    )


def _servo(servo: ScaledServo, given: Servo, settled: SettledServo) -> tuple[Number, ...]:
    kinds = servo.gains.values()
    ratios = ", ".join(f"{each.ratio:.2f}" for each in kinds)
    damping = ", ".join(f"{each.damping:.3g}" for each in kinds)
    stiffer = "~ m g l" if settled.stiffer == 1.0 else f"~ m g l, {settled.stiffer:.2f} times stiffer"
    sag = f"stands at {settled.share:.2f} of its height under its own weight, before at {settled.reference:.2f}"
    why = f"damping ratio {ratios} as before, with the joints' own {damping} N m s/rad"
    kp0, kd0 = [each.reference_kp for each in kinds], [each.reference_kd for each in kinds]
    return (
        Number("kp", kp0[0] if len(kp0) == 1 else kp0, given.kp, servo.bound or f"{stiffer}: {sag}"),
        Number("kd", kd0[0] if len(kd0) == 1 else kd0, given.kd, why),
    )


def _actions(task: Task, robot: Robot, laws: Laws) -> tuple[Number, ...]:
    scale, names = task.actions.scale, [n for n in robot.spec.joint_names if n in laws.robot.joints]
    after: float | tuple[float, ...] = scale
    if isinstance(scale, tuple):
        kinds = dict(zip((joint.kind for joint in laws.reference.joints.values()), scale, strict=True))
        after = tuple(kinds[min(laws.robot.joints[name].kind, max(kinds))] for name in names)
    out = [Number("scale", scale, after, "rad: angles are the same at any size")]
    if laws.robot.others:
        out.append(Number("controlled_joints", "all", tuple(names), "the legs; other joints hold the default pose"))
    return tuple(out)


def _goal(task: Task, laws: Laws) -> tuple[Number, ...]:
    if laws.speeds == "same":
        return ()
    out = list(_plain(task.goal, {name: _ASKED[unit] for name, unit in task.goal.scales.items()}, laws))
    rate = getattr(task.goal, "rate", None)
    if rate is not None:
        x, y, turn = rate
        slower = laws.ratio(units.RATE) ** 2
        out.append(Number("rate", (x, y, turn), (x, y, rounded(turn * slower)), "m/s^2 ~ g, rad/s^2 ~ g/l"))
    return tuple(out)


def _reward(name: str, task: Task, laws: Laws) -> ScaledReward:
    reward, ref, robot = task.rewards[name], laws.reference, laws.robot
    height = None
    if isinstance(reward.function, rewards.Height):  # as much below the standing height as before, at this scale
        height = robot.stand_height - (ref.stand_height - reward.function.target_m) * laws.ratio(units.LENGTH)
    term = scale_term(reward.function, laws, height)
    if term.unit is None:
        return ScaledReward(term, Number(name, reward.weight, reward.weight, "unit unknown: kept"), reward.late)
    grows = laws.ratio(term.unit)
    weight = reward.weight if grows == 1.0 else rounded(reward.weight / grows)
    return ScaledReward(term, Number(name, reward.weight, weight, f"~ 1/({term.unit.law})"), reward.late)


def scale_term(function: Callable[..., Any], laws: Laws, height: float | None = None) -> ScaledTerm:
    """Scale a reward term; `height`: the target of the height term, which follows the standing height."""
    maker = function if inspect.isfunction(function) else type(function)
    name = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in maker.__name__).lstrip("_")
    unit = units.TERMS.get(name)
    known = getattr(rewards, maker.__name__, None) is maker
    if known and maker is function:
        return ScaledTerm(name, f"r.{name}", (), unit)
    if not known or not dataclasses.is_dataclass(function):
        return ScaledTerm(name, None, (), unit)
    fields = [field.name for field in dataclasses.fields(function) if field.init]
    arguments = tuple(_argument(field, getattr(function, field), laws, height) for field in fields)
    inner = ", ".join(f"{argument.name}={argument.after!r}" for argument in arguments)
    return ScaledTerm(name, f"r.{maker.__name__}({inner})", arguments, unit)


def _argument(name: str, value: Any, laws: Laws, height: float | None) -> Argument:
    if height is not None:
        return Argument(name, value, rounded(height), "l")
    unit = units.unit_of(name)
    grows = laws.asked(unit) if unit == units.SPEED else laws.ratio(unit)
    if not isinstance(value, float) or grows == 1.0:
        return Argument(name, value, value, "")
    return Argument(name, value, rounded(value * grows), unit.law)


def _plain(part: Any, fields: Mapping[str, Unit], laws: Laws) -> tuple[Number, ...]:
    """Numbers and ranges of a dataclass whose units are those of `fields`."""
    present = {name: (getattr(part, name), unit) for name, unit in fields.items() if getattr(part, name)}
    return tuple(
        Number(name, before, _grown(before, laws.ratio(unit)), f"~ {unit.law}")
        for name, (before, unit) in present.items()
    )


def _grown(value: Any, grows: float) -> Any:
    return tuple(_grown(each, grows) for each in value) if isinstance(value, tuple) else rounded(value * grows)


def _randomize(ranges: Mapping[str, Draw], laws: Laws) -> dict[str, tuple[Number, ...]]:
    """Ranges that name the reference's base or have a unit."""
    out: dict[str, tuple[Number, ...]] = {}
    for name, draw in ranges.items():
        numbers = []
        unit = units.PARAMETERS.get(name)
        if unit is not None and draw.operation != "scale":
            numbers += [
                Number(end, getattr(draw, end), rounded(getattr(draw, end) * laws.ratio(unit)), f"~ {unit.law}")
                for end in ("low", "high")
                if getattr(draw, end)
            ]
        if draw.of == (laws.reference.base,):
            numbers.append(Number("of", draw.of, (laws.robot.base,), "its base"))
        elif draw.of is not None:
            numbers.append(Number("of", draw.of, None, "named parts of the other robot: all, here"))
        if numbers:
            out[name] = tuple(numbers)
    return out
