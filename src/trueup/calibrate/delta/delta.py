"""`calibrate_delta`: learn a delta action from logs, and say how far it brings the simulator."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from trueup.calibrate.delta.config import DeltaCfg, DeltaMethod
from trueup.calibrate.delta.fit_net import fit_net
from trueup.calibrate.delta.ppo import ppo_rounds
from trueup.calibrate.delta.problem import DeltaProblem
from trueup.calibrate.delta.score import HORIZONS_S, HorizonErrors, score
from trueup.calibrate.fit.fit import Progress
from trueup.core.documents import write_json
from trueup.data.files import Logs, read_logs
from trueup.models.delta_net import DeltaNet, save_delta
from trueup.robot.load import Robot, load_robot

RESULT_FILE = "result.json"


@dataclass(frozen=True, kw_only=True)
class DeltaResult:
    """A delta action with its errors on held-out windows, and those of the simulator without it.

    rounds    errors that rounds were chosen by, those without a correction first
    round_seconds  time of the processor that learning had taken until then
    by_joint  root mean square correction, rad
    """

    net: DeltaNet
    without: HorizonErrors
    corrected: HorizonErrors
    rounds: tuple[HorizonErrors, ...]
    round_seconds: tuple[float, ...]
    windows: int
    by_joint: dict[str, float]
    notes: tuple[str, ...]

    @property
    def ratio(self) -> float:
        """Global body error at the longest horizon over that without a correction."""
        return self.corrected.global_mm[-1] / max(self.without.global_mm[-1], 1e-9)


def calibrate_delta(
    robot: Robot | str,
    logs: Logs,
    cfg: DeltaCfg | None = None,
    *,
    holdout: Logs | None = None,
    params: str | Path | None = None,
    mapping: str | None = None,
    folder: str | Path | None = None,
    progress: Progress | None = None,
) -> DeltaResult:
    """Learn the correction of joint targets under which the simulator does what the robot did.

    Simulations start in recorded states and play the recorded commands (`params`: in a calibrated simulator). Each
    round differentiates the simulator along the logs and fits the correction through it (`fit_net`), or trains it by
    reinforcement learning as published (`ppo`); it is kept if the bodies are closer to the recorded ones on the
    held-out end of every log. `holdout` are logs to score on.
    """
    cfg = cfg or DeltaCfg()
    held = None if holdout is None else read_logs(holdout, mapping)
    problem = DeltaProblem(load_robot(robot), read_logs(logs, mapping), cfg, holdout=held, params=params)
    result = learn_delta(problem, progress or (lambda done: None))
    if folder is not None:
        write_delta(result, Path(folder), cfg)
    return result


def learn_delta(problem: DeltaProblem, report: Progress = lambda done: None) -> DeltaResult:
    """Candidates of `cfg.method`, one after the other; the best one by the ends of the logs."""
    shooting = problem.shooting
    notes = list(problem.notes)
    best = problem.blank()
    lowest = score(shooting, None, problem.chosen)
    rounds, seconds = [lowest], [0.0]
    began = time.process_time()
    for net in _METHODS[problem.cfg.method](problem, report):
        seconds.append(seconds[-1] + time.process_time() - began)
        rounds.append(score(shooting, net, problem.chosen))
        if _badness(rounds[-1]) < _badness(lowest):
            best, lowest = net, rounds[-1]
        began = time.process_time()
    if not best.linear.any() and not best.layers:
        notes.append("no correction brought the simulator closer to the held-out part: the delta action is zero")
    found = best(shooting.inputs(best, problem.scored))
    return DeltaResult(
        net=best,
        without=score(shooting, None, problem.scored),
        corrected=score(shooting, best, problem.scored),
        rounds=tuple(rounds),
        round_seconds=tuple(seconds),
        windows=len(problem.scored),
        by_joint=dict(zip(shooting.robot.spec.joint_names, np.sqrt(np.mean(found**2, axis=0)).tolist(), strict=True)),
        notes=tuple(notes),
    )


def shooting_rounds(problem: DeltaProblem, report: Progress) -> Iterator[DeltaNet]:
    """The net after each round of linearising the simulator along the logs and fitting the correction."""
    cfg, net = problem.cfg, problem.blank()
    for k in range(cfg.rounds):

        def within(done: float, k: int = k) -> None:
            report((k + 0.8 * done) / cfg.rounds)

        steps = cfg.horizons[min(k, len(cfg.horizons) - 1)]
        data = problem.shooting.linearise(net, problem.starts(steps), steps, within)
        weight = 1.0 / np.maximum(np.sqrt(np.mean(data.error**2, axis=0)), 1e-6)
        net = fit_net(net, data, weight, cfg)
        yield net
        report((k + 1) / cfg.rounds)


_METHODS: dict[DeltaMethod, Callable[[DeltaProblem, Progress], Iterator[DeltaNet]]] = {
    "shooting": shooting_rounds,
    "ppo": ppo_rounds,
}


def _badness(errors: HorizonErrors) -> float:
    """What rounds are chosen by: global body errors of all horizons, each of the same weight."""
    return float(np.sum(np.log(np.maximum(errors.global_mm, 1e-6))))


def write_delta(
    result: DeltaResult, folder: Path, cfg: DeltaCfg, beside: dict[str, dict[str, tuple[float, ...]]] | None = None
) -> None:
    """Write the artifact and DIR/result.json; `beside` has the errors of other methods by name."""
    save_delta(result.net, folder)
    told = {
        "horizons_s": HORIZONS_S,
        "without": result.without._asdict(),
        "corrected": result.corrected._asdict(),
        "rounds": [one._asdict() for one in result.rounds],
        "round_seconds": result.round_seconds,
        "ratio": result.ratio,
        "windows": result.windows,
        "by_joint": result.by_joint,
        "methods": beside or {},
        "notes": result.notes,
        "config": asdict(cfg),
    }
    write_json(folder / RESULT_FILE, told)
