"""Exam: a policy, the task and the suite it is tested by, and how its trials are drawn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from trueup._version import __version__
from trueup.core.arrays import FloatArray, sha256_of
from trueup.core.errors import TrueupError
from trueup.evaluate.scenarios.scale import scaled_suite
from trueup.evaluate.scenarios.scenario import Scenario
from trueup.evaluate.scenarios.suite import Suite, read_suite
from trueup.evaluate.trials.run import Bundle, Trials, run_trials
from trueup.evaluate.trials.world import EngineName, TrialCfg
from trueup.policy.bundle.bundle import load_bundle
from trueup.tasks.load import load_task
from trueup.tasks.task import Task
from trueup.world.fitted.calibration import SimParams, read_calibration

Progress = Callable[[float], None]
_FOLLOWED = ("forward", "sideways", "turn")


@dataclass(frozen=True, kw_only=True)
class Exam:
    """All inputs of one policy's evaluation."""

    bundle: Bundle
    name: str
    bundle_hash: str
    task: Task
    suite: Suite
    cfg: TrialCfg
    fit_hash: str = ""

    @property
    def ranges(self) -> tuple[FloatArray, FloatArray] | None:
        """Least and largest observation of training, (nactor,) each, if the policy's passport has them."""
        found: tuple[FloatArray, FloatArray] | None = getattr(self.bundle.passport, "bounds", None)
        return found

    def key(self, what: object) -> str:
        """Hash of a result's inputs."""
        cfg = self.cfg
        facts = (__version__, self.bundle_hash, self.task.name, cfg.trials, cfg.seed, cfg.engine, self.fit_hash)
        return sha256_of([repr(facts), msgspec.json.encode([what, self.suite.vary])])


def open_exam(
    policy: Bundle | str | Path,
    *,
    scenarios: str | Path | None = None,
    only: tuple[str, ...] = (),
    trials: int = 100,
    engine: EngineName = "mujoco",
    params: SimParams | str | Path | None = None,
    seed: int = 0,
    threads: int = 0,
    task: Task | str | None = None,
) -> Exam:
    """Open policy, task, suite and calibration (options: `evaluate.run.evaluate`); errors come before anything runs."""
    if not 1 <= trials <= 100_000:
        raise TrueupError(f"trials must lie in 1 .. 100000, found {trials}")
    bundle: Bundle = load_bundle(policy) if isinstance(policy, str | Path) else policy
    spec = bundle.passport.policy
    known = task if isinstance(task, Task) else load_task(task or spec.task)
    suite = read_suite(scenarios or shipped_for(known), (known.robot, known.name)).only(only)
    suite = scaled_suite(suite, known.robot)
    fit = read_calibration(params) if isinstance(params, str | Path) else params
    return Exam(
        bundle=bundle,
        name=Path(getattr(bundle, "path", spec.task)).stem,
        bundle_hash=str(getattr(bundle, "hash", "")),
        task=known,
        suite=suite,
        cfg=TrialCfg(trials=trials, seed=seed, engine=engine, threads=threads, fit=fit, vary=suite.vary),
        fit_hash="" if fit is None else sha256_of([msgspec.json.encode(fit)]),
    )


def shipped_for(task: Task) -> str:
    """The shipped suite that a task's goal is tested by."""
    if task.goal.columns == _FOLLOWED:
        return "locomotion"
    if task.goal.error is not None and task.goal.error[1] == "m":
        return "arm"
    raise TrueupError(
        f"task {task.name!r} asks neither for velocities nor for a place to reach: no shipped suite tests that; "
        "write one and name it (--scenarios FILE)"
    )


def run_scenario(exam: Exam, scenario: Scenario, *, record: bool = False, progress: Progress | None = None) -> Trials:
    """All trials of one scenario."""
    return run_trials(exam.bundle, exam.task, scenario, exam.cfg, ranges=exam.ranges, record=record, progress=progress)
