"""Trainer: the loop of a run: iterate, record, checkpoint, stop. Its outcome depends on RunCfg, not on the clock."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from trueup.core.checkpoint import Checkpoint
from trueup.core.errors import TrueupError
from trueup.core.stop import stop_on_signal
from trueup.rl.learner import Learner
from trueup.rl.stepper import NonFiniteError
from trueup.train.config import Budget, RunCfg
from trueup.train.folder import POLICY, RunFolder, Scalars
from trueup.train.nonfinite import write_dump


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


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How a run ended: 'steps', 'minutes', 'target' or 'interrupted'."""

    reason: str
    iteration: int
    steps: int
    elapsed_s: float
    metrics: dict[str, float] = field(default_factory=dict)


@dataclass
class Periodic:
    """Work at intervals beside the training: films, assessments. True from `run` ends the training.

    `worth` tells from an iteration's metrics whether `run` is worth its time.
    """

    every_s: float
    run: Callable[[Learner], bool]
    worth: Callable[[dict[str, float]], bool] = lambda metrics: True
    last_s: float = 0.0

    def due(self, elapsed_s: float, metrics: dict[str, float]) -> bool:
        return elapsed_s - self.last_s >= self.every_s and self.worth(metrics)


class Trainer:
    """One run in its folder. A new one starts, an existing one (`resume`) continues bit for bit.

    `started` is the monotonic time from which the run's time counts: it includes the preparation.
    """

    def __init__(
        self,
        folder: RunFolder,
        cfg: RunCfg,
        learner: Learner,
        *,
        resume: bool,
        extras: tuple[Periodic, ...] = (),
        started: float | None = None,
    ) -> None:
        self.folder, self.cfg, self.extras, self.learner = folder, cfg, extras, learner
        self._before_s = 0.0
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
            self._before_s = float(found.facts["elapsed_s"])
        self._saved = time.monotonic()
        self._start = self._saved if started is None else started
        for extra in extras:
            extra.last_s = self._before_s

    @property
    def elapsed_s(self) -> float:
        """Wall-clock time of the whole run; iterations lost to a kill are not counted twice."""
        return self._before_s + time.monotonic() - self._start

    def run(self, budget: Budget, show: Callable[[Progress], None] = lambda progress: None) -> Outcome:
        """Train until the budget is spent, a target is reached or a stop is requested; ends with a checkpoint."""
        scalars, pace = Scalars(self.folder, self.learner.iteration), _Pace(self)
        metrics: dict[str, float] = {}
        try:
            with stop_on_signal() as stop:
                reason = _spent(budget, self)
                while reason is None:
                    metrics = self._iterate()
                    progress = pace.progress(budget, metrics)
                    scalars.add(_record(progress))
                    show(progress)
                    reason = "interrupted" if stop.requested else self._extras(metrics) or _spent(budget, self)
                    if reason is not None or time.monotonic() - self._saved >= budget.save_s:
                        self.save()
        finally:
            scalars.close()
            self.learner.close()
        return Outcome(
            reason=reason,
            iteration=self.learner.iteration,
            steps=self.learner.steps_done,
            elapsed_s=self.elapsed_s,
            metrics=metrics,
        )

    def save(self) -> Path:
        """Write a checkpoint: the learner's state, and its policy with the declared kind."""
        net = self.learner.policy()
        facts = {
            POLICY: msgspec.to_builtins(net.spec),
            "iteration": self.learner.iteration,
            "steps": self.learner.steps_done,
            "elapsed_s": self.elapsed_s,
            "task": self.cfg.task,
        }
        arrays = self.learner.state() | {f"{POLICY}/{name}": values for name, values in net.arrays().items()}
        path = self.folder.checkpoints.save(self.learner.iteration, Checkpoint(arrays=arrays, facts=facts))
        self._saved = time.monotonic()
        return path

    def _iterate(self) -> dict[str, float]:
        try:
            return self.learner.iterate()
        except NonFiniteError as error:
            place = write_dump(self.folder.path / "nan", self.learner.iteration, error)
            where, what_next = "", "resuming the run from its last checkpoint leads there again"
            if error.step is not None:
                where = f", step {error.step}, rows {error.rows[:8]}"
                what_next = f"state and action are kept: `trueup train --replay {place}` shows the step again"
            raise TrueupError(
                f"{error.what} is not finite in iteration {self.learner.iteration}{where}; {what_next}", file=place
            ) from error

    def _extras(self, metrics: dict[str, float]) -> str | None:
        for extra in self.extras:
            if extra.due(self.elapsed_s, metrics):
                stop = extra.run(self.learner)
                extra.last_s = self.elapsed_s
                if stop:
                    return "target"
        return None


def _spent(budget: Budget, trainer: Trainer) -> str | None:
    if budget.steps is not None and trainer.learner.steps_done >= budget.steps:
        return "steps"
    if budget.minutes is not None and trainer.elapsed_s >= 60.0 * budget.minutes:
        return "minutes"
    return None


class _Pace:
    """Steps per second, smoothed over some iterations."""

    def __init__(self, trainer: Trainer) -> None:
        self._trainer, self._rate = trainer, 0.0
        self._time, self._steps = time.monotonic(), trainer.learner.steps_done

    def progress(self, budget: Budget, metrics: dict[str, float]) -> Progress:
        trainer, now = self._trainer, time.monotonic()
        steps, elapsed = trainer.learner.steps_done, trainer.elapsed_s
        rate = (steps - self._steps) / max(now - self._time, 1e-9)
        self._rate = rate if self._rate == 0.0 else 0.8 * self._rate + 0.2 * rate
        self._time, self._steps = now, steps
        left = []
        if budget.steps is not None:
            left.append((steps / budget.steps, (budget.steps - steps) / max(self._rate, 1e-9)))
        if budget.minutes is not None:
            left.append((elapsed / (60 * budget.minutes), 60 * budget.minutes - elapsed))
        fraction, left_s = max(left) if left else (None, None)
        return Progress(
            iteration=trainer.learner.iteration,
            steps=steps,
            elapsed_s=elapsed,
            steps_per_s=self._rate,
            fraction=None if fraction is None else min(1.0, fraction),
            left_s=None if left_s is None else max(0.0, left_s),
            metrics=metrics,
        )


def _record(progress: Progress) -> dict[str, float]:
    return {
        "iteration": progress.iteration,
        "steps": progress.steps,
        "elapsed_s": round(progress.elapsed_s, 3),
        "steps_per_s": round(progress.steps_per_s, 1),
        **progress.metrics,
    }
