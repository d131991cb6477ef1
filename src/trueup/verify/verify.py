"""`verify`: a bundle through the gate, from its checks to the certificate beside it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

import msgspec
import numpy as np

from trueup.core.verb_package import Shown
from trueup.evaluate.exam import Exam, open_exam
from trueup.evaluate.run import evaluate
from trueup.evaluate.scenarios.scenario import ParameterChange, Scenario
from trueup.evaluate.score import PolicyScore
from trueup.evaluate.trials.run import run_trials
from trueup.policy.bundle.bundle import load_bundle
from trueup.policy.bundle.certificate import Certificate, GateCheck, Prediction, certificate_path, write_certificate
from trueup.robot.load import load_robot
from trueup.tasks.task import Task, error_metric
from trueup.verify import gate
from trueup.verify.prediction import predict
from trueup.verify.verbs import VerifyVerb

Progress = Callable[[float], None]
FLAT = "commands"  # the scenario that engines and predictions are compared by: the task's whole range of commands
_EPISODES = 5  # of each world of a prediction
_SHARES = (0.45, 0.95)  # of the time, at which the suite and the second engine are done


@dataclass(frozen=True, kw_only=True)
class Verified(Shown):
    """The result of `tu.verify`: the certificate, scores in each engine, and where it all is."""

    certificate: Certificate
    scores: Mapping[str, PolicyScore]
    folder: Path
    path: Path

    @property
    def passed(self) -> bool:
        return self.certificate.passed


def verify(verb: VerifyVerb, progress: Progress = lambda fraction: None) -> Verified:
    """Ask all questions; scenarios that were tried before are not tried again."""
    bundle = load_bundle(verb.bundle)
    folder = Path(verb.out) if verb.out is not None else Path(f"{Path(verb.bundle)}.verified")
    exam = open_exam(
        bundle, scenarios=verb.scenarios, trials=verb.trials, params=verb.params, seed=verb.seed, threads=verb.threads
    )
    task, scenarios = exam.task, {scenario.name: scenario for scenario in exam.suite.scenarios}
    checks = [gate.parity_check(bundle), gate.robot_check(bundle, load_robot(task.robot)), gate.timing_check(bundle)]
    suite = _evaluated(verb, "mujoco", folder, verb.only, lambda done: progress(_SHARES[0] * done))
    checks += [gate.scenario_check(result, scenarios[result.name], task, "mujoco") for result in suite.results]
    checks += _missing(suite, exam.suite.scenarios, task)
    # a scenario in which the robot falls has no margins: it blocks by itself
    checks += gate.margin_checks(
        [result for result in suite.results if result.passed and gate.is_required(scenarios[result.name], task)]
    )
    scores = {"mujoco": suite}
    if why := _no_second_engine(verb):
        checks.append(GateCheck(name="sim2sim", state="skipped", asked="agrees in a second engine", found=why))
    else:
        names = tuple(result.name for result in suite.results if gate.is_required(scenarios[result.name], task))
        low, high = _SHARES
        scores["sapien"] = second = _evaluated(
            verb, "sapien", folder, names, lambda done: progress(low + (high - low) * done)
        )
        checks += [
            gate.second_check(suite[result.name], result, scenarios[result.name], task) for result in second.results
        ]
        if FLAT in names:
            checks.append(gate.engines_check(suite[FLAT], second[FLAT]))
    certificate = Certificate(
        bundle=bundle.hash,
        name=Path(verb.bundle).name.removesuffix(".bundle"),
        robot=bundle.passport.robot.name,
        task=task.name,
        trials=verb.trials,
        seed=verb.seed,
        engines=tuple(scores),
        inputs={"scenarios": suite.suite_hash, "calibration": exam.fit_hash},
        checks=tuple(checks),
        prediction=_prediction(exam, verb, scores),
    )
    progress(1.0)
    path = write_certificate(certificate, certificate_path(verb.bundle))
    return Verified(certificate=certificate.sealed(), scores=scores, folder=folder, path=path)


def as_changes(task: Task) -> dict[str, ParameterChange]:
    """The task's ranges as changes of trials: what a robot may be of which nothing is known."""
    return {
        name: msgspec.convert(
            {draw.operation: (draw.low, draw.high), "of": draw.of, "each": draw.each}, ParameterChange
        )
        for name, draw in task.randomize.items()
    }


def _evaluated(verb: VerifyVerb, engine: str, folder: Path, only: tuple[str, ...], progress: Progress) -> PolicyScore:
    return evaluate(
        verb.bundle,
        scenarios=verb.scenarios,
        only=only,
        trials=verb.trials,
        engine=engine,  # type: ignore[arg-type]
        params=verb.params,
        out=folder / engine,
        films=verb.films,
        seed=verb.seed,
        threads=verb.threads,
        progress=progress,
    )


def _missing(tried: PolicyScore, scenarios: tuple[Scenario, ...], task: Task) -> list[GateCheck]:
    """Required scenarios that were left out: without them nothing is proven."""
    done = {result.name for result in tried.results}
    return [
        GateCheck(
            name=f"mujoco/{scenario.name}",
            state="fail",
            asked=scenario.title,
            found="not tried",
            remedy="leave out --only",
        )
        for scenario in scenarios
        if scenario.name not in done and gate.is_required(scenario, task)
    ]


def _no_second_engine(verb: VerifyVerb) -> str:
    """Why there is none; empty where there is one."""
    if verb.second == "none":
        return "not asked for (--second none)"
    return "" if find_spec("sapien") else "the second engine is not installed: pip install 'trueup[physx]'"


def _prediction(exam: Exam, verb: VerifyVerb, scores: Mapping[str, PolicyScore]) -> Prediction | None:
    """What a robot will show over the whole range of commands; None where the suite or the task does not ask for it.

    With a calibration every world is a draw from its posterior, else one from the task's ranges.
    """
    flat = next((scenario for scenario in exam.suite.scenarios if scenario.name == FLAT), None)
    metric, error = error_metric(exam.task), exam.task.goal.error
    if flat is None or metric is None or error is None:
        return None
    vary = exam.suite.vary if exam.cfg.fit is not None else as_changes(exam.task)
    cfg = replace(exam.cfg, trials=_EPISODES * verb.worlds, worlds=verb.worlds, vary=vary)
    trials = run_trials(exam.bundle, exam.task, flat, cfg)
    fell = np.array([why in ("fell", "diverged") for why in trials.failed])
    known = {engine: score[FLAT].mean("error") for engine, score in scores.items() if _has(score, FLAT)}
    return predict(
        metric,
        error[1],
        trials.table["error"].reshape(_EPISODES, verb.worlds).T,
        fell.reshape(_EPISODES, verb.worlds).T,
        other_error=known.get("sapien"),
        same_error=known.get("mujoco"),
        engines=tuple(scores),
    )


def _has(score: PolicyScore, name: str) -> bool:
    return any(result.name == name for result in score.results)
