"""How well a simulator replays logs: open loop and in windows, per joint, with the spread over blocks of time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trueup.data.log import Log
from trueup.data.resample import rate_of
from trueup.robot.load import Robot
from trueup.world.batch import BatchSim, SimCfg
from trueup.world.fitted.calibration import Score
from trueup.world.replay.replay import ReplayCfg, replay_logs
from trueup.world.replay.replayed import Replay, block_squares, joint_rmse

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
