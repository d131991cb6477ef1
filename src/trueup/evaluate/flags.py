"""Red flags: measured value, usual cause and remedy as text. Every flag follows from numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from trueup.evaluate.score import PolicyScore, RedFlag, ScenarioResult

_OFTEN = 0.2  # share of time
_FEW = 5  # fewest falls for which their side is informative


class _Rule(NamedTuple):
    """A flag that is raised where `number` of a scenario is beyond `bound`; `seen` takes the number."""

    name: str
    number: Callable[[ScenarioResult], float | None]
    bound: float
    seen: str
    cause: str
    fix: str
    below: bool = False


def _mean(name: str) -> Callable[[ScenarioResult], float | None]:
    return lambda result: result.mean(name)


def _time(name: str) -> Callable[[ScenarioResult], float | None]:
    return lambda result: result.flags.get(name)


def _one_sided(result: ScenarioResult) -> float | None:
    """Share of the falls that go to the more frequent side; None of few falls."""
    fell = result.reasons.get("fell", 0)
    if fell < _FEW or "lean" not in result.metrics:
        return None
    balance = abs(result.metrics["lean"].mean) * result.rate.trials / fell  # |left - right| / falls
    return 0.5 * (1.0 + min(1.0, balance))


_RULES = (
    _Rule(
        "shuffling",
        _time("shuffling"),
        _OFTEN,
        "no foot leaves the ground while some slide, {:.0%} of the time",
        "lifting feet costs reward and nothing asks for it; smooth ground in training hides the price",
        "reward air time and swing height, train on rough ground with friction drawn up to 2",
    ),
    _Rule(
        "low feet",
        _mean("clearance"),
        0.03,
        "feet rise by {:.3f} m only",
        "flat ground in training: any edge higher than this trips the robot",
        "ask for clearance (rewards `swing_height`, `clearance`) or train on terrain",
        below=True,
    ),
    _Rule(
        "jerky",
        _mean("jerkiness"),
        900.0,
        "joint targets accelerate by {:.0f} rad/s^2 rms",
        "a weak penalty on action changes, or a policy that answers sensor noise",
        "raise the weight of `action_rate`, train with sensor noise, or filter targets as part of the task",
    ),
    _Rule(
        "one-sided falls",
        _one_sided,
        0.85,
        "{:.0%} of the falls go to one side",
        "a gait that leans, a robot whose masses or encoders are off to one side, a policy that is not symmetric",
        "train with `symmetric` tasks and mirrored batches; check the centre of mass (`trueup calibrate load`)",
    ),
    _Rule(
        "asymmetric gait",
        _mean("uneven"),
        0.35,
        "one foot is on the ground {:.0%} of the time more than another",
        "a leg is carried or does all the work",
        "train with mirrored batches, look at the film of this scenario",
    ),
    _Rule(
        "hot motors",
        _mean("thermal"),
        1.0,
        "mean square torque of the hottest joint is {:.1f} times what a motor is taken to bear for ever "
        "(35 % of its limit)",
        "a crouched pose, or gains that work against each other",
        "raise the weight of `torque` or `energy`, stand higher, take pauses on the robot",
    ),
    _Rule(
        "torque at its limit",
        _mean("at_limit"),
        0.05,
        "{:.0%} of all torques are at the limit",
        "the motion needs more than the motors have: beyond the limit a policy has no say",
        "train with lower torque limits (randomise `torque_limit`), lower the gains or the speed asked for",
    ),
    _Rule(
        "slipping",
        _mean("slip"),
        0.35,
        "feet slide at {:.2f} m/s while they touch the ground",
        "more friction in training than here, or feet that are pushed along the ground",
        "randomise `contact_friction` down to 0.2, penalise `slip`",
    ),
    _Rule(
        "near the joint stops",
        _mean("joint_margin"),
        -0.01,
        "joints pass their stops ({:.1%} of the range is left)",
        "targets beyond the range, or limits that training did not have",
        "penalise `joint_limits`; check the ranges of the passport against the robot's",
        below=True,
    ),
    _Rule(
        "unknown observations",
        _mean("outside"),
        0.05,
        "{:.1%} of what the policy sees is outside its training range",
        "a robot, a ground or a command that training did not have; or scales that do not fit",
        "compare observation layouts first, then widen the randomisation",
    ),
)


def red_flags(score: PolicyScore) -> tuple[RedFlag, ...]:
    """One flag for each rule that some scenario breaks, with the scenario in which it is worst."""
    return tuple(flag for rule in _RULES for flag in _raised(rule, score))


def _raised(rule: _Rule, score: PolicyScore) -> Iterator[RedFlag]:
    sign = -1.0 if rule.below else 1.0
    numbers = [(sign * value, result) for result in score.results if (value := rule.number(result)) is not None]
    bad = [(value, result) for value, result in numbers if value > sign * rule.bound]
    if bad:
        value, worst = max(bad, key=lambda pair: pair[0])
        others = "" if len(bad) == 1 else f" and in {len(bad) - 1} other scenario{'s' if len(bad) > 2 else ''}"
        seen = f"{rule.seen.format(sign * value)} in {worst.title!r}{others}"
        yield RedFlag(name=rule.name, seen=seen, cause=rule.cause, fix=rule.fix)
