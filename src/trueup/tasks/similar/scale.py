"""Scale: every number of a task that follows a law, as arguments for `dataclasses.replace`, each with its reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

from trueup.core.errors import TrueupError
from trueup.robot.load import Robot
from trueup.tasks.load import described_tasks
from trueup.tasks.similar.figures import Figures
from trueup.tasks.similar.laws import FORCE, LENGTH, PARAMETERS, RATE, SPEED, TIME, Laws, Unit, rounded
from trueup.tasks.similar.servo import ScaledServo, give_servo, scale_servo
from trueup.tasks.similar.settle import Settled
from trueup.tasks.similar.terms import ScaledTerm, scale_term
from trueup.tasks.task import Servo, Task
from trueup.world.randomization.randomize import Draw


class Number(NamedTuple):
    """One number of the new task: its name there, before and after, and why."""

    name: str
    before: Any
    after: Any
    why: str


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
    """Refuse tasks whose goal is not a walking speed, naming those that can be scaled."""
    if not task.goal.scales:
        names = [other.name for other in described_tasks() if other.scalable]
        raise TrueupError(
            f"task {task.name!r} cannot be scaled to another robot: only tasks of walking speeds can "
            f"({', '.join(names)}); start from dataclasses.replace(load_task({task.name!r}), ...) instead"
        )


def scale_task(task: Task, robot: Robot, laws: Laws, settled: Settled) -> Scaled:
    """Scale a task of walking speeds."""
    servo = scale_servo(task, laws, settled.stiffer)
    return Scaled(
        laws=laws,
        physics=_physics(task, servo, laws.robot),
        servo=_servo(servo, give_servo(servo, robot, laws.robot), settled),
        actions=_actions(task, robot, laws),
        goal=_goal(task, laws),
        rewards={name: _reward(name, task, laws) for name in task.rewards},
        start=_plain(task.start, {"joint_vel": RATE, "vel": SPEED, "spin": RATE}, laws),
        randomize=_randomize(task.randomize, laws),
        pushes=() if task.pushes is None else _plain(task.pushes, {"newton": FORCE, "seconds": TIME}, laws),
    )


def _physics(task: Task, servo: ScaledServo, robot: Figures) -> Number:
    stiffest = max(gains.kp for gains in servo.gains.values())
    turn = (stiffest / robot.lightest) ** 0.5 / servo.physics_hz
    return Number(
        "physics_hz", task.rates.physics_hz, servo.physics_hz, f"sqrt(kp/I) dt = {turn:.2f} at the lightest joint"
    )


def _servo(servo: ScaledServo, given: Servo, settled: Settled) -> tuple[Number, ...]:
    ratios = ", ".join(f"{gains.ratio:.2f}" for gains in servo.gains.values())
    damping = ", ".join(f"{gains.damping:.3g}" for gains in servo.gains.values())
    sag = f"stands at {settled.share:.2f} of its height under its own weight, before at {settled.reference:.2f}"
    stiffer = "~ m g l" if settled.stiffer == 1.0 else f"~ m g l, {settled.stiffer:.2f} times stiffer"
    why = f"damping ratio {ratios} as before, with the joints' own {damping} N m s/rad"
    kp0, kd0 = ([getattr(gains, name) for gains in servo.gains.values()] for name in ("reference_kp", "reference_kd"))
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
        out.append(Number("moved", "all", tuple(names), "the legs; other joints hold the default pose"))
    return tuple(out)


def _goal(task: Task, laws: Laws) -> tuple[Number, ...]:
    if laws.speeds == "same":
        return ()
    units = {name: {"m/s": SPEED, "rad/s": RATE}[unit] for name, unit in task.goal.scales.items()}
    out = list(_plain(task.goal, units, laws))
    rate = getattr(task.goal, "rate", None)
    if rate is not None:
        x, y, turn = rate
        slower = laws.ratio(RATE) ** 2
        out.append(Number("rate", (x, y, turn), (x, y, rounded(turn * slower)), "m/s^2 ~ g, rad/s^2 ~ g/l"))
    return tuple(out)


def _reward(name: str, task: Task, laws: Laws) -> ScaledReward:
    reward, ref, robot = task.rewards[name], laws.reference, laws.robot
    target = getattr(reward.function, "target_m", None)
    own = {}
    if target is not None:  # of the height term: as much below the standing height as before, at this scale
        own["height", "target_m"] = robot.stand_height - (ref.stand_height - target) * laws.ratio(LENGTH)
    term = scale_term(reward.function, laws, own)
    grows = 1.0 if term.unit is None else 1.0 / laws.ratio(term.unit)
    law = "" if term.unit is None else term.unit.law
    why = "unit unknown: kept" if term.unit is None else f"~ 1/({law})"
    weight = reward.weight if grows == 1.0 else rounded(reward.weight * grows)
    return ScaledReward(term, Number(name, reward.weight, weight, why), reward.late)


def _plain(part: Any, units: Mapping[str, Unit], laws: Laws) -> tuple[Number, ...]:
    """Numbers and ranges of a dataclass by their units."""
    out = []
    for field in fields(part):
        before, unit = getattr(part, field.name), units.get(field.name)
        if unit is None or not before:
            continue
        out.append(Number(field.name, before, _grown(before, laws.ratio(unit)), f"~ {unit.law}"))
    return tuple(out)


def _grown(value: Any, grows: float) -> Any:
    return tuple(_grown(each, grows) for each in value) if isinstance(value, tuple) else rounded(value * grows)


def _randomize(ranges: Mapping[str, Draw], laws: Laws) -> dict[str, tuple[Number, ...]]:
    """Ranges that name the reference's base or have a unit."""
    out: dict[str, tuple[Number, ...]] = {}
    for name, draw in ranges.items():
        numbers = []
        unit = PARAMETERS.get(name)
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
