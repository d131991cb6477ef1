"""Trainer: the loop of a run: iterate, record, checkpoint, stop. Its outcome depends on RunCfg, not on the clock."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from trueup.core.checkpoint import Checkpoint, write_checkpoint
from trueup.core.errors import TrueupError
from trueup.core.stop import stop_on_signal
from trueup.rl.learner import Learner
from trueup.rl.stepper import NonFiniteError
from trueup.train.config import Budget
from trueup.train.folder import POLICY, RunFolder, Scalars

_SLOWEST = 4.0  # times slower than at its best, at most


@dataclass(frozen=True, kw_only=True)
class Progress:
    """Progress of a run: `fraction` of the budget, `left_s` at the present pace; None without a limit."""

    iteration: int
    steps: int
    elapsed_s: float
    steps_per_s: float
    fraction: float | None
    left_s: float | None
    metrics: dict[str, float]

    def record(self) -> dict[str, float]:
        """Write the records of an iteration."""
        spent = {"elapsed_s": round(self.elapsed_s, 3), "steps_per_s": round(self.steps_per_s, 1)}
        return {"iteration": self.iteration, "steps": self.steps, **spent, **self.metrics}


@dataclass(frozen=True, kw_only=True)
class TrainingOutcome:
    """How a run ended: 'steps', 'minutes', 'target' or 'interrupted'."""

    reason: str
    iteration: int
    steps: int
    elapsed_s: float
    metrics: dict[str, float] = field(default_factory=dict)


@dataclass
class Periodic:
    """A periodic task during training: films, assessments. `run` returns True to end the training.

    `worth` tells from an iteration's metrics whether `run` is worth its time.
    """

    every_s: float
    run: Callable[[Learner], bool]
    worth: Callable[[dict[str, float]], bool] = lambda metrics: True
    last_s: float = 0.0


class Trainer:
    """One run in its folder. A new one starts, an existing one (`resume`) continues bit for bit.

    `started` is the monotonic time from which the run's time counts: it includes the preparation.
    `reserve_s` of a budget of minutes is left for what follows, and more where training has become slower.
    """

    def __init__(
        self,
        folder: RunFolder,
        learner: Learner,
        extras: tuple[Periodic, ...],
        *,
        resume: bool,
        started: float,
        reserve_s: float = 0.0,
    ) -> None:
        self.folder, self.learner, self.extras = folder, learner, extras
        self._start, self._reserve_s = started, reserve_s
        self._iteration_s, self._slower, self._best_pace = 0.0, 1.0, 0.0
        found = folder.checkpoints.newest() if resume else None
        if found is not None:
            try:
                self.learner.restore(found.arrays)
            except KeyError as error:
                raise TrueupError(
                    f"this run cannot go on: its checkpoint lacks {error.args[0]!r} and was written by another version"
                    " of trueup; play it (`trueup play`), or train anew in another folder",
                    file=folder.path,
                ) from error
            self._start -= float(found.facts["elapsed_s"])
        self._saved = time.monotonic()
        for extra in extras:
            extra.last_s = started - self._start

    @property
    def elapsed_s(self) -> float:
        """Wall-clock time of the whole run; iterations lost to a kill are not counted twice."""
        return time.monotonic() - self._start

    def run(self, budget: Budget, show: Callable[[Progress], None] = lambda progress: None) -> TrainingOutcome:
        """Train until the budget is spent, a target is reached or a stop is requested; ends with a checkpoint."""
        scalars, learner, pace = Scalars(self.folder, self.learner.iteration), self.learner, 0.0
        metrics: dict[str, float] = {}
        last = time.monotonic()
        try:
            with stop_on_signal() as stop_requested:
                reason = self._spent(budget)
                while reason is None:
                    steps = learner.steps_done
                    metrics = self._iterate()
                    before, last = last, time.monotonic()
                    self._iteration_s = last - before
                    newest = (learner.steps_done - steps) / max(last - before, 1e-9)
                    pace = 0.8 * pace + 0.2 * newest if pace else newest  # smoothed over some iterations
                    self._best_pace = max(self._best_pace, pace)
                    self._slower = min(_SLOWEST, self._best_pace / max(pace, 1e-9))
                    progress = self._progress(budget, pace, metrics)
                    scalars.add(progress.record())
                    self.folder.keep_snapshot(learner.iteration, self._policy)
                    show(progress)
                    reason = "interrupted" if stop_requested.is_set() else self._extras(metrics) or self._spent(budget)
                    if reason is not None or time.monotonic() - self._saved >= budget.save_s:
                        self.save()
        finally:
            scalars.close()
            learner.close()
        return TrainingOutcome(
            reason=reason,
            iteration=learner.iteration,
            steps=learner.steps_done,
            elapsed_s=self.elapsed_s,
            metrics=metrics,
        )

    def save(self) -> Path:
        """Write a checkpoint: the learner's state, and its policy with the declared kind."""
        policy = self._policy()
        whole = Checkpoint(arrays=self.learner.state() | policy.arrays, facts=policy.facts)
        path = self.folder.checkpoints.save(self.learner.iteration, whole)
        self._saved = time.monotonic()
        return path

    def _policy(self) -> Checkpoint:
        net = self.learner.policy()
        facts = {
            POLICY: msgspec.to_builtins(net.spec),
            "iteration": self.learner.iteration,
            "steps": self.learner.steps_done,
            "elapsed_s": self.elapsed_s,
        }
        return Checkpoint(arrays={f"{POLICY}/{name}": value for name, value in net.arrays().items()}, facts=facts)

    def _iterate(self) -> dict[str, float]:
        """An iteration; where a number is not finite, the step in which it appeared is written to RUN/nan."""
        iteration = self.learner.iteration
        try:
            return self.learner.iterate()
        except NonFiniteError as error:
            facts = {"what": error.what, "iteration": iteration, "step": error.step, "rows": error.rows[:64]}
            place = write_checkpoint(self.folder.path / "nan", Checkpoint(arrays=error.before, facts=facts))
            where, what_next = "", "resuming the run from its last checkpoint leads there again"
            if error.step is not None:
                where = f", step {error.step}, rows {error.rows[:8]}"
                what_next = f"state and action are kept: `trueup train --replay {place}` shows the step again"
            raise TrueupError(
                f"{error.what} is not finite in iteration {iteration}{where}; {what_next}", file=place
            ) from error

    def _extras(self, metrics: dict[str, float]) -> str | None:
        for extra in self.extras:
            if self.elapsed_s - extra.last_s >= extra.every_s and extra.worth(metrics):
                stop = extra.run(self.learner)
                extra.last_s = self.elapsed_s
                if stop:
                    return "target"
        return None

    def _spent(self, budget: Budget) -> str | None:
        if budget.steps is not None and self.learner.steps_done >= budget.steps:
            return "steps"
        too_late = budget.minutes is not None and self.elapsed_s + self._needed_s >= 60.0 * budget.minutes
        if too_late and self.learner.iteration > 0:  # the first is done in any case: there must be a policy
            return "minutes"
        return None

    @property
    def _needed_s(self) -> float:
        """Time for the end of the run and one more iteration, s."""
        return self._slower * self._reserve_s + self._iteration_s if self._reserve_s else 0.0

    def _progress(self, budget: Budget, pace: float, metrics: dict[str, float]) -> Progress:
        steps, elapsed, left = self.learner.steps_done, self.elapsed_s, []
        if budget.steps is not None:
            left.append((steps / budget.steps, (budget.steps - steps) / max(pace, 1e-9)))
        if budget.minutes is not None:
            left.append((elapsed / (60 * budget.minutes), 60 * budget.minutes - elapsed))
        fraction, left_s = max(left, default=(None, None))
        return Progress(
            iteration=self.learner.iteration,
            steps=steps,
            elapsed_s=elapsed,
            steps_per_s=pace,
            fraction=None if fraction is None else min(1.0, fraction),
            left_s=None if left_s is None else max(0.0, left_s),
            metrics=metrics,
        )
