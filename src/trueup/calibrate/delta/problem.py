"""What a delta action and the methods beside it are fitted to and scored on: the same states, the same windows."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from trueup.calibrate.data.logs import check
from trueup.calibrate.delta.config import DeltaCfg
from trueup.calibrate.delta.score import HORIZONS_S, longest, thinned
from trueup.calibrate.delta.shooting import DeltaShooting, Rows
from trueup.calibrate.delta.states import state_tracks
from trueup.calibrate.score_logs import sim_of
from trueup.core.errors import TrueupError
from trueup.data.log import Log
from trueup.robot.load import Robot
from trueup.world.fitted.calibration import read_calibration

_CHOOSE = 60  # windows that rounds are chosen by


class DeltaProblem:
    """Logs in a simulator, with the rows to fit, to choose by and to score on.

    chosen  windows at the end of every log, which nothing is fitted to: what rounds are chosen by
    scored  windows of the held-out logs; without such logs those at the end of every log
    """

    def __init__(
        self,
        robot: Robot,
        logs: list[Log],
        cfg: DeltaCfg,
        *,
        holdout: list[Log] | None = None,
        params: str | Path | None = None,
    ) -> None:
        self.robot, self.logs, self.cfg = robot, logs, cfg
        self.held = holdout or []
        self.notes = list(check(robot, logs, refuse=False))
        fit = None if params is None else read_calibration(params)
        apply, sim = (None, None) if fit is None else (fit.apply, sim_of(robot, fit))
        self.shooting = DeltaShooting(robot, state_tracks(robot, [*logs, *self.held], cfg), apply, sim)
        self.steps, tracks = longest(self.shooting), self.shooting.tracks
        ends = np.unique(tracks.last)
        self._end = int(ends[len(logs) - 1])  # row after those of the logs that are fitted to
        self._share = 1.0 - cfg.holdout_share
        ending = self._own(self.steps, (self._share, 1.0))
        later = tracks.starts(self.steps)
        later = later[later >= self._end]
        self.scored: Rows = thinned(later if self.held else ending)
        self.chosen: Rows = self.scored[:: max(1, len(self.scored) // _CHOOSE)]
        if len(ending):
            self.chosen = ending[:: max(1, len(ending) // _CHOOSE)]
        if not len(self.scored) or not len(self._own(max(cfg.horizons), (0.0, self._share))):
            need = max(HORIZONS_S) + 0.1
            told = f"the last {cfg.holdout_share:.0%} of a log must last {need:.1f} s"
            told += f": record {need / cfg.holdout_share:.0f} s or more"
            raise TrueupError(f"these logs are too short to score a delta action: {told}")

    def starts(self, steps: int, windows: int | None = None) -> Rows:
        """Rows to fit to, from which `steps` more follow: `cfg.windows` at most, or `windows`, drawn by the seed."""
        rows = self._own(steps, (0.0, self._share))
        rng = np.random.default_rng(self.cfg.seed)
        return np.sort(rng.permutation(rows)[: windows or self.cfg.windows])

    def _own(self, steps: int, part: tuple[float, float]) -> Rows:
        rows = self.shooting.tracks.starts(steps, part)
        return rows[rows < self._end]
