"""What a delta action and the methods beside it are fitted to and scored on: the same states, the same windows."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from pathlib import Path

import numpy as np

from trueup.calibrate.data.logs import check
from trueup.calibrate.delta.config import DeltaCfg, DeltaMethod
from trueup.calibrate.delta.score import HORIZONS_S, longest, thinned
from trueup.calibrate.delta.shooting import DeltaShooting, Rows
from trueup.calibrate.delta.states import state_tracks
from trueup.calibrate.score_logs import sim_of
from trueup.core.errors import TrueupError
from trueup.data.log import Log
from trueup.models.delta_net import DeltaNet, DeltaSpec
from trueup.robot.load import Robot
from trueup.world.fitted.calibration import read_calibration

_CHOOSE = 60  # windows that rounds are chosen by
_MARGIN = 0.1  # of the width of the data's range
_RANGE_ROWS = 20_000  # that the range is taken from


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
        self.fit = fit = None if params is None else read_calibration(params)
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

    def by(self, method: DeltaMethod) -> DeltaProblem:
        """The same data for another way to learn."""
        other = copy(self)
        other.cfg = replace(self.cfg, method=method)
        return other

    def on(self, shooting: DeltaShooting) -> DeltaProblem:
        """The same data in another simulator."""
        other = copy(self)
        other.shooting = shooting
        return other

    @property
    def fitted_logs(self) -> list[Log]:
        """The logs without their held-out ends."""
        return [log.window(0, round(self._share * len(log))) for log in self.logs]

    def starts(self, steps: int, windows: int | None = None) -> Rows:
        """Rows to fit to, from which `steps` more follow: `cfg.windows` at most, or `windows`, drawn by the seed."""
        rows = self._own(steps, (0.0, self._share))
        rng = np.random.default_rng(self.cfg.seed)
        return np.sort(rng.permutation(rows)[: windows or self.cfg.windows])

    def blank(self) -> DeltaNet:
        """A delta action of zero with the range and the normalisation of the data."""
        shooting, cfg = self.shooting, self.cfg
        spec = shooting.robot.spec
        unknown = sorted(set(cfg.joints) - set(spec.joint_names))
        if unknown:
            raise TrueupError(
                f"{spec.name} has no joints {unknown}; it has {', '.join(spec.joint_names)}", place="joints"
            )
        corrected = tuple(k for k, name in enumerate(spec.joint_names) if not cfg.joints or name in cfg.joints)
        made = DeltaSpec(
            robot=spec.name,
            joint_names=spec.joint_names,
            default_pose=tuple(spec.default_pose.tolist()),
            corrected=corrected,
            base=shooting.base is not None,
            rate_hz=shooting.tracks.rate_hz,
            limit_rad=cfg.limit_rad,
            past=cfg.past,
        )
        zero = np.zeros(made.ninput, np.float32)
        linear = np.zeros((len(corrected), made.ninput), np.float32)
        net = DeltaNet(spec=made, linear=linear, layers=(), mean=zero, std=zero + 1.0, low=zero, high=zero)
        x = shooting.inputs(net, self.starts(max(cfg.horizons), windows=_RANGE_ROWS))
        wide = _MARGIN * np.ptp(x, axis=0) + 1e-6
        return replace(
            net,
            # the mean is 0: no input, no correction
            std=np.maximum(np.sqrt(np.mean(x**2, axis=0)), 1e-4).astype(np.float32),
            low=(x.min(axis=0) - wide).astype(np.float32),
            high=(x.max(axis=0) + wide).astype(np.float32),
        )

    def _own(self, steps: int, part: tuple[float, float]) -> Rows:
        rows = self.shooting.tracks.starts(steps, part)
        return rows[rows < self._end]
