"""One scenario: all its trials in one batch through the evaluation loop, scored and, if requested, recorded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from trueup.core.arrays import FloatArray
from trueup.evaluate.scenarios.scenario import Scenario, Success
from trueup.evaluate.trials.meter import Meter
from trueup.evaluate.trials.record import TrialRecorder
from trueup.evaluate.trials.world import TrialCfg, TrialWorld, make_world
from trueup.policy.mlp import PolicySpec
from trueup.policy.normalizer import Float32
from trueup.tasks.evaluation.evaluate import evaluate
from trueup.tasks.sensing.frame import Frame
from trueup.tasks.task import Task

_FLAG = "flag/"


class ActingPolicy(Protocol):
    """What a policy does with observations (nrow, nactor): actions (nrow, naction)."""

    def act(self, actor: Float32) -> Float32: ...


class PolicyIdentity(Protocol):
    @property
    def policy(self) -> PolicySpec: ...


class Bundle(Protocol):
    """A policy with what must be known about it."""

    @property
    def passport(self) -> PolicyIdentity: ...
    def runner(self, nrow: int) -> ActingPolicy: ...


@dataclass(frozen=True, kw_only=True)
class Trials:
    """Every trial: numbers (nrow,) by name (`METRICS`), why it failed ("": it did not), and what was recorded.

    flags         share of time with each of the task's red flags
    unknown       metrics and terminations that this world cannot tell
    not_honoured  parameters that the engine does not have
    """

    table: dict[str, FloatArray]
    failed: tuple[str, ...]
    flags: dict[str, float]
    record: TrialRecorder | None
    unknown: tuple[str, ...] = ()
    not_honoured: tuple[str, ...] = ()

    @property
    def success(self) -> NDArray[np.bool_]:
        return np.array([not why for why in self.failed])


def run_trials(
    bundle: Bundle,
    task: Task,
    scenario: Scenario,
    cfg: TrialCfg,
    *,
    ranges: tuple[FloatArray, FloatArray] | None = None,
    record: bool = False,
    progress: Callable[[float], None] | None = None,
) -> Trials:
    """Run a policy through all trials of a scenario.

    ranges    low and high (nactor,) of the observations in training
    record    keep positions, targets and readings of all rows
    progress  is told the fraction done
    """
    spec = bundle.passport.policy
    world = make_world(task, scenario, spec, cfg)
    meter, kept = Meter(world, task, ranges), TrialRecorder(world) if record else None
    steps, done = round(scenario.seconds / world.control_dt), [0]

    def watch(frame: Frame, actor: Float32, standing: NDArray[np.bool_]) -> None:
        meter(frame, actor, standing)
        if kept is not None:
            kept.push()
        done[0] += 1
        if progress is not None and done[0] % 10 == 0:
            progress(done[0] / steps)

    act, seconds = bundle.runner(world.nrow).act, scenario.seconds
    played = evaluate(world, act, spec, task, world.goal, seconds, command=world.command, watch=watch, begun=True)
    table = meter.table()
    flags = {name.removeprefix(_FLAG): played.mean(name) for name in played.metrics if name.startswith(_FLAG)}
    return Trials(
        table=table,
        failed=failure_reasons(table, played.standing[-1], world, scenario.success),
        flags=flags,
        record=kept,
        unknown=played.unknown,
        not_honoured=world.not_honoured,
    )


def failure_reasons(
    table: dict[str, FloatArray], standing: NDArray[np.bool_], world: TrialWorld, criteria: Success
) -> tuple[str, ...]:
    """Why each trial failed: "fell", "diverged", or the first number that is not what was asked; "": it did not."""
    why = np.full(world.nrow, "", object)
    for name, bad in (
        ("distance", _beyond(table, "distance", criteria.distance, least=True)),
        ("turn_error", _beyond(table, "turn_error", criteria.turn_error)),
        ("error", _beyond(table, "error", criteria.error)),
        ("diverged", world.diverged),
        ("fell", ~standing),
    ):
        if bad is not None:
            why[bad] = name
    return tuple(why.tolist())


def _beyond(
    table: dict[str, FloatArray], name: str, bound: float | None, *, least: bool = False
) -> NDArray[np.bool_] | None:
    """Rows whose number is on the wrong side of a bound, or missing; None where nothing is asked or measured."""
    if bound is None or name not in table or np.isnan(table[name]).all():
        return None
    good = table[name] >= bound if least else table[name] <= bound
    return ~good
