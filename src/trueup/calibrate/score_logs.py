"""A saved fit on new logs, without a refit: errors of the calibrated and of the nominal simulator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from trueup.calibrate.calibrate import Fit
from trueup.calibrate.data.logs import check, in_order
from trueup.calibrate.fit.residuals import as_delivered
from trueup.calibrate.uncertainty.scores import window_replays
from trueup.core.errors import TrueupError
from trueup.core.verb_package import Shown
from trueup.data.files import Logs, read_logs
from trueup.data.log import Log
from trueup.robot.load import Robot, load_robot
from trueup.robot.model import ModelCfg
from trueup.world.batch import SimCfg
from trueup.world.fitted.calibration import Calibration, read_calibration
from trueup.world.parameters.able_to_set import able_to_set
from trueup.world.replay.replay import Prepare, Replay, ReplayCfg, joint_mae, joint_rmse, replay_logs


class JointErrors(NamedTuple):
    """Position errors per joint, rad; means are over joints."""

    rmse: list[float]
    mae: list[float]

    @property
    def rmse_mean(self) -> float:
        return float(np.mean(self.rmse))

    @property
    def mae_mean(self) -> float:
        return float(np.mean(self.mae))


def joint_errors(replays: Sequence[Replay]) -> JointErrors:
    """Errors over all samples of replays."""
    return JointErrors(joint_rmse(replays).tolist(), joint_mae(replays).tolist())


class ModelScore(NamedTuple):
    """One simulator on logs: replays of each log, whole and cut into windows of 0.5 s from recorded states."""

    replays: list[Replay]
    cut: list[list[Replay]]

    @property
    def open_loop(self) -> JointErrors:
        """Errors over whole logs."""
        return joint_errors(self.replays)

    @property
    def windows(self) -> JointErrors | None:
        """Errors over windows; None: all logs are shorter."""
        parts = [window for part in self.cut for window in part]
        return joint_errors(parts) if parts else None

    @property
    def diverged(self) -> int:
        """Logs in which the simulation blew up."""
        return sum(bool(replay.diverged.any()) for replay in self.replays)


@dataclass(frozen=True, kw_only=True)
class LogScores(Shown):
    """A fit and the nominal simulator on the same logs; `calibrated` is None where no fit was given."""

    robot: str
    joint_names: tuple[str, ...]
    logs: tuple[Log, ...]
    physics_hz: float
    nominal: ModelScore
    calibrated: ModelScore | None
    notes: tuple[str, ...]

    @property
    def worse(self) -> bool:
        """Whether the fit predicts these logs worse than the model without it."""
        fit = self.calibrated
        return fit is not None and fit.open_loop.rmse_mean > self.nominal.open_loop.rmse_mean


def score_logs(
    robot: Robot | str, logs: Logs, params: Calibration | Fit | str | Path | None = None, *, mapping: str | None = None
) -> LogScores:
    """Replay logs with a saved fit and without, with the physics rate and the base of the fit; nothing is refitted.

    Without `params` the nominal simulator alone is scored, with the robot's own physics rate.
    """
    robot, logs = load_robot(robot), read_logs(logs, mapping)
    fit = params.calibration if isinstance(params, Fit) else params
    fit = read_calibration(fit) if isinstance(fit, str | Path) else fit
    if not logs:
        raise TrueupError("no log was given to score on")
    notes = check(robot, logs, refuse=False)
    ordered = [in_order(robot, log) for log in logs]
    sim = sim_of(robot, fit)
    return LogScores(
        robot=robot.spec.name,
        joint_names=robot.spec.joint_names,
        logs=tuple(ordered),
        physics_hz=sim.physics_hz or robot.spec.physics_hz,
        nominal=_score(robot, ordered, as_delivered(sim), None),
        calibrated=None if fit is None else _score(robot, ordered, sim, fit.apply),
        notes=tuple(notes),
    )


def sim_of(robot: Robot, params: Calibration | None) -> SimCfg:
    """The simulation of a fit: its physics rate, its base, everything its parameters act on."""
    if params is None:
        return SimCfg(physics_hz=robot.spec.physics_hz, model=ModelCfg(base="fixed"))
    if params.joint_names != robot.spec.joint_names:
        raise TrueupError(
            f"this calibration is of {params.robot!r} with other joints than {robot.spec.name!r}; give the robot that "
            "it was made for (--robot)"
        )
    rate, config = params.provenance.get("physics_hz"), params.provenance.get("config")
    is_free = isinstance(config, dict) and config.get("base") == "free"
    physics_hz = float(rate) if isinstance(rate, int | float) else robot.spec.physics_hz
    sim = SimCfg(physics_hz=physics_hz, model=ModelCfg(base="free" if is_free else "fixed"))
    return able_to_set(sim, [entry.name for entry in params.parameters])


def _score(robot: Robot, logs: Sequence[Log], sim: SimCfg, prepare: Prepare | None) -> ModelScore:
    whole = replay_logs(robot, logs, ReplayCfg(sim=sim), prepare=prepare)
    return ModelScore(whole, [window_replays(robot, [log], sim, prepare=prepare) for log in logs])
