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
from trueup.calibrate.judge import judge
from trueup.calibrate.parameters import FitParameter, Tie, parameter_names
from trueup.calibrate.prepare import check, in_order, split
from trueup.calibrate.residuals import Shooting, fit_sim_cfg, parameters_for
from trueup.calibrate.result import SCHEMA, Calibration, Effort, write_calibration
from trueup.calibrate.score import Scored, score
from trueup.calibrate.uncertainty import Posterior
from trueup.calibrate.windows import WindowCfg, cut_windows
from trueup.core.errors import TrueupError
from trueup.data.log import Log
from trueup.robot.load import Robot
from trueup.sim.batch import BatchSim, SimCfg

FloatArray = NDArray[np.float64]


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
    began = time.monotonic()
    notes = [note for log in (*logs, *holdout) for note in check(robot, log, refuse=cfg.check)]
    logs, holdout = [in_order(robot, log) for log in logs], [in_order(robot, log) for log in holdout]
    train, held = (logs, holdout) if holdout else split(logs, cfg.holdout)
    shooting, rough = _shootings(robot, train, cfg)
    fitter = Fitter(shooting, cfg.fit, progress, rough=rough)
    solution = fitter.run(None if start is None else _start(start, shooting.parameters))
    effort = _effort(shooting, rough, solution, time.monotonic() - began)
    judged = judge(shooting, solution)
    before = score(robot, train, shooting.cfg)
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
        notes=tuple(dict.fromkeys([*notes, *judged.notes])),
    )
    return _scored(robot, draft, train, held, shooting.cfg, judged.posterior, before)


def _shootings(robot: Robot, logs: Sequence[Log], cfg: CalibrateCfg) -> tuple[Shooting, Shooting]:
    """The problem with the physics asked for, and with the spec's for the way there."""
    names, free = parameter_names(cfg.params), cfg.base == "free"
    limits = {"torque_limit", "stall_torque", "no_load_speed"}
    windows = cut_windows(robot, logs, cfg.window, free_base=free, mask_saturated=not limits & set(names))
    out = []
    for physics_hz in (cfg.physics_hz, min(cfg.physics_hz, robot.spec.physics_hz)):
        sim = fit_sim_cfg(robot, windows.rate_hz, names, free_base=free, physics_hz=physics_hz)
        sim = replace(sim, max_delay_s=cfg.window.max_delay_s)
        parameters = parameters_for(robot, sim, names, tie=cfg.tie, bodies=cfg.bodies, windows=windows)
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


def _effort(shooting: Shooting, rough: Shooting, solution: Solution, seconds: float) -> Effort:
    rollouts, windows = shooting.rollouts + rough.rollouts, shooting.windows
    return Effort(
        seconds=seconds,
        rollouts=rollouts,
        simulated_s=rollouts * windows.target.shape[1] / windows.rate_hz,
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
