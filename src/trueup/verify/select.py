"""Choosing the snapshot of a run that does best in the gate's scenarios; the last one need not be it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from trueup.core.errors import TrueupError
from trueup.evaluate.exam import shipped_for
from trueup.evaluate.scenarios.scale import scaled_suite
from trueup.evaluate.scenarios.suite import read_suite
from trueup.evaluate.trials.run import run_trials
from trueup.evaluate.trials.world import TrialCfg
from trueup.policy.mlp import PolicySpec
from trueup.policy.net import PolicyNet
from trueup.policy.runner import PolicyRunner
from trueup.tasks.load import load_task
from trueup.train.bundles.export import export_run
from trueup.train.folder import RunFolder
from trueup.train.train import run_env
from trueup.verify.gate import is_required

_MOST = 8  # snapshots that are tried, the newest and others spread over the second half of the run


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A snapshot and how it did: mean success rate over the scenarios that must be passed, and mean error."""

    iteration: int
    success: float
    error: float


@dataclass(frozen=True)
class _Spec:
    policy: PolicySpec


@dataclass(frozen=True)
class _Snapshot:
    """What trials need of a bundle."""

    passport: _Spec
    net: PolicyNet

    def runner(self, nrow: int) -> PolicyRunner:
        return PolicyRunner(self.net, nrow)


def select_snapshot(
    run: str | Path,
    *,
    scenarios: str | None = None,
    trials: int = 40,
    threads: int = 0,
    progress: Callable[[float], None] = lambda fraction: None,
) -> tuple[Candidate, ...]:
    """Try snapshots of a run, best first: by success rate, where that is the same by error."""
    folder = RunFolder(run)
    cfg, found = folder.config(), folder.snapshot_iterations()
    if not found:
        raise TrueupError("has no snapshots: it is too short, or of an earlier version of trueup", file=folder.path)
    late = [iteration for iteration in found if 2 * iteration >= found[-1]]
    chosen = sorted({late[k] for k in np.linspace(0, len(late) - 1, min(_MOST, len(late))).round().astype(int)})
    env = run_env(cfg, 1, threads=1)
    spec, task = env.policy_spec(), load_task(cfg.task, cfg.robot)
    suite = scaled_suite(read_suite(scenarios or shipped_for(task), (task.robot, task.name)), task.robot)
    required = [scenario for scenario in suite.scenarios if is_required(scenario, task)]
    out, total = [], len(chosen) * len(required)
    for k, iteration in enumerate(chosen):
        net = folder.policy_at(iteration)
        snapshot = _Snapshot(_Spec(spec), net)
        rates, errors = [], []
        for j, scenario in enumerate(required):
            ran = run_trials(snapshot, task, scenario, TrialCfg(trials=trials, threads=threads, vary=suite.vary))
            rates.append(ran.success.mean())
            known = ran.table["error"][np.isfinite(ran.table["error"])]
            errors.append(known.mean() if len(known) else np.inf)  # all fell before it could be measured
            progress((k * len(required) + j + 1) / total)
        out.append(Candidate(iteration=iteration, success=float(np.mean(rates)), error=float(np.mean(errors))))
    return tuple(sorted(out, key=lambda candidate: (-candidate.success, candidate.error)))


def select_bundle(run: str | Path, candidates: tuple[Candidate, ...]) -> Path:
    """Export the best of the candidates to RUN/best.bundle."""
    path = Path(run) / "best.bundle"
    export_run(run, path, checkpoint=candidates[0].iteration)
    return path
