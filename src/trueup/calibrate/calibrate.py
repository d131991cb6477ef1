"""`calibrate`: from logs to a simulator that fits, with intervals, verdicts and held-out scores."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib import metadata
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from trueup._version import __version__
from trueup.calibrate.data.holdout import Split, by_gain, hold_out
from trueup.calibrate.data.prepare import check, moves, ready
from trueup.calibrate.data.windows import WindowCfg
from trueup.calibrate.fit.baselines import BASELINES
from trueup.calibrate.fit.checkpoint import Checkpoint, problem_key
from trueup.calibrate.fit.fit import FitCfg, Fitter, Progress, Solution
from trueup.calibrate.fit.problem import Problem, ProblemCfg, make_problem
from trueup.calibrate.fit.residuals import Shooting, as_delivered
from trueup.calibrate.fit.time_step import step_effect, step_notes
from trueup.calibrate.judge.alarms import found_alarms
from trueup.calibrate.judge.judge import Judged, judge, still_joints
from trueup.calibrate.judge.predictive import predictive_check
from trueup.calibrate.judge.score import Scored, score
from trueup.calibrate.judge.uncertainty import Posterior
from trueup.calibrate.judge.valleys import settled
from trueup.calibrate.parameters import Tie, parameter_names
from trueup.core.errors import TrueupError
from trueup.data.log import Log
from trueup.robot.load import Robot
from trueup.world.batch import BatchSim, SimCfg
from trueup.world.fitted.calibration import Calibration, Effort, Predictive, write_calibration
from trueup.world.fitted.fit_parameter import FitParameter
from trueup.world.fitted.sim_params import SCHEMA

FloatArray = NDArray[np.float64]
_LOG = logging.getLogger(__name__)
_FITTED, _JUDGED = 0.5, 0.9  # of the time, usually, when the fit is done, and when it is judged


@dataclass(frozen=True, kw_only=True)
class CalibrateCfg:
    """What to fit and how.

    params    "pace", "full", "contact", or names: "armature,delay", "pace,kp"
    tie       "side": left and right joints share their values; "kind": the same joint of every leg or arm does
    bodies    whose mass and centre of mass are fitted, if asked for
    base      "fixed": held in the air or bolted down; "free": needs the base's state in the log
    holdout   share that is kept for scoring when no held-out logs are given: see `holdout`
    physics_hz  at least, for the result; what a coarser step gets wrong would be put into armature and delay (at
                200 Hz: 20 % and 0.8 ms on a go2). Set it to your training rate to fit that step's errors on purpose.
    check     refuse logs that the validator calls unusable
    """

    params: str = "pace"
    tie: Tie = "none"
    bodies: tuple[str, ...] = ()
    base: Literal["fixed", "free"] = "fixed"
    holdout: float = 0.25
    physics_hz: float = 1000.0
    check: bool = True
    window: WindowCfg = field(default_factory=WindowCfg)
    fit: FitCfg = field(default_factory=FitCfg)

    def __post_init__(self) -> None:
        if not 0.0 <= self.holdout <= 0.8:
            raise TrueupError(f"holdout is a fraction between 0 and 0.8, found {self.holdout}")


@dataclass(frozen=True, kw_only=True)
class Fit:
    """A calibration with what the report draws: posterior, and replays of the held-out (else the fitted) logs."""

    calibration: Calibration
    posterior: Posterior
    shown: tuple[Log, ...]
    nominal: Scored
    calibrated: Scored

    def apply(self, sim: BatchSim) -> None:
        self.calibration.apply(sim)

    def write(self, folder: str | Path) -> Path:
        """Write DIR/params.json; the state of a fit that came to its end is no longer needed."""
        path = write_calibration(self.calibration, folder)
        if not self.calibration.effort.interrupted:
            Checkpoint(folder).clear()
        return path


def calibrate(
    robot: Robot,
    logs: Sequence[Log],
    cfg: CalibrateCfg | None = None,
    *,
    holdout: Sequence[Log] = (),
    start: Calibration | None = None,
    progress: Progress | None = None,
    folder: str | Path | None = None,
    resume: bool = False,
) -> Fit:
    """Fit the robot's parameters to logs and score the fit on data it has not seen.

    holdout  logs to score on; without, a part is kept back (cfg.holdout): a gain, whole logs, or the end of the log
    start    an earlier calibration to begin from
    folder   keeps the state of the fit while it runs; `resume` goes on from what a killed one left there
    """
    cfg = cfg or CalibrateCfg()
    began = time.monotonic()
    notes = check(robot, (*logs, *holdout), refuse=cfg.check)
    logs, holdout = ready(robot, logs, holdout)
    split = _split(logs, holdout, cfg)
    problem = make_problem(robot, split.train, _problem_cfg(cfg), whole=cfg.fit.method in BASELINES)
    shooting = problem.fine
    if cfg.base == "fixed":
        moves(robot, still_joints(shooting.windows))
    told = progress or (lambda fraction: None)
    checkpoint = None if folder is None else Checkpoint(folder)
    solution = _solve(problem, cfg, start, lambda done: told(_FITTED * done), checkpoint, resume)
    _LOG.info("intervals and verdicts")
    if cfg.fit.method not in BASELINES and not solution.interrupted:
        solution = settled(shooting, solution, cfg.fit.loss)
    effort = _effort(problem, solution, time.monotonic() - began)
    judged = judge(shooting, solution, cfg.fit.loss)
    effect = step_effect(shooting, solution.x, solution.residuals, solution.jacobian)
    told(_JUDGED)
    _LOG.info("scores")
    coarse = step_notes(shooting.parameters, solution.x, judged.posterior.deviation, effect)
    before = score(robot, split.train, as_delivered(shooting.cfg))
    draft = Calibration(
        schema=SCHEMA,
        robot=robot.spec.name,
        joint_names=robot.spec.joint_names,
        estimates=judged.estimates,
        x=judged.x.tolist(),
        covariance=judged.posterior.covariance.tolist(),
        misfit=judged.misfit,
        effort=effort,
        fit_nominal=before.score,
        fit_calibrated=before.score,
        holdout_nominal=None,
        holdout_calibrated=None,
        provenance=_provenance(logs, holdout, cfg, shooting.cfg.physics_hz),
        notes=tuple(
            dict.fromkeys(
                [*notes, *shooting.windows.notes, *judged.notes, *coarse, *_end_notes(solution), split.how]
            )
        ),
        ratios=judged.ratios,
        predictive=_predictive(shooting, solution, judged, split.held),
    )
    done = _scored(robot, draft, split.train, split.held, shooting.cfg, judged.posterior, before)
    alarms = found_alarms(done.calibration)
    told(1.0)
    return replace(done, calibration=msgspec.structs.replace(done.calibration, alarms=alarms))


def _predictive(
    shooting: Shooting, solution: Solution, judged: Judged, held: Sequence[Log]
) -> Predictive | None:
    if not held or shooting.windows.base_quat is not None:
        return None  # on the ground whole logs replayed open loop part ways at the first contact
    return predictive_check(shooting, solution, judged.x, judged.posterior.covariance, held)


def _split(logs: Sequence[Log], holdout: Sequence[Log], cfg: CalibrateCfg) -> Split:
    if not holdout:
        fits_gains = bool({"kp", "kd"} & set(parameter_names(cfg.params)))
        return hold_out(logs, cfg.holdout, fits_gains=fits_gains)
    train, held = ([part for log in group for part in by_gain(log)] for group in (logs, holdout))
    return Split(train=train, held=held, how="held out: the logs given for it")


def _problem_cfg(cfg: CalibrateCfg) -> ProblemCfg:
    return ProblemCfg(
        params=cfg.params,
        tie=cfg.tie,
        bodies=cfg.bodies,
        free_base=cfg.base == "free",
        physics_hz=cfg.physics_hz,
        window=cfg.window,
    )


def _solve(
    problem: Problem,
    cfg: CalibrateCfg,
    start: Calibration | None,
    progress: Progress | None,
    checkpoint: Checkpoint | None,
    resume: bool,
) -> Solution:
    fine = problem.fine
    key = problem_key(fine.windows, fine.parameters, f"{fine.cfg} {cfg.fit}")
    resumed = checkpoint.load(key, cfg.fit.method) if checkpoint is not None and resume else None
    fitter = Fitter(problem, cfg.fit, progress=progress, checkpoint=checkpoint)
    fitter.state.key = key
    return fitter.run(None if start is None else _start(start, fine.parameters), resumed)


def _end_notes(solution: Solution) -> list[str]:
    """What the reader must know about how the fit ended."""
    if solution.interrupted:
        return ["the fit was stopped before its end: these are the best values so far; go on with --resume"]
    if not solution.converged:
        return ["the fit had not settled when it ended: intervals may be too narrow"]
    return []


def _start(earlier: Calibration, parameters: Sequence[FitParameter]) -> FloatArray:
    """x of an earlier result; what it did not fit begins at the prior."""
    known = {
        (entry.parameter.name, entry.parameter.of, entry.parameter.axis): entry for entry in earlier.estimates
    }
    x = np.zeros(len(parameters))
    for k, entry in enumerate(parameters):
        found = known.get((entry.name, entry.of, entry.axis))
        if found is not None:
            x[k] = entry.to_x(min(max(found.value, entry.low), entry.high))
    return x


def _effort(problem: Problem, solution: Solution, seconds: float) -> Effort:
    return Effort(
        seconds=seconds,
        rollouts=problem.rollouts,
        simulated_s=problem.simulated_s,
        iterations=solution.iterations,
        converged=solution.converged,
        interrupted=solution.interrupted,
    )


def _scored(
    robot: Robot,
    draft: Calibration,
    train: Sequence[Log],
    held: Sequence[Log],
    sim: SimCfg,
    found: Posterior,
    before: Scored,
) -> Fit:
    """Add the scores of the calibrated simulator, and of both on what was held back."""
    after = score(robot, train, sim, draft.apply)
    done = msgspec.structs.replace(draft, fit_calibrated=after.score)
    if held:
        before, after = score(robot, held, as_delivered(sim)), score(robot, held, sim, draft.apply)
        done = msgspec.structs.replace(done, holdout_nominal=before.score, holdout_calibrated=after.score)
    shown = tuple(held or train)
    return Fit(calibration=done, posterior=found, shown=shown, nominal=before, calibrated=after)


def _provenance(
    logs: Sequence[Log], holdout: Sequence[Log], cfg: CalibrateCfg, physics_hz: float | None
) -> dict[str, object]:
    content = {
        "trueup": __version__,
        "mujoco": metadata.version("mujoco"),
        "numpy": np.__version__,
        "config": asdict(cfg),
        "physics_hz": physics_hz,
        "logs": [identity(log) for log in logs],
        "holdout": [identity(log) for log in holdout],
    }
    return msgspec.json.decode(
        msgspec.json.encode(content), type=dict[str, object]
    )  # as it will be read back


def identity(log: Log) -> dict[str, object]:
    """A log's content as a hash, and where it says it comes from."""
    plain = {key: value for key, value in log.meta.items() if isinstance(value, str | int | float)}
    return {"sha256": log.sha256, "rows": len(log), "meta": plain}
