"""How well a simulator replays logs: open loop and in windows, per joint, with the spread over blocks of time.

`score` scores a fit; `score_logs` compares a saved fit with the nominal simulator on new logs, without a refit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trueup.calibrate.data.logs import check, in_order
from trueup.calibrate.fit.residuals import as_delivered
from trueup.core.errors import TrueupError
from trueup.data.log import Log
from trueup.data.resample import rate_of
from trueup.robot.load import Robot
from trueup.robot.model import ModelCfg
from trueup.world.batch import BatchSim, SimCfg
from trueup.world.fitted.calibration import Calibration, Score
from trueup.world.parameters.able_to_set import able_to_set
from trueup.world.replay.replay import Replay, ReplayCfg, block_squares, joint_mae, joint_rmse, replay_logs

FloatArray = NDArray[np.float64]
Prepare = Callable[[BatchSim], None]
SCORE_WINDOW_S = 0.5
_BLOCK_S = 1.0
_DRAWS = 200


@dataclass(frozen=True, kw_only=True)
class Scored:
    """A score and the open-loop replays it was computed from."""

    score: Score
    replays: tuple[Replay, ...]


def score(robot: Robot, logs: Sequence[Log], sim: SimCfg, prepare: Prepare | None = None) -> Scored:
    """Replay the logs with the parameters that `prepare` sets (None: nominal)."""
    whole = replay_logs(robot, logs, ReplayCfg(sim=sim), prepare=prepare)
    windows = window_replays(robot, logs, sim, prepare=prepare) or whole
    open_loop, window = joint_rmse(whole), joint_rmse(windows)
    draws = bootstrap(error_blocks(whole), _DRAWS)
    return Scored(
        score=Score(
            open_loop=open_loop.tolist(),
            window=window.tolist(),
            open_loop_mean=float(open_loop.mean()),
            window_mean=float(window.mean()),
            spread=_ends(draws.mean(axis=1)),
            joint_spread=[_ends(column) for column in draws.T],
        ),
        replays=tuple(whole),
    )


def window_replays(
    robot: Robot, logs: Sequence[Log], sim: SimCfg, *, prepare: Prepare | None = None
) -> list[Replay]:
    """Replays in windows of 0.5 s of the logs that are long enough."""
    cut = ReplayCfg(sim=sim, window_s=SCORE_WINDOW_S)
    enough = [log for log in logs if len(log) > SCORE_WINDOW_S * rate_of(log) + 1]
    return replay_logs(robot, enough, cut, prepare=prepare)


def error_blocks(replays: Sequence[Replay]) -> FloatArray:
    """Mean squared errors of blocks of a second, (nblock, njoint): neighbouring samples are not independent."""
    return block_squares(replays, _BLOCK_S)


def bootstrap(squares: FloatArray, draws: int) -> FloatArray:
    """Root mean square errors (draws, njoint) of blocks drawn with replacement."""
    picks = np.random.default_rng(0).integers(0, len(squares), (draws, len(squares)))
    return np.sqrt(squares[picks].mean(axis=1))


def _ends(values: FloatArray) -> tuple[float, float]:
    low, high = np.percentile(values, [5, 95])
    return float(low), float(high)


@dataclass(frozen=True, kw_only=True)
class JointErrors:
    """Position errors per joint, rad; means are over joints."""

    rmse: list[float]
    mae: list[float]

    @property
    def rmse_mean(self) -> float:
        return float(np.mean(self.rmse))

    @property
    def mae_mean(self) -> float:
        return float(np.mean(self.mae))


def joint_errors(replays: Sequence[Replay]) -> JointErrors | None:
    """Over all samples of replays; None without any."""
    if not replays:
        return None
    return JointErrors(rmse=joint_rmse(replays).tolist(), mae=joint_mae(replays).tolist())


@dataclass(frozen=True, kw_only=True)
class ModelScore:
    """One simulator on logs.

    open_loop  errors over whole logs; windows: over windows of 0.5 s from recorded states, None: all logs are shorter
    replays, cut  replays of each log: whole, and in windows
    """

    open_loop: JointErrors
    windows: JointErrors | None
    replays: tuple[Replay, ...]
    cut: tuple[list[Replay], ...]

    @property
    def diverged(self) -> int:
        """Logs in which the simulation blew up."""
        return sum(bool(one.diverged.any()) for one in self.replays)


@dataclass(frozen=True, kw_only=True)
class LogScores:
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


def score_logs(robot: Robot, logs: Sequence[Log], params: Calibration | None = None) -> LogScores:
    """Replay logs with a fit and without, with the physics rate and the base of the fit.

    Without `params` the nominal simulator alone is scored, with the robot's own physics rate.
    """
    if not logs:
        raise TrueupError("no log was given to score on")
    notes = check(robot, logs, refuse=False)
    ordered = [in_order(robot, log) for log in logs]
    sim = sim_of(robot, params)
    return LogScores(
        robot=robot.spec.name,
        joint_names=robot.spec.joint_names,
        logs=tuple(ordered),
        physics_hz=sim.physics_hz or robot.spec.physics_hz,
        nominal=_score(robot, ordered, as_delivered(sim), None),
        calibrated=None if params is None else _score(robot, ordered, sim, params.apply),
        notes=tuple(notes),
    )


def sim_of(robot: Robot, params: Calibration | None) -> SimCfg:
    """The simulation in which a fit was made: its physics rate, its base, what its parameters act on."""
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
    cut = tuple(window_replays(robot, [log], sim, prepare=prepare) for log in logs)
    found = joint_errors(whole)
    assert found is not None
    windows = joint_errors([one for part in cut for one in part])
    return ModelScore(open_loop=found, windows=windows, replays=tuple(whole), cut=cut)
