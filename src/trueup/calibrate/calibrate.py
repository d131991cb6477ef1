"""`calibrate`: from logs to a simulator that fits, with intervals, verdicts and held-out scores."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from importlib import metadata
from pathlib import Path

import msgspec
import numpy as np

from trueup._version import __version__
from trueup.calibrate.config import CalibrateCfg, Tie
from trueup.calibrate.data.logs import check, moves, ready, split_logs
from trueup.calibrate.export import Export, Format, export_calibration
from trueup.calibrate.fit.fit import Fitter, Progress, Solution
from trueup.calibrate.fit.problem import make_problem, problem_key, step_notes
from trueup.calibrate.fit.residuals import as_delivered
from trueup.calibrate.fit.search import STATE_FILE
from trueup.calibrate.parameters import parameter_names
from trueup.calibrate.refit import with_request
from trueup.calibrate.uncertainty.assess import assess, still_joints
from trueup.calibrate.uncertainty.covariance import Posterior
from trueup.calibrate.uncertainty.scores import ScoredReplays, alarms, predictive_check, score
from trueup.calibrate.uncertainty.valleys import settled
from trueup.core.arrays import FloatArray
from trueup.core.checkpoint import StateFile
from trueup.core.verb_package import Shown
from trueup.data.files import Logs, read_logs
from trueup.data.log import Log
from trueup.robot.load import Robot, load_robot
from trueup.world.batch import BatchSim
from trueup.world.fitted.calibration import (
    SCHEMA,
    Calibration,
    Effort,
    SimParams,
    Word,
    read_calibration,
    write_calibration,
)
from trueup.world.fitted.fit_parameter import FitParameter
from trueup.world.fitted.refit import RefitRequest, read_refit

_LOG = logging.getLogger(__name__)
_FITTED, _PARTED, _ASSESSED = (
    0.5,
    0.75,
    0.9,
)  # usual progress after the fit, the refits, the intervals


@dataclass(frozen=True, kw_only=True)
class Fit(Shown):
    """A calibration with the data of its report: posterior, and replays of the held-out (else the fitted) logs.

    See `table()`, `verdicts`, `report("fit.html")`; use `export("isaaclab", DIR)`, `write(DIR)`.
    """

    robot: Robot
    calibration: Calibration
    posterior: Posterior
    shown: tuple[Log, ...]
    nominal: ScoredReplays
    calibrated: ScoredReplays

    @property
    def verdicts(self) -> dict[str, Word]:
        """identified, bounded, weak or not visible, by parameter."""
        return {entry.parameter.label: entry.verdict for entry in self.calibration.estimates}

    def export(self, to: Format, out: str | Path) -> Export:
        """Write the calibrated robot for a simulator."""
        return export_calibration(self.robot, self.calibration, to, out)

    def apply(self, sim: BatchSim) -> None:
        """Set the estimates on every simulation of a batch."""
        self.calibration.apply(sim)

    def write(self, folder: str | Path) -> Path:
        """Write DIR/params.json, and remove the state of the fit unless it was stopped early."""
        path = write_calibration(self.calibration, folder)
        if not self.calibration.effort.interrupted:
            (Path(folder) / STATE_FILE).unlink(missing_ok=True)
        return path


def calibrate(
    robot: Robot | str,
    logs: Logs,
    cfg: CalibrateCfg | None = None,
    *,
    params: str | None = None,
    tie: Tie | None = None,
    holdout: Logs = (),
    mapping: str | None = None,
    start: Calibration | str | Path | None = None,
    refit: RefitRequest | str | Path | None = None,
    progress: Progress | None = None,
    folder: str | Path | None = None,
    resume: bool = False,
) -> Fit:
    """Fit the robot's parameters to logs (or files of them) and score the fit on held-out data.

    params, tie  override those of `cfg`
    holdout  logs to score on; without, a share is held out (cfg.holdout_share): a gain, whole logs, or a log's end
    mapping  for files of tables: a shipped mapping's name or a TOML file
    start    an earlier calibration, or its folder, to begin from
    refit    request of a diagnosis (`gap`), or its folder: suspected parameters are fitted too
    folder   keeps the state of the fit while it runs; `resume` continues a killed fit from there
    """
    cfg = cfg or CalibrateCfg()
    cfg = replace(cfg, params=params or cfg.params, tie=tie or cfg.tie)
    robot, logs, holdout = load_robot(robot), read_logs(logs, mapping), read_logs(holdout, mapping)
    start = read_calibration(start) if isinstance(start, str | Path) else start
    request = read_refit(refit) if isinstance(refit, str | Path) else refit
    cfg, request_notes = (cfg, []) if request is None else with_request(robot, cfg, request)
    began = time.monotonic()
    report = progress or (lambda fraction: None)
    notes = check(robot, (*logs, *holdout), refuse=cfg.check)
    logs, holdout = ready(robot, logs, holdout)
    fits_gains = bool({"kp", "kd"} & set(parameter_names(cfg.params)))
    split = split_logs(logs, holdout, cfg.holdout_share, fits_gains=fits_gains)
    problem = make_problem(robot, split.train, cfg)
    shooting = problem.fine
    if cfg.base == "fixed":
        moves(robot, still_joints(shooting.windows))
    state = None
    if folder is not None:
        key = problem_key(shooting, f"{shooting.cfg} {cfg.fit}")
        state = StateFile(Path(folder) / STATE_FILE, key, what="fit", every_s=0.5)
    fitter = Fitter(problem, cfg.fit, progress=lambda done: report(_FITTED * done), state_file=state)
    first = None if start is None else _start(start, shooting.parameters)
    solution = fitter.run(first, state.load() if state is not None and resume else None)
    _LOG.info("intervals and verdicts")
    if not cfg.is_baseline and not solution.interrupted:
        solution = settled(shooting, solution, cfg.fit.loss)
    effort = Effort(
        seconds=time.monotonic() - began,
        rollouts=problem.rollouts,
        simulated_s=problem.simulated_s,
        iterations=solution.iterations,
        converged=solution.converged,
        interrupted=solution.interrupted,
    )
    way = _PARTED - _FITTED
    assessed = assess(shooting, solution, cfg.fit.loss, lambda done: report(_FITTED + way * done))
    deviation = assessed.posterior.deviation
    coarse = step_notes(shooting, solution.x, solution.residuals, solution.jacobian, deviation)
    report(_ASSESSED)
    _LOG.info("scores")
    fitted_params = SimParams(
        schema=SCHEMA,
        robot=robot.spec.name,
        joint_names=robot.spec.joint_names,
        estimates=assessed.estimates,
        x=assessed.x.tolist(),
        covariance=assessed.posterior.covariance.tolist(),
    )
    sim, nominal = shooting.cfg, as_delivered(shooting.cfg)
    fitted = (score(robot, split.train, nominal), score(robot, split.train, sim, fitted_params.apply))
    held = (
        (score(robot, split.held, nominal), score(robot, split.held, sim, fitted_params.apply)) if split.held else None
    )
    # on the ground, open-loop replays of whole logs diverge at the first contact
    predicts = bool(split.held) and shooting.windows.base_quat is None
    all_notes = [
        *request_notes,
        *notes,
        *shooting.windows.notes,
        *assessed.notes,
        *coarse,
        *_end_notes(solution),
        split.how,
    ]
    result = Calibration(
        **{name: getattr(fitted_params, name) for name in SimParams.__struct_fields__},
        misfit=assessed.misfit,
        effort=effort,
        fit_nominal=fitted[0].score,
        fit_calibrated=fitted[1].score,
        holdout_nominal=held[0].score if held else None,
        holdout_calibrated=held[1].score if held else None,
        provenance=provenance(logs, holdout, asdict(cfg), sim.physics_hz),
        notes=tuple(dict.fromkeys(all_notes)),
        ratios=assessed.ratios,
        predictive=predictive_check(shooting, solution, assessed, split.held) if predicts else None,
    )
    report(1.0)
    shown = held or fitted
    return Fit(
        robot=robot,
        calibration=msgspec.structs.replace(result, alarms=tuple(alarms(result))),
        posterior=assessed.posterior,
        shown=tuple(split.held or split.train),
        nominal=shown[0],
        calibrated=shown[1],
    )


def _end_notes(solution: Solution) -> list[str]:
    """Notes on how the fit ended."""
    if solution.interrupted:
        return ["the fit was stopped before its end: these are the best values so far; go on with --resume"]
    if not solution.converged:
        return ["the fit had not settled when it ended: intervals may be too narrow"]
    return []


def _start(earlier: Calibration, parameters: Sequence[FitParameter]) -> FloatArray:
    """x of an earlier result; parameters not in it begin at the prior."""
    known = {(entry.parameter.name, entry.parameter.of, entry.parameter.axis): entry for entry in earlier.estimates}
    x = np.zeros(len(parameters))
    for k, entry in enumerate(parameters):
        found = known.get((entry.name, entry.of, entry.axis))
        if found is not None:
            x[k] = entry.to_x(min(max(found.value, entry.low), entry.high))
    return x


def provenance(
    logs: Sequence[Log], holdout: Sequence[Log], config: dict[str, object], physics_hz: float | None
) -> dict[str, object]:
    """Versions, settings, and every log's hash and recorded origin."""
    content: dict[str, object] = {
        "trueup": __version__,
        "mujoco": metadata.version("mujoco"),
        "numpy": np.__version__,
        "config": config,
        "physics_hz": physics_hz,
    }
    for name, group in (("logs", logs), ("holdout", holdout)):
        content[name] = [
            {
                "sha256": log.sha256,
                "rows": len(log),
                "meta": {key: value for key, value in log.meta.items() if isinstance(value, str | int | float)},
            }
            for log in group
        ]
    # encoded and decoded: identical to the file's content
    return msgspec.json.decode(msgspec.json.encode(content), type=dict[str, object])
