"""Evaluate: a policy in every scenario of a suite. Results are kept, so that an interrupted run can continue."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import msgspec
import numpy as np

from trueup.core.arrays import sha256_of
from trueup.core.files import make_folder, write_atomic
from trueup.evaluate.exam import Exam, open_exam, run_scenario
from trueup.evaluate.flags import red_flags
from trueup.evaluate.scenarios.scenario import Scenario
from trueup.evaluate.score import PolicyScore, ScenarioResult, Sensitivity, write_score
from trueup.evaluate.sensitivity import BASE, find_sensitivity
from trueup.evaluate.trials.run import Bundle, Trials
from trueup.evaluate.trials.world import EngineName
from trueup.evaluate.worst import film_trial, log_trial, worst_trial
from trueup.tasks.evaluation.statistics import spread, wilson
from trueup.tasks.task import Task, error_label
from trueup.world.fitted.calibration import SimParams

T = TypeVar("T")
Progress = Callable[[float], None]
_log = logging.getLogger(__name__)


class Stopped(Exception):  # noqa: N818
    """Stop requested: results so far are kept."""


def evaluate(
    policy: Bundle | str | Path,
    *,
    scenarios: str | Path | None = None,
    only: tuple[str, ...] = (),
    trials: int = 100,
    engine: EngineName = "mujoco",
    params: SimParams | str | Path | None = None,
    sensitivity: bool = False,
    out: str | Path | None = None,
    films: bool = True,
    seed: int = 0,
    threads: int = 0,
    task: Task | str | None = None,
    progress: Progress | None = None,
    stop: threading.Event | None = None,
) -> PolicyScore:
    """Run a policy in every scenario of a suite and score it.

    policy       a bundle, or its folder
    scenarios    TOML file of a suite, or the name of a shipped one; None: the shipped one for the policy's task
    params       a calibration: fitted parameters are drawn from its posterior in each trial
    sensitivity  also find the change of each parameter at which the policy fails
    out          folder for score.json, films and logs of the worst trials; existing results are reused
    task         instead of the one that the policy names
    progress     called with the fraction done; stop: ends in order when set, results so far are kept
    """
    exam = open_exam(
        policy,
        scenarios=scenarios,
        only=only,
        trials=trials,
        engine=engine,
        params=params,
        seed=seed,
        threads=threads,
        task=task,
    )
    folder = None if out is None else make_folder(out)
    suite, done = exam.suite, Steps(len(exam.suite.scenarios), sensitivity, progress, stop)
    score = PolicyScore(
        policy=exam.name,
        bundle_hash=exam.bundle_hash,
        task=exam.task.name,
        robot=exam.task.robot,
        engine=engine,
        seed=seed,
        trials=trials,
        suite=suite.title,
        suite_hash=sha256_of([msgspec.json.encode((suite.scenarios, suite.vary))]),
        error_label=error_label(exam.task),
        fit_hash=exam.fit_hash,
        folder=folder,
    )
    results: list[ScenarioResult] = []
    found: Sensitivity | None = None
    complete = False
    try:
        for scenario in suite.scenarios:
            _log.info(scenario.title or scenario.name)
            part = done.part()
            results.append(_kept(exam, scenario, folder, films, part))
            part(1.0)  # may raise Stopped: finished scenarios count
        if sensitivity:
            _log.info("sensitivity")
            found = _sensitivity(exam, folder, done.part())
        complete = True
    except Stopped:
        _log.info("stopped")
    score = replace(score, results=tuple(results), sensitivity=found, complete=complete)
    score = replace(score, red_flags=red_flags(score))
    if folder is not None:
        write_score(score, folder)
    return score


def summed_up(scenario: Scenario, trials: Trials, key: str, took_s: float) -> ScenarioResult:
    """The result of a scenario's trials."""
    rate = wilson(int(trials.success.sum()), len(trials.failed))
    metrics = {name: found for name, values in trials.table.items() if (found := spread(values)) is not None}
    return ScenarioResult(
        name=scenario.name,
        title=scenario.title or scenario.name,
        key=key,
        rate=rate,
        least=scenario.least,
        passed=rate.low >= scenario.least,
        reasons=dict(Counter(why for why in trials.failed if why)),
        metrics=metrics,
        flags=trials.flags,
        failed=trials.failed,
        error=tuple(None if np.isnan(error) else round(float(error), 5) for error in trials.table["error"]),
        worst=worst_trial(trials),
        not_honoured=trials.not_honoured,
        unknown=trials.unknown,
        took_s=took_s,
    )


def _kept(exam: Exam, scenario: Scenario, folder: Path | None, films: bool, progress: Progress) -> ScenarioResult:
    """The result of a scenario: the one on disk if its inputs are equal, else a new one."""
    key = exam.key(scenario)
    file = None if folder is None else folder / "scenarios" / f"{scenario.name}.json"
    before = None if file is None else _read(file, ScenarioResult)
    if before is not None and before.key == key and (not films or before.film is not None):
        return before
    began = time.monotonic()
    trials = run_scenario(exam, scenario, record=folder is not None, progress=lambda done: progress(0.8 * done))
    result = summed_up(scenario, trials, key, time.monotonic() - began)
    if folder is not None and file is not None and trials.record is not None:
        name, row = f"worst/{scenario.name}", result.worst
        meta: dict[str, object] = {"policy": exam.name, "scenario": scenario.name, "trial": row, "seed": exam.cfg.seed}
        log_trial(trials.record, row, folder / f"{name}.mcap", meta)
        result = replace(result, log=f"{name}.mcap")
        if films:
            film_trial(trials.record, row, float(trials.table["seconds"][row]), folder / f"{name}.mp4")
            result = replace(result, film=f"{name}.mp4")
        write_atomic(file, msgspec.json.encode(result))
    return result


def _sensitivity(exam: Exam, folder: Path | None, progress: Progress) -> Sensitivity:
    names = [scenario.name for scenario in exam.suite.scenarios]
    base = exam.suite.scenarios[names.index(BASE) if BASE in names else 0]
    key, file = exam.key([base, exam.suite.probes]), None if folder is None else folder / "sensitivity.json"
    before = None if file is None else _read(file, Sensitivity)
    if before is not None and before.key == key:
        return before
    found = find_sensitivity(exam.bundle, exam.task, base, exam.suite.probes, exam.cfg, key, progress)
    if file is not None:
        write_atomic(file, msgspec.json.encode(found))
    return found


def _read(file: Path, kind: type[T]) -> T | None:
    """The results of an earlier run, if they can be read."""
    try:
        return msgspec.json.decode(file.read_bytes(), type=kind)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return None


class Steps:
    """Progress over parts of about equal duration (sensitivity counts as several); raises Stopped on request."""

    def __init__(self, count: int, sensitivity: bool, progress: Progress | None, stop: threading.Event | None) -> None:
        self._weights = [1.0] * count + [8.0] * sensitivity
        self._at, self._progress, self._stop = 0, progress, stop

    def part(self) -> Progress:
        """The progress of the next part."""
        before, whole, weight = sum(self._weights[: self._at]), sum(self._weights), self._weights[self._at]
        self._at += 1

        def tell(done: float) -> None:
            if self._stop is not None and self._stop.is_set():
                raise Stopped
            if self._progress is not None:
                self._progress((before + weight * done) / whole)

        tell(0.0)
        return tell
