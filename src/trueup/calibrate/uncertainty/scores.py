"""Scores and checks of a whole calibration: replays of logs, posterior predictive check, and alarms for the reader.

Scores are errors of replays, open loop and in windows, per joint, with their spread over blocks of time.

Posterior predictive check: draws of the parameters replay the held-out logs, open loop, beside the estimate. Draws must
do nearly as well as the estimate, or policies would train in worse simulators. And the measured error
must lie in the expected range: the residuals of the fit on its own data (noise and model error alike),
resampled in blocks, plus up to the distance of draws from the estimate.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trueup.calibrate.config import WindowCfg
from trueup.calibrate.data.windows import cut_windows
from trueup.calibrate.fit.fit import Solution
from trueup.calibrate.fit.residuals import Shooting
from trueup.calibrate.uncertainty.assess import AssessedFit
from trueup.core.arrays import FloatArray
from trueup.data.log import Log
from trueup.data.resample import rate_of
from trueup.hardware.drivers.open import same_twin
from trueup.robot.load import Robot
from trueup.world.batch import SimCfg
from trueup.world.fitted.calibration import Calibration, FitScore, Predictive
from trueup.world.replay.replay import Prepare, Replay, ReplayCfg, at_rate, block_squares, joint_rmse, replay_logs

DRAWS = 40
SCORE_WINDOW_S = 0.5
_BLOCK_S = 1.0
_RESAMPLES = 200
_INSIDE = (2.5, 97.5)  # percent
_TOO_WIDE = (1.3, 2.0)  # times the estimate's error: median of draws, 95 % of draws


class ScoredReplays(NamedTuple):
    """A score and the open-loop replays it was computed from."""

    score: FitScore
    replays: tuple[Replay, ...]


def score(robot: Robot, logs: Sequence[Log], sim: SimCfg, prepare: Prepare | None = None) -> ScoredReplays:
    """Replay the logs with the parameters that `prepare` sets (None: nominal)."""
    whole = replay_logs(robot, logs, ReplayCfg(sim=sim), prepare=prepare)
    windows = window_replays(robot, logs, sim, prepare=prepare) or whole
    open_loop, window = joint_rmse(whole), joint_rmse(windows)
    draws = bootstrap(error_blocks(whole), _RESAMPLES)
    found = FitScore(
        open_loop=open_loop.tolist(),
        window=window.tolist(),
        open_loop_mean=float(open_loop.mean()),
        window_mean=float(window.mean()),
        spread=_ends(draws.mean(axis=1)),
        joint_spread=[_ends(column) for column in draws.T],
    )
    return ScoredReplays(found, tuple(whole))


def window_replays(robot: Robot, logs: Sequence[Log], sim: SimCfg, *, prepare: Prepare | None = None) -> list[Replay]:
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


def predictive_check(shooting: Shooting, solution: Solution, assessed: AssessedFit, held: Sequence[Log]) -> Predictive:
    """Replay held-out logs with the estimate and with draws from the posterior."""
    rng, x = np.random.default_rng(0), assessed.x
    low, high = shooting.bounds
    draws = np.clip(rng.multivariate_normal(x, assessed.posterior.covariance, DRAWS, method="eigh"), low, high)
    replayed = _replayed(shooting, held)
    njoint = shooting.robot.spec.njoint
    left = (replayed.residuals(np.vstack([x, draws])) * replayed.sigma)[..., :njoint]
    counted = replayed.windows.compared[..., :njoint]
    errors = np.sqrt(_mean_square(left, counted)).mean(axis=1)
    apart = _mean_square(left[1:] - left[0], counted)
    over = _resampled(shooting, solution, rng, float(replayed.windows.compared.any(axis=2).sum()))
    ends = (
        float(np.percentile(np.sqrt(over).mean(axis=1), _INSIDE[0])),
        float(np.percentile(np.sqrt(over + apart).mean(axis=1), _INSIDE[1])),
    )
    ratio = errors[1:] / errors[0]
    return Predictive(
        draws=DRAWS,
        median_ratio=float(np.median(ratio)),
        q95_ratio=float(np.percentile(ratio, 95)),
        estimate_error=float(errors[0]),
        spread=ends,
        covered=bool(ends[0] <= errors[0] <= ends[1]),
    )


def _replayed(shooting: Shooting, held: Sequence[Log]) -> Shooting:
    """The same model and parameters on whole held-out logs, every sample compared."""
    robot, whole = shooting.robot, WindowCfg(window_s=math.inf, warm_up_s=0.0, max_delay_s=shooting.cfg.max_delay_s)
    windows = cut_windows(robot, held, whole, mask_saturated=False)
    return Shooting(robot, windows, shooting.parameters, at_rate(robot, shooting.cfg, windows.rate_hz))


def _mean_square(left: FloatArray, counted: NDArray[np.bool_]) -> FloatArray:
    """(nvector, njoint) mean squares over the samples of all logs."""
    total = np.where(counted, np.clip(left, -10.0, 10.0) ** 2, 0.0).sum(axis=(1, 2))
    return np.asarray(total / np.maximum(counted.sum(axis=(0, 1)), 1))


def _resampled(shooting: Shooting, solution: Solution, rng: np.random.Generator, samples: float) -> FloatArray:
    """(DRAWS, njoint) mean squares of the fit's residuals, in windows drawn with replacement that make up `samples`."""
    njoint, length = shooting.robot.spec.njoint, shooting.windows.compared.any(axis=2).sum(axis=1).mean()
    blocks = max(1, round(samples / max(float(length), 1.0)))
    compared = shooting.windows.compared[..., :njoint]
    square = ((solution.residuals * shooting.sigma)[..., :njoint] ** 2 * compared).sum(axis=1)
    count = compared.sum(axis=1)
    picks = rng.integers(0, len(square), (DRAWS, blocks))
    return np.asarray(square[picks].sum(axis=1) / np.maximum(count[picks].sum(axis=1), 1))


