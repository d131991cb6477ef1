"""How well a simulator replays logs: open loop and in windows, per joint, with the spread over blocks of time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from trueup.data.log import Log
from trueup.robot.load import Robot
from trueup.sim.batch import BatchSim, SimCfg
from trueup.sim.calibration import Score
from trueup.sim.replay import Replay, ReplayCfg, replay

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
    whole = [replay(robot, log, ReplayCfg(sim=sim), prepare=prepare) for log in logs]
    cut = ReplayCfg(sim=replace(sim), window_s=SCORE_WINDOW_S)
    windows = [
        replay(robot, log, cut, prepare=prepare)
        for log in logs
        if len(log) > SCORE_WINDOW_S * log.rate_hz + 1
    ]
    squares = np.concatenate([_block_squares(result) for result in whole])
    open_loop = np.sqrt(squares.mean(axis=0))
    draws = _bootstrap(squares)
    window = _pooled(windows) if windows else open_loop
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


def _errors(result: Replay) -> FloatArray:
    """(samples, njoint), the start excluded; a simulation that blew up is as wrong as the log is long a way."""
    error = (result.joint_pos - result.measured_pos)[:, 1:]
    error = np.where(np.isfinite(error), np.clip(error, -10, 10), 10.0)
    return error.reshape(-1, error.shape[-1])


def _block_squares(result: Replay) -> FloatArray:
    """Mean squared error of each block of a second, (nblock, njoint)."""
    error = _errors(result) ** 2
    size = max(1, round(_BLOCK_S / (result.time[1] - result.time[0])))
    count = max(1, len(error) // size)
    return np.stack([part.mean(axis=0) for part in np.array_split(error, count)])


def _pooled(results: Sequence[Replay]) -> FloatArray:
    return np.sqrt((np.concatenate([_errors(result) for result in results]) ** 2).mean(axis=0))


def _bootstrap(squares: FloatArray) -> FloatArray:
    """Open-loop errors (draws, njoint) of blocks drawn with replacement."""
    rng = np.random.default_rng(0)
    picks = rng.integers(0, len(squares), (_DRAWS, len(squares)))
    return np.sqrt(squares[picks].mean(axis=1))


def _ends(values: FloatArray) -> tuple[float, float]:
    low, high = np.percentile(values, [5, 95])
    return float(low), float(high)
