"""Logs replayed under one actuator model: whole, or cut at a horizon and restarted from recorded states."""

from __future__ import annotations

from collections.abc import Sequence

from trueup.calibrate.actuator.model import Actuator
from trueup.data.log import Log
from trueup.data.resample import rate_of
from trueup.robot.load import Robot
from trueup.world.batch import SimCfg
from trueup.world.replay.replay import ReplayCfg, replay_logs
from trueup.world.replay.replayed import Replay


def roll(
    robot: Robot,
    logs: Sequence[Log],
    actuator: Actuator,
    sim: SimCfg,
    *,
    horizon_s: float | None = None,
    most: int = 400,
) -> list[Replay]:
    """Replay logs, one result each; with a horizon, those that are long enough, from at most `most` states."""
    if horizon_s is not None:
        logs = [log for log in logs if len(log) > max(1, round(horizon_s * rate_of(log)))]
    cfg = ReplayCfg(sim=sim, window_s=horizon_s, most=max(1, most // max(1, len(logs))))
    return replay_logs(robot, logs, cfg, prepare=actuator.apply, build=actuator.simulation)
