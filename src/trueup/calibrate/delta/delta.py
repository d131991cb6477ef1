"""`calibrate_delta`: learn a delta action from logs, and say how far it brings the simulator."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from trueup.calibrate.delta.config import DeltaCfg
from trueup.calibrate.delta.fit_net import fit_net
from trueup.calibrate.delta.problem import DeltaProblem
from trueup.calibrate.delta.score import HORIZONS_S, HorizonErrors, score
from trueup.calibrate.fit.fit import Progress
from trueup.core.documents import write_json
from trueup.core.errors import TrueupError
from trueup.data.files import Logs, read_logs
from trueup.models.delta_net import DeltaNet, DeltaSpec, save_delta
from trueup.robot.load import Robot, load_robot

RESULT_FILE = "result.json"
_MARGIN = 0.1  # of the width of the data's range
_RANGE_ROWS = 20_000  # that the range is taken from


@dataclass(frozen=True, kw_only=True)
class DeltaResult:
    """A delta action with its errors on held-out windows, and those of the simulator without it.

    rounds    errors that rounds were chosen by, those without a correction first
    by_joint  root mean square correction, rad
    """

    net: DeltaNet
    without: HorizonErrors
    corrected: HorizonErrors
    rounds: tuple[HorizonErrors, ...]
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
    round differentiates the simulator along the logs and fits the correction through it (`fit_net`); it is kept if the
    bodies are closer to the recorded ones on the held-out end of every log. `holdout` are logs to score on.
    """
    cfg = cfg or DeltaCfg()
    held = None if holdout is None else read_logs(holdout, mapping)
    problem = DeltaProblem(load_robot(robot), read_logs(logs, mapping), cfg, holdout=held, params=params)
    result = learn_delta(problem, progress or (lambda done: None))
    if folder is not None:
        write_delta(result, Path(folder), cfg)
    return result


def learn_delta(problem: DeltaProblem, report: Progress = lambda done: None) -> DeltaResult:
    """Rounds of linearising the simulator and fitting the correction; the best one by the ends of the logs."""
    cfg, shooting = problem.cfg, problem.shooting
    notes = list(problem.notes)
    net = best = blank_net(problem)
    lowest = score(shooting, None, problem.chosen)
    rounds: list[HorizonErrors] = [lowest]
    for k in range(cfg.rounds):
        steps = cfg.horizons[min(k, len(cfg.horizons) - 1)]
        starts = problem.starts(steps)
        data = shooting.linearise(net, starts, steps, lambda done, k=k: report((k + 0.8 * done) / cfg.rounds))  # type: ignore[misc]
        weight = 1.0 / np.maximum(np.sqrt(np.mean(data.error**2, axis=0)), 1e-6)
        net = fit_net(net, data, weight, cfg)
        rounds.append(score(shooting, net, problem.chosen))
        if _badness(rounds[-1]) < _badness(lowest):
            best, lowest = net, rounds[-1]
        report((k + 1) / cfg.rounds)
    if not best.linear.any():
        notes.append("no correction brought the simulator closer to the held-out part: the delta action is zero")
    found = best(shooting.inputs(best, problem.scored))
    return DeltaResult(
        net=best,
        without=score(shooting, None, problem.scored),
        corrected=score(shooting, best, problem.scored),
        rounds=tuple(rounds),
        windows=len(problem.scored),
        by_joint=dict(zip(shooting.robot.spec.joint_names, np.sqrt(np.mean(found**2, axis=0)).tolist(), strict=True)),
        notes=tuple(notes),
    )


def _badness(errors: HorizonErrors) -> float:
    """What rounds are chosen by: global body errors of all horizons, each of the same weight."""
    return float(np.sum(np.log(np.maximum(errors.global_mm, 1e-6))))


def blank_net(problem: DeltaProblem) -> DeltaNet:
    """A delta action of zero with the range and the normalisation of the data."""
    shooting, cfg = problem.shooting, problem.cfg
    spec = shooting.robot.spec
    unknown = sorted(set(cfg.joints) - set(spec.joint_names))
    if unknown:
        raise TrueupError(f"{spec.name} has no joints {unknown}; it has {', '.join(spec.joint_names)}", place="joints")
    corrected = tuple(k for k, name in enumerate(spec.joint_names) if not cfg.joints or name in cfg.joints)
    made = DeltaSpec(
        robot=spec.name,
        joint_names=spec.joint_names,
        default_pose=tuple(spec.default_pose.tolist()),
        corrected=corrected,
        base=shooting.base is not None,
        rate_hz=shooting.tracks.rate_hz,
        limit_rad=cfg.limit_rad,
        past=cfg.past,
    )
    zero = np.zeros(made.ninput, np.float32)
    linear = np.zeros((len(corrected), made.ninput), np.float32)
    net = DeltaNet(spec=made, linear=linear, layers=(), mean=zero, std=zero + 1.0, low=zero, high=zero)
    x = shooting.inputs(net, problem.starts(max(cfg.horizons), windows=_RANGE_ROWS))
    wide = _MARGIN * np.ptp(x, axis=0) + 1e-6
    return replace(
        net,
        std=np.maximum(np.sqrt(np.mean(x**2, axis=0)), 1e-4).astype(np.float32),  # the mean is 0: no input, none out
        low=(x.min(axis=0) - wide).astype(np.float32),
        high=(x.max(axis=0) + wide).astype(np.float32),
    )


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
        "ratio": result.ratio,
        "windows": result.windows,
        "by_joint": result.by_joint,
        "methods": beside or {},
        "notes": result.notes,
        "config": asdict(cfg),
    }
    write_json(folder / RESULT_FILE, told)
