"""`calibrate`: from logs to a simulator that fits, with intervals, verdicts and held-out scores."""

from __future__ import annotations

import hashlib
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
from trueup.calibrate.fit import FitCfg, Fitter, Progress, Solution
from trueup.calibrate.parameters import FitParameter, Tie, parameter_names
from trueup.calibrate.residuals import Shooting, fit_sim_cfg, parameters_for
from trueup.calibrate.result import SCHEMA, Calibration, Effort, Estimate, Misfit, write_calibration
from trueup.calibrate.score import Scored, score
from trueup.calibrate.uncertainty import Posterior, model_error, posterior, widened
from trueup.calibrate.verdict import Verdict, hide_still, verdicts
from trueup.calibrate.windows import WindowCfg, cut_windows
from trueup.core.errors import TrueupError
from trueup.data.check import check_log
from trueup.data.log import Log
from trueup.data.resample import is_uniform, resample
from trueup.robot.load import Robot
from trueup.robot.reference import log_reference
from trueup.sim.batch import BatchSim, SimCfg

FloatArray = NDArray[np.float64]
_SHORTEST_S = 5.0
_NORMAL_95 = 1.96


@dataclass(frozen=True, kw_only=True)
class CalibrateCfg:
    """What to fit and how.

    params    "pace", "full", "contact", or names: "armature,delay", "pace,kp"
    tie       "side": left and right joints share their values
    bodies    whose mass and centre of mass are fitted, if asked for
    base      "fixed": held in the air or bolted down; "free": needs the base's state in the log
    holdout   last part of every log that is kept for scoring when no held-out logs are given
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
        return write_calibration(self.calibration, folder)


def calibrate(
    robot: Robot,
    logs: Sequence[Log],
    cfg: CalibrateCfg | None = None,
    *,
    holdout: Sequence[Log] = (),
    start: Calibration | None = None,
    progress: Progress | None = None,
) -> Fit:
    """Fit the robot's parameters to logs and score the fit on data it has not seen.

    holdout  logs to score on; without, the last part of every log (cfg.holdout) is kept back
    start    an earlier calibration to begin from
    """
    cfg = cfg or CalibrateCfg()
    began, notes = time.monotonic(), []
    for log in (*logs, *holdout):
        notes += _check(robot, log, cfg)
    logs = [_uniform(log.with_joint_order(robot.spec.joint_names)) for log in logs]
    holdout = [_uniform(log.with_joint_order(robot.spec.joint_names)) for log in holdout]
    train, held = (logs, holdout) if holdout else split(logs, cfg.holdout)
    shooting, rough = _shootings(robot, train, cfg)
    fitter = Fitter(shooting, cfg.fit, progress, rough=rough)
    solution = fitter.run(None if start is None else _start(start, shooting.parameters))
    seconds = time.monotonic() - began
    still = frozenset(np.array(robot.spec.joint_names)[shooting.windows.still].tolist())
    found = posterior(
        solution.jacobian, solution.residuals, shooting.windows.judged, shooting.windows.rate_hz
    )
    misfit = _misfit(shooting, solution, found)
    factor = model_error(np.array(misfit.left), np.array(misfit.noise), _acts_on(shooting))
    found, hidden = hide_still(shooting.parameters, widened(found, factor), still)
    if misfit.structured:
        notes.append(
            f"more is left over than noise: standard errors were widened {np.median(factor):.1f} times for what the "
            "model lacks"
        )
    x = np.where(hidden, 0.0, solution.x)
    words = verdicts(shooting.parameters, x, found, still)
    estimates = _estimates(shooting, x, found, words)
    effort = Effort(
        seconds=seconds,
        rollouts=shooting.rollouts + rough.rollouts,
        simulated_s=(shooting.rollouts + rough.rollouts)
        * shooting.windows.target.shape[1]
        / shooting.windows.rate_hz,
        iterations=solution.iterations,
        converged=solution.converged,
        interrupted=solution.interrupted,
    )
    draft = Calibration(
        schema=SCHEMA,
        robot=robot.spec.name,
        joint_names=robot.spec.joint_names,
        estimates=estimates,
        x=x.tolist(),
        covariance=found.covariance.tolist(),
        misfit=misfit,
        effort=effort,
        fit_nominal=(before := score(robot, train, shooting.cfg)).score,
        fit_calibrated=before.score,
        holdout_nominal=None,
        holdout_calibrated=None,
        provenance=_provenance(logs, holdout, cfg, shooting.cfg.physics_hz),
        notes=tuple(dict.fromkeys(notes)),
    )
    return _scored(robot, draft, train, held, shooting.cfg, found, before)


def split(logs: Sequence[Log], fraction: float) -> tuple[list[Log], list[Log]]:
    """Keep the last part of every log back; two logs or more and whole motions would be better: give them."""
    if fraction <= 0.0:
        return list(logs), []
    cuts = [round(len(log) * (1.0 - fraction)) for log in logs]
    pairs = list(zip(logs, cuts, strict=True))
    return (
        [log.window(0, cut) for log, cut in pairs],
        [log.window(cut, len(log)) for log, cut in pairs if len(log) - cut >= 2],
    )


def _check(robot: Robot, log: Log, cfg: CalibrateCfg) -> list[str]:
    """Refuse what cannot be fitted; return warnings that the result should carry."""
    for name in ("joint_pos", "target_pos"):
        log[name]  # says what is missing and what is there
    log.with_joint_order(robot.spec.joint_names)
    seconds = float(log.time[-1] - log.time[0]) if len(log) > 1 else 0.0
    if seconds < _SHORTEST_S:
        raise TrueupError(
            f"a log of {seconds:.1f} s is too short to calibrate from; record at least 20 s of excitation "
            "(`trueup record ... --seconds 20`)"
        )
    if not cfg.check:
        return []
    report = check_log(log, log_reference(robot.spec))
    if not report.usable:
        worst = report.findings[0]
        raise TrueupError(f"this log would mislead a fit: {worst.evidence}. {worst.fix}", place=worst.signal)
    return [f"{finding.evidence}: {finding.consequence}" for finding in report.alarms]


def _uniform(log: Log) -> Log:
    return log if is_uniform(log) else resample(log, log.rate_hz)


def _shootings(robot: Robot, logs: Sequence[Log], cfg: CalibrateCfg) -> tuple[Shooting, Shooting]:
    """The problem with the physics asked for, and with the spec's for the way there."""
    names, free = parameter_names(cfg.params), cfg.base == "free"
    limits = {"torque_limit", "stall_torque", "no_load_speed"}
    windows = cut_windows(robot, logs, cfg.window, free_base=free, mask_saturated=not limits & set(names))
    out = []
    for physics_hz in (cfg.physics_hz, min(cfg.physics_hz, robot.spec.physics_hz)):
        sim = fit_sim_cfg(robot, windows.rate_hz, names, free_base=free, physics_hz=physics_hz)
        sim = replace(sim, max_delay_s=cfg.window.max_delay_s)
        parameters = parameters_for(robot, sim, names, tie=cfg.tie, bodies=cfg.bodies)
        out.append(Shooting(robot, windows, parameters, sim))
    return out[0], out[1]


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


