"""What a delta action is measured against, on the same logs and by the same score (`--baselines`).

    nothing         the simulator as it is
    action noise    the same commands with noise on them, as large as the learned correction
    randomisation   parameters drawn from hand-set ranges, for every window anew
    identification  parameters fitted to the logs (`trueup calibrate`)
    delta dynamics  a net that corrects the next state
    delta action

Noise and randomisation are ways to train under, not models of the robot: their rows say what their worlds are like.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from trueup.calibrate.delta.delta import DeltaResult, learn_delta
from trueup.calibrate.delta.dynamics import DeltaDynamics
from trueup.calibrate.delta.identify import identified
from trueup.calibrate.delta.problem import DeltaProblem
from trueup.calibrate.delta.score import HorizonErrors, score, score_run
from trueup.calibrate.fit.fit import Progress
from trueup.core.arrays import FloatArray
from trueup.world.actuators.target_stages import TargetStage
from trueup.world.batch import BatchSim
from trueup.world.engines.simulation import Simulation
from trueup.world.randomization.randomize import Randomizer, joint_ranges, locomotion_ranges

_LEAST_NOISE = 0.02  # rad
T = TypeVar("T")
METHODS = ("nothing", "action noise", "randomisation", "identification", "delta dynamics", "delta action")


@dataclass(frozen=True, kw_only=True)
class ScoredMethod:
    """One method: its errors on the scored windows, and the time of the processor that it took to fit."""

    name: str
    errors: HorizonErrors
    seconds: float


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
    """The delta action and every method beside it, in the order of `METHODS`."""
    learned, spent = _timed(lambda: learn_delta(problem, lambda done: progress(0.5 * done)))
    out = []
    for k, name in enumerate(METHODS[:-1]):
        out.append(score_beside(name, problem, learned))
        progress(0.5 + 0.1 * (k + 1))
    return learned, (*out, ScoredMethod(name=METHODS[-1], errors=learned.corrected, seconds=spent))


def score_beside(name: str, problem: DeltaProblem, learned: DeltaResult) -> ScoredMethod:
    """One of `METHODS` but the last."""
    std = float(np.sqrt(np.mean(np.square(list(learned.by_joint.values()))))) or _LEAST_NOISE
    work: dict[str, Callable[[], HorizonErrors]] = {
        "nothing": lambda: learned.without,
        "action noise": lambda: _under_noise(problem, std),
        "randomisation": lambda: _randomised(problem),
        "identification": lambda: score(identified(problem)[0], None, problem.scored),
        "delta dynamics": lambda: _by_dynamics(problem),
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
