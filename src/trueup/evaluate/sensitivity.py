"""Sensitivity: the parameter changes at which a policy fails; one at a time, and two at once.

All levels of a parameter are one batch. Level by level a parameter moves away from the robot's own value; its margin is
the last level before success falls below 90 %. Pairs are tried with each parameter two thirds of the way to its margin,
so that neither would matter alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations

import msgspec
import numpy as np

from trueup.core.arrays import FloatArray
from trueup.evaluate.scenarios.scenario import Probe, Scenario
from trueup.evaluate.score import PairResult, ProbeResult, Sensitivity
from trueup.evaluate.trials.run import Bundle, run_trials
from trueup.evaluate.trials.world import TrialCfg
from trueup.tasks.evaluation.statistics import Rate, wilson
from trueup.tasks.task import Task

BASE = "forward"  # base scenario if a suite has it; else its first
SENSITIVE = 0.9  # success rate
TRIALS, PAIR_TRIALS = 30, 20
_MOST_ROWS = 600  # of a batch
_SECONDS = 8.0
_PART = 2.0 / 3.0
Progress = Callable[[float], None]
Levels = Mapping[str, float]  # by the titles of probes


def find_sensitivity(
    bundle: Bundle,
    task: Task,
    base: Scenario,
    probes: Sequence[Probe],
    cfg: TrialCfg,
    key: str = "",
    progress: Progress | None = None,
) -> Sensitivity:
    """Try every parameter at its levels, then the most sensitive in pairs."""
    asker = Asker(bundle, task, msgspec.structs.replace(base, seconds=min(base.seconds, _SECONDS)), probes, cfg)
    tell = progress or (lambda done: None)
    trials = min(TRIALS, cfg.trials)
    (nominal,) = asker.ask([{}], trials)
    found: list[ProbeResult] = []
    for k, probe in enumerate(probes):
        tell(0.7 * k / len(probes))
        rates = asker.ask([{probe.title: level} for level in probe.levels], trials)
        found.append(_margin(probe, rates))
    far = {sensitivity.title: _part_way(probe, sensitivity) for probe, sensitivity in zip(probes, found, strict=True)}
    pairs = [pair for pair in combinations(probes, 2) if pair[0].param != pair[1].param]
    cases = [{probed.title: far[probed.title] for probed in pair} for pair in pairs]
    rates = asker.ask(cases, min(PAIR_TRIALS, cfg.trials), lambda done: tell(0.7 + 0.3 * done))
    together = [
        PairResult(titles=(a.title, b.title), levels=(far[a.title], far[b.title]), rate=rate)
        for (a, b), rate in zip(pairs, rates, strict=True)
    ]
    return Sensitivity(
        key=key,
        base=base.name,
        trials=trials,
        nominal=nominal,
        probes=tuple(found),
        pairs=tuple(sorted(together, key=lambda combined: combined.rate.share)),
    )


class Asker:
    """Measures a policy's success at given parameter levels; cases are rows of one batch, a few hundred at a time."""

    def __init__(self, bundle: Bundle, task: Task, base: Scenario, probes: Sequence[Probe], cfg: TrialCfg) -> None:
        self._bundle, self._task, self._base, self._cfg = bundle, task, base, cfg
        self._probes = {probe.title: probe for probe in probes}

    def ask(self, cases: Sequence[Levels], trials: int, progress: Progress | None = None) -> list[Rate]:
        """Success of each case over `trials`."""
        size, out = max(1, _MOST_ROWS // trials), []
        for start in range(0, len(cases), size):
            out += self._ask(cases[start : start + size], trials)
            if progress is not None:
                progress(min(1.0, (start + size) / len(cases)))
        return out

    def _ask(self, cases: Sequence[Levels], trials: int) -> list[Rate]:
        moved = []
        for title in dict.fromkeys(title for case in cases for title in case):
            probe = self._probes[title]
            numbers: FloatArray = np.repeat([case.get(title, np.nan) for case in cases], trials)[:, None]
            moved.append((probe.param, probe.change(probe.levels[0]), numbers))
        cfg = replace(self._cfg, trials=trials * len(cases), moved=tuple(moved))
        success = run_trials(self._bundle, self._task, self._base, cfg).success.reshape(len(cases), trials)
        return [wilson(int(trial.sum()), trials) for trial in success]


def _margin(probe: Probe, rates: Sequence[Rate]) -> ProbeResult:
    good = [rate.share >= SENSITIVE for rate in rates]
    reached = good.index(False) if False in good else len(good)
    return ProbeResult(
        title=probe.title,
        param=probe.param,
        unit=probe.unit,
        operation=probe.operation,
        levels=probe.levels,
        rates=tuple(rates),
        margin=probe.levels[reached - 1] if reached else None,
        breaks=probe.levels[reached] if reached < len(good) else None,
    )


def _part_way(probe: Probe, found: ProbeResult) -> float:
    """From where it does nothing, a part of the way to its margin; half of that to a first level that breaks."""
    neutral = 1.0 if probe.operation == "scale" or probe.param == "sensor_noise" else _neutral_set(probe)
    if found.margin is not None:
        return neutral + _PART * (found.margin - neutral)
    return neutral + 0.5 * _PART * (probe.levels[0] - neutral)


def _neutral_set(probe: Probe) -> float:
    """Of a parameter that is set or added to: zero; of ground friction, a step before its first level."""
    if probe.operation == "set" and len(probe.levels) > 1 and probe.levels[1] < probe.levels[0]:
        return 2.0 * probe.levels[0] - probe.levels[1]
    return 0.0