def alarms(result: Calibration) -> Iterator[str]:
    """Warnings about the result as a whole, most important first."""
    names = [name for name in recorded_drivers(result) if name is not None]
    if len(names) > 1:
        yield (
            f"these logs are of different robots ({', '.join(names)}): one set of parameters cannot be all of them; "
            "calibrate each on its own"
        )
    before, after = result.holdout_nominal, result.holdout_calibrated
    if before is not None and after is not None and after.open_loop_mean > before.open_loop_mean:
        yield (
            f"the calibrated model is worse than the nominal one on held-out data ({1e3 * after.open_loop_mean:.2f} "
            f"against {1e3 * before.open_loop_mean:.2f} mrad): do not use it; fit fewer parameters, or record more"
        )
    if result.estimates and all(entry.verdict == "not visible" for entry in result.estimates):
        yield (
            "the fit learned nothing: no parameter is visible in these logs; record larger and faster motion "
            "(`trueup record --excitation multisine`)"
        )
    check = result.predictive
    if check is not None and (check.median_ratio > _TOO_WIDE[0] or check.q95_ratio > _TOO_WIDE[1]):
        yield (
            f"draws from this posterior replay held-out data {check.median_ratio:.2f} times as badly as the estimate "
            f"(one in twenty over {check.q95_ratio:.2f} times): it is wider than the data allow; train with "
            "--no-posterior (the estimate alone), or fit fewer parameters"
        )


def recorded_drivers(result: Calibration) -> tuple[str | None, ...]:
    """Drivers that the calibration's logs name, each once; None stands for logs that name none.

    References to one twin are one: real time or lock-step, the robot is the same.
    """
    logs = result.provenance.get("logs")
    found: list[str | None] = []
    for log in logs if isinstance(logs, list) else []:
        meta = log.get("meta") if isinstance(log, dict) else None
        driver = meta.get("driver") if isinstance(meta, dict) else None
        name = (same_twin(driver) or driver) if isinstance(driver, str) and driver else None
        if name not in found:
            found.append(name)
    return tuple(found)