def _estimates(
    shooting: Shooting, x: FloatArray, found: Posterior, words: Sequence[Verdict]
) -> tuple[Estimate, ...]:
    out = []
    for k, (entry, verdict) in enumerate(zip(shooting.parameters, words, strict=True)):
        value, deviation = float(entry.to_value(x[k])), float(found.deviation[k])
        ends = entry.to_value(x[k] + _NORMAL_95 * deviation * np.array([-1.0, 1.0]))
        out.append(
            Estimate(
                parameter=entry,
                value=value,
                standard_error=deviation * entry.slope(value),
                interval=(float(ends[0]), float(ends[1])),
                verdict=verdict.word,
                ratio=verdict.ratio,
                partner=shooting.parameters[verdict.partner].label if verdict.partner >= 0 else "",
                correlation=verdict.correlation,
                on_bound=verdict.on_bound,
                advice=verdict.advice,
            )
        )
    return tuple(out)


def _acts_on(shooting: Shooting) -> NDArray[np.bool_]:
    """(nparameter, njoint): a joint's own parameter acts on that joint, others on all that they reach."""
    names = shooting.robot.spec.joint_names
    rows = []
    for entry, reach in zip(shooting.parameters, shooting.colouring.reach, strict=True):
        own = np.array([name in entry.of for name in names])
        rows.append(own if own.any() else reach)
    return np.array(rows)


def _misfit(shooting: Shooting, solution: Solution, found: Posterior) -> Misfit:
    windows, njoint = shooting.windows, shooting.robot.spec.njoint
    left = (solution.residuals * shooting.sigma)[..., :njoint]
    count = np.maximum(windows.judged[..., :njoint].sum(axis=(0, 1)), 1)
    return Misfit(
        noise=windows.sigma[:njoint].tolist(),
        left=np.sqrt((left**2).sum(axis=(0, 1)) / count).tolist(),
        memory_s=found.correlation_time_s[:njoint].tolist(),
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
        before, after = score(robot, held, sim), score(robot, held, sim, draft.apply)
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
        "logs": [_identity(log) for log in logs],
        "holdout": [_identity(log) for log in holdout],
    }
    return msgspec.json.decode(
        msgspec.json.encode(content), type=dict[str, object]
    )  # as it will be read back


def _identity(log: Log) -> dict[str, object]:
    """A log's content as a hash, and where it says it comes from."""
    digest = hashlib.sha256(np.ascontiguousarray(log.time).tobytes())
    for name in sorted(log.signals):
        digest.update(name.encode())
        digest.update(np.ascontiguousarray(log[name]).tobytes())
    plain = {key: value for key, value in log.meta.items() if isinstance(value, str | int | float)}
    return {"sha256": digest.hexdigest(), "rows": len(log), "meta": plain}
