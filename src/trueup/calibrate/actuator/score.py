"""How well an actuator model predicts motion it has not seen: at horizons, over whole logs, and in torque.

Errors are root mean squares of joint position, averaged over joints (rad). Standard errors come from drawing blocks (a
second of a whole rollout, or a window) with replacement: neighbouring samples are not independent.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from trueup.calibrate.actuator.model import Actuator
from trueup.calibrate.uncertainty.scores import bootstrap, error_blocks
from trueup.data.log import Log
from trueup.data.resample import rate_of
from trueup.robot.load import Robot
from trueup.world.batch import SimCfg
from trueup.world.replay.replay import Replay, ReplayCfg, joint_rmse, replay_logs

HORIZONS_S = (0.1, 1.0)  # horizons besides one step and whole logs, s
_DRAWS = 300


def roll(
    robot: Robot,
    logs: Sequence[Log],
    actuator: Actuator,
    sim: SimCfg,
    *,
    horizon_s: float | None = None,
    most: int = 400,
) -> list[Replay]:
    """Replay logs, one result each; with a horizon only logs long enough, from at most `most` states."""
    if horizon_s is not None:
        logs = [log for log in logs if len(log) > max(1, round(horizon_s * rate_of(log)))]
    cfg = ReplayCfg(sim=sim, window_s=horizon_s, most=max(1, most // max(1, len(logs))))
    return replay_logs(robot, logs, cfg, prepare=actuator.apply, build=actuator.simulation)


class PositionError(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A position error, rad: mean over joints, its standard error, per joint. seconds None: whole logs, open loop."""

    seconds: float | None
    mean: float
    se: float
    joints: list[float]


class Scores(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One rung on one split.

    held     errors on unseen data: one step, 0.1 s, 1 s, whole logs
    train    the whole-log error on what was fitted
    groups   whole-log errors by what was not in the fit: "motion", "gain"
    torque   root mean square error of torque on unseen motion, mean over joints, N m; None: no torque, or no claim
    diverged  a simulation of an unseen motion blew up
    """

    held: list[PositionError]
    train: PositionError
    groups: dict[str, PositionError] = {}
    torque: float | None = None
    diverged: bool = False

    @property
    def whole(self) -> PositionError:
        """Over whole unseen logs."""
        return self.held[-1]

    @property
    def motion(self) -> PositionError:
        """The same, for logs in which only the motion is new."""
        return self.groups.get("motion", self.whole)


def score_rung(
    robot: Robot, actuator: Actuator, train: Sequence[Log], held: Sequence[Log], groups: Sequence[str], sim: SimCfg
) -> Scores:
    """Score one rung; `groups`: what is new in each held-out log."""
    dt = 1.0 / rate_of(held[0])
    horizons = [dt, *(s for s in HORIZONS_S if dt < s < max(map(len, held)) * dt)]
    errors = [error_of(roll(robot, held, actuator, sim, horizon_s=s), s) for s in horizons]
    whole = roll(robot, held, actuator, sim)
    by = {
        name: error_of([replay for replay, new in zip(whole, groups, strict=True) if new == name], None)
        for name in dict.fromkeys(groups)
    }
    return Scores(
        held=[*errors, error_of(whole, None)],
        train=error_of(roll(robot, train, actuator, sim), None),
        groups=by if len(by) > 1 or "gain" in by else {},
        torque=actuator.torque_error(robot, [log for log, g in zip(held, groups, strict=True) if g == "motion"]),
        diverged=any(bool(replay.diverged.any()) for replay in whole),
    )


def error_of(replays: Sequence[Replay], seconds: float | None) -> PositionError:
    """The error of replays and its standard error over blocks."""
    joints = joint_rmse(replays)
    drawn = bootstrap(error_blocks(replays), _DRAWS).mean(axis=1)
    return PositionError(seconds=seconds, mean=float(joints.mean()), se=float(drawn.std()), joints=joints.tolist())
