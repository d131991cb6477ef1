"""Replay of logs: the recorded commands in the simulator, from recorded states, and the errors of positions.

Open loop: one simulation per log, from the first sample to the last. Windows (multiple shooting): logs are cut into
windows, each starts from the state recorded there, and all run side by side in one batch. Everything that scores a
model against logs calls `replay_logs`, so that a number means the same everywhere: root mean square per joint, then the
mean over joints.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from trueup.core.arrays import FloatArray
from trueup.core.errors import TrueupError
from trueup.data.log import Log
from trueup.data.resample import SAME_RATE, is_uniform, rate_of
from trueup.robot.load import Robot
from trueup.robot.model import ModelCfg
from trueup.world.actuators.substep import SubstepModel
from trueup.world.batch import BatchSim, SimCfg
from trueup.world.replay.playback import joint_seen, play, set_gains
from trueup.world.replay.tracks import Start, lay_tracks

Rows = NDArray[np.intp]
Prepare = Callable[[BatchSim], None]
Build = Callable[[Robot, SimCfg], BatchSim]
_MEMORY_NUMBERS = 20_000_000  # of one batch's recorded motion (160 MB)
_LOST_RAD = 10.0  # error of a diverged simulation, and the largest that counts


@dataclass(frozen=True, kw_only=True)
class ReplayCfg:
    """How logs are replayed.

    window_s  length of windows, one after the other; None: open loop over whole logs
    most      windows of one log at most; more are spread evenly over it
    start     state that windows start in: "smoothed" over 60 ms (see `tracks`), or the samples as "measured"
    sim       physics; its nsim and control rate are set by the logs
    """

    window_s: float | None = None
    most: int | None = None
    start: Start = "smoothed"
    sim: SimCfg = field(default_factory=lambda: SimCfg(model=ModelCfg(base="fixed")))


def replay(
    robot: Robot,
    log: Log,
    cfg: ReplayCfg | None = None,
    *,
    prepare: Prepare | None = None,
    substep_model: SubstepModel | None = None,
) -> Replay:
    """Run one log's commands in the simulator; `prepare` may set parameters of the batch first."""
    build = None if substep_model is None else lambda robot, sim: BatchSim(robot, sim, substep_model)
    return replay_logs(robot, [log], cfg, prepare=prepare, build=build)[0]


def replay_logs(
    robot: Robot,
    logs: Sequence[Log],
    cfg: ReplayCfg | None = None,
    *,
    prepare: Prepare | None = None,
    build: Build | None = None,
) -> list[Replay]:
    """Replay logs, those of one rate side by side; one result per log, in their order.

    prepare  sets parameters of a batch; gains are those of the logs then
    build    makes the batch, when it is more than BatchSim(robot, sim)
    """
    cfg = cfg or ReplayCfg()
    ordered = [_checked(robot, log) for log in logs]
    out: dict[int, Replay] = {}
    for group in _groups(robot, ordered, cfg):
        found = _together(robot, [ordered[k] for k in group], cfg, prepare, build or BatchSim)
        out |= dict(zip(group, found, strict=True))
    return [out[k] for k in range(len(logs))]


def at_rate(robot: Robot, sim: SimCfg, rate_hz: float) -> SimCfg:
    """The simulation with control at a log's rate, and physics at the next whole multiple of it."""
    steps = (sim.physics_hz or robot.spec.physics_hz) / rate_hz
    return replace(sim, control_hz=rate_hz, physics_hz=rate_hz * max(1, math.ceil(steps * (1.0 - SAME_RATE) - 1e-3)))


def _together(robot: Robot, logs: Sequence[Log], cfg: ReplayCfg, prepare: Prepare | None, build: Build) -> list[Replay]:
    """Logs of one rate in one batch."""
    starts, length = _windows(logs, cfg)
    tracks = lay_tracks(robot, logs, start=cfg.start, free_base=cfg.sim.model.base == "free")
    sizes = [len(log) for log in logs]
    at = np.concatenate([a + begin for a, begin in zip(np.cumsum([0, *sizes[:-1]]), starts, strict=True)])
    # servo inputs always: what a model answers must not depend on which commands its neighbours in a batch use
    sim = replace(cfg.sim, nsim=len(at), actuator=replace(cfg.sim.actuator, inputs="servo"))
    batch = build(robot, at_rate(robot, sim, tracks.rate_hz))
    past = math.ceil(batch.cfg.max_delay_s / batch.control_dt) + 1
    recorded = tracks.recorded(at, length - 1, past=past)
    set_gains(batch, recorded)
    if prepare is not None:
        prepare(batch)
    out = play(batch, recorded)
    rows = np.minimum(at[:, None] + np.arange(length), tracks.last[at][:, None] - 1)
    measured = tracks.measured[rows]
    whole = Replay(
        start=np.concatenate(starts),
        time=np.arange(length, dtype=np.float64) * batch.control_dt,
        joint_names=robot.spec.joint_names,
        joint_pos=np.concatenate([measured[:, :1], joint_seen(batch, out["qpos"])], axis=1),
        joint_vel=np.concatenate([tracks.vel[at][:, None], out["qvel"][:, :, batch.index.dof]], axis=1),
        measured_pos=measured,
        diverged=batch.diverged,
    )
    which = np.repeat(np.arange(len(logs)), [len(begin) for begin in starts])
    rows_of = [length if cfg.window_s is not None else size for size in sizes]
    return [whole.part(which == k, rows_of[k]) for k in range(len(logs))]


