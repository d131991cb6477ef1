"""What a delta action is measured against, on the same logs and by the same score (`--baselines`).

    nothing         the simulator as it is
    action noise    the same commands with noise on them, as large as the learned correction
    randomisation   parameters drawn from hand-set ranges, for every window anew
    identification  parameters fitted to the logs (`trueup calibrate`): delay, friction, gains, biases, mass, contact
    as published    the same, of gains, mass and centre of mass only
    delta dynamics  a net that corrects the next state
    UAN             a residual torque that is learned from positions alone
    delta action    by PPO, as published; and fitted through the linearised simulator
    both            a delta action for what identification leaves

Noise and randomisation are ways to train under, not models of the robot: their rows say what their worlds are like.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TypeVar

import numpy as np

from trueup.calibrate.delta.beside.dynamics import DeltaDynamics
from trueup.calibrate.delta.beside.identify import identified
from trueup.calibrate.delta.beside.uan import with_uan
from trueup.calibrate.delta.config import DeltaMethod
from trueup.calibrate.delta.delta import DeltaResult, learn_delta
from trueup.calibrate.delta.problem import DeltaProblem
from trueup.calibrate.delta.score import HorizonErrors, score, score_run
from trueup.calibrate.delta.shooting import DeltaShooting
from trueup.calibrate.fit.fit import Progress
from trueup.core.arrays import FloatArray
from trueup.world.actuators.target_stages import TargetStage
from trueup.world.batch import BatchSim
from trueup.world.engines.simulation import Simulation
from trueup.world.randomization.randomize import Randomizer, joint_ranges, locomotion_ranges

_LEAST_NOISE = 0.02  # rad
_AS_GOOD = 1.05  # times the lowest error
T = TypeVar("T")
ROWS: dict[DeltaMethod, str] = {"ppo": "delta action by PPO", "shooting": "delta action"}
IDENTIFIED, BOTH = "identification", "identification and delta action"
PUBLISHED = "identification as published"
METHODS = (
    "nothing", "action noise", "randomisation", IDENTIFIED, PUBLISHED, "delta dynamics", "UAN", *ROWS.values(), BOTH,
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class ScoredMethod:
    """One method: its errors on the scored windows, and the time of the processor that it took to fit.

    rounds  errors on the way, with the time until then, of what was learned in rounds
    """

    name: str
    errors: HorizonErrors
    seconds: float
    rounds: tuple[tuple[float, HorizonErrors], ...] = ()


class ActionNoise(TargetStage):
    """Independent normal noise on every target in every control step."""

    def __init__(self, std_rad: float, seed: int) -> None:
        self.std_rad, self._random = std_rad, np.random.default_rng(seed)

    def __call__(self, targets: FloatArray, sim: Simulation) -> FloatArray:
        out: FloatArray = targets + self._random.normal(0.0, self.std_rad, targets.shape)
        return out


def score_all(
    problem: DeltaProblem, progress: Progress = lambda done: None
) -> tuple[DeltaResult, tuple[ScoredMethod, ...]]:
    """The delta action of `problem.cfg.method` and every method beside it, in the order of `METHODS`."""
    own = ROWS[problem.cfg.method]
    learned, scored = learn_scored(problem, lambda done: progress(0.4 * done))
    out, identify = [], cache(lambda: _timed(lambda: identified(problem)[0]))
    for k, name in enumerate(METHODS):
        out.append(scored if name == own else score_beside(name, problem, learned, identify))
        progress(0.4 + 0.6 * (k + 1) / len(METHODS))
    return learned, tuple(out)


def recommended(scored: Sequence[ScoredMethod]) -> str:
    """What to train under: nothing, identification, the delta action, or both, by the error at the longest horizon.

    Identification wins where it is as good as the best: its parameters hold for other motions too.
    """
    errors = {one.name: one.errors.global_mm[-1] for one in scored}
    errors = {name: errors[name] for name in ("nothing", IDENTIFIED, *ROWS.values(), BOTH) if name in errors}
    lowest = min(errors.values())
    return next(name for name, error in errors.items() if error <= _AS_GOOD * lowest)


def learn_scored(problem: DeltaProblem, progress: Progress = lambda done: None) -> tuple[DeltaResult, ScoredMethod]:
    """The delta action of `problem.cfg.method` as a row of the comparison."""
    learned, spent = _timed(lambda: learn_delta(problem, progress))
    rounds = tuple(zip(learned.round_seconds, learned.rounds, strict=True))
    row = ScoredMethod(name=ROWS[problem.cfg.method], errors=learned.corrected, seconds=spent, rounds=rounds)
    return learned, row


def score_beside(
    name: str, problem: DeltaProblem, learned: DeltaResult, identify: Callable[[], tuple[DeltaShooting, float]]
) -> ScoredMethod:
    """One of `METHODS`; noise is as large as the correction of `learned`.

    identify  gives the identified simulator and the processor time that finding it took
    """
    for method, row in ROWS.items():
        if name == row:
            return learn_scored(problem.by(method))[1]
    if name in (IDENTIFIED, BOTH):
        shooting, seconds = identify()
        if name == IDENTIFIED:
            return ScoredMethod(name=name, errors=score(shooting, None, problem.scored), seconds=seconds)
        found = learn_scored(problem.on(shooting))[1]
        return replace(found, name=BOTH, seconds=found.seconds + seconds, rounds=())
    std = float(np.sqrt(np.mean(np.square(list(learned.by_joint.values()))))) or _LEAST_NOISE
    work: dict[str, Callable[[], HorizonErrors]] = {
        "nothing": lambda: learned.without,
        "action noise": lambda: _under_noise(problem, std),
        "randomisation": lambda: _randomised(problem),
        "delta dynamics": lambda: _by_dynamics(problem),
        PUBLISHED: lambda: score(identified(problem, published=True)[0], None, problem.scored),
        "UAN": lambda: score(with_uan(problem), None, problem.scored),
    }
    errors, seconds = _timed(work[name])
    return ScoredMethod(name=name, errors=errors, seconds=seconds)


def _by_dynamics(problem: DeltaProblem) -> HorizonErrors:
    run = DeltaDynamics(problem).run(problem.scored, problem.steps)
    return score_run(problem.shooting, run, problem.scored)


def _under_noise(problem: DeltaProblem, std: float) -> HorizonErrors:
    run = problem.shooting.run(problem.scored, problem.steps, (ActionNoise(std, problem.cfg.seed),))
    return score_run(problem.shooting, run, problem.scored)


def _randomised(problem: DeltaProblem) -> HorizonErrors:
    shooting, spec = problem.shooting, problem.robot.spec
    ranges = locomotion_ranges(spec.base.body) if shooting.tracks.base_pos is not None else joint_ranges()

    def draw(sim: BatchSim) -> None:
        if shooting.prepare is not None:
            shooting.prepare(sim)
        Randomizer(sim, ranges).apply()

    return score(shooting.prepared(draw), None, problem.scored)


def _timed(work: Callable[[], T]) -> tuple[T, float]:
    began = time.process_time()
    return work(), time.process_time() - began