def _checked(robot: Robot, log: Log) -> Log:
    log = log.with_joint_order(robot.spec.joint_names)
    if len(log) < 2:
        raise TrueupError(f"a replay needs at least two samples, found {len(log)}")
    if not is_uniform(log):
        raise TrueupError("the log's clock is uneven: a replay needs a uniform one; `resample` it first")
    return log


def _groups(robot: Robot, logs: Sequence[Log], cfg: ReplayCfg) -> list[list[int]]:
    """Logs to replay together: of one rate, and not more than fit into memory."""
    by_rate: dict[float, list[int]] = {}
    for k, log in enumerate(logs):
        by_rate.setdefault(rate_of(log), []).append(k)
    out = []
    for rate, group in by_rate.items():
        substeps = max(1.0, (cfg.sim.physics_hz or robot.spec.physics_hz) / rate)
        longest = max(len(logs[k]) for k in group)
        most = max(1, int(_MEMORY_NUMBERS // (4 * robot.spec.njoint * longest * min(substeps, 4.0))))
        out += [group[k : k + most] for k in range(0, len(group), most)]
    return out


def _windows(logs: Sequence[Log], cfg: ReplayCfg) -> tuple[list[Rows], int]:
    """Start rows of each log, and length in samples."""
    if cfg.window_s is None:
        return [np.zeros(1, np.intp) for _ in logs], max(len(log) for log in logs)
    rate, shortest = rate_of(logs[0]), min(len(log) for log in logs)
    length = max(1, round(cfg.window_s * rate)) + 1
    if length > shortest:
        raise TrueupError(f"windows of {cfg.window_s} s do not fit a log of {shortest / rate:.2f} s at {rate:.0f} Hz")
    return [_spread(np.arange(0, len(log) - length + 1, length - 1), cfg.most) for log in logs], length


def _spread(start: Rows, most: int | None) -> Rows:
    if most is None or len(start) <= most:
        return start
    return start[np.round(np.linspace(0, len(start) - 1, most)).astype(np.intp)]


@dataclass(frozen=True, kw_only=True)
class Replay:
    """One log, simulated beside measured, (nwindow, L, njoint); sample 0 of each window is the measured start.

    start  (nwindow,) row of the log each window begins at
    """

    start: Rows
    time: FloatArray
    joint_names: tuple[str, ...]
    joint_pos: FloatArray
    joint_vel: FloatArray
    measured_pos: FloatArray
    diverged: NDArray[np.bool_]

    @property
    def dt(self) -> float:
        return float(self.time[1] - self.time[0])

    @property
    def error(self) -> FloatArray:
        """(nwindow, L - 1, njoint) rad, the start excluded; what blew up is 10 rad off."""
        error = (self.joint_pos - self.measured_pos)[:, 1:]
        return np.where(np.isfinite(error), np.clip(error, -_LOST_RAD, _LOST_RAD), _LOST_RAD)

    @property
    def rmse(self) -> FloatArray:
        """Root mean square position error of each joint over all windows (rad)."""
        return joint_rmse([self])

    def part(self, keep: NDArray[np.bool_], length: int) -> Replay:
        """The first `length` samples of some of the windows."""
        cut = {name: getattr(self, name)[keep, :length] for name in ("joint_pos", "joint_vel", "measured_pos")}
        return replace(self, start=self.start[keep], diverged=self.diverged[keep], time=self.time[:length], **cut)


def joint_rmse(replays: Sequence[Replay]) -> FloatArray:
    """Root mean square position error of each joint over all samples of all windows (rad)."""
    return np.sqrt(_mean_over(replays, lambda error: error**2))


def joint_mae(replays: Sequence[Replay]) -> FloatArray:
    """Mean absolute position error of each joint over all samples of all windows (rad)."""
    return _mean_over(replays, np.abs)


def block_squares(replays: Sequence[Replay], block_s: float) -> FloatArray:
    """Mean squared error of each block of time, (nblock, njoint); a shorter window is one block."""
    out: list[FloatArray] = []
    for played in replays:
        size = max(1, round(block_s / played.dt))
        for window in played.error**2:
            out += [part.mean(axis=0) for part in np.array_split(window, max(1, len(window) // size))]
    return np.array(out)


def _mean_over(replays: Sequence[Replay], of: Callable[[FloatArray], FloatArray]) -> FloatArray:
    """Summed window by window, so that the same windows give the same digits however they were batched."""
    windows = [of(window) for played in replays for window in played.error]
    total: FloatArray = np.array([window.sum(axis=0) for window in windows]).sum(axis=0)
    return total / sum(len(window) for window in windows)
