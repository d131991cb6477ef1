"""Logs replayed side by side under one actuator model: whole, or cut at a horizon and restarted from measured states.

All windows of all logs are rows of one batch, so that a model that runs between physics steps costs one pass.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from trueup.calibrate.actuator.model import Actuator
from trueup.calibrate.noise import smooth
from trueup.data.log import Log
from trueup.robot.load import Robot
from trueup.sim.batch import BatchSim, SimCfg
from trueup.sim.net_history import prime_history
from trueup.sim.whole_robot import start_at

FloatArray = NDArray[np.float64]
Rows = NDArray[np.intp]
_BEFORE_S = 0.6  # before its first row a log is as in that row, for delays and for models with a memory


@dataclass(frozen=True, kw_only=True)
class Rolled:
    """Simulated beside measured, (nwindow, L, njoint); sample 0 of each window is the measured start.

    valid  (nwindow, L): samples that the log has; shorter logs are padded
    log    (nwindow,) which log each window is of
    """

    dt: float
    log: Rows
    joint_pos: FloatArray
    measured: FloatArray
    valid: NDArray[np.bool_]
    diverged: NDArray[np.bool_]

    @property
    def error(self) -> FloatArray:
        """(nwindow, L - 1, njoint) rad, start excluded; what blew up is 10 rad off, what is padded zero."""
        error = (self.joint_pos - self.measured)[:, 1:]
        error = np.where(np.isfinite(error), np.clip(error, -10.0, 10.0), 10.0)
        return np.where(self.valid[:, 1:, None], error, 0.0)

    def only(self, keep: NDArray[np.bool_]) -> Rolled:
        """Some of the windows."""
        names = ("log", "joint_pos", "measured", "valid", "diverged")
        return replace(self, **{name: getattr(self, name)[keep] for name in names})


def roll(
    robot: Robot,
    logs: Sequence[Log],
    actuator: Actuator,
    sim: SimCfg,
    *,
    horizon_s: float | None = None,
    most: int = 400,
) -> Rolled:
    """Replay logs of one rate; with a horizon, from at most `most` measured states, spread evenly."""
    whole = _Joined(robot, logs)
    starts = [_starts(log, horizon_s, max(1, most // len(logs))) for log in logs]
    length = max(len(log) for log in logs) if horizon_s is None else _rows(logs[0], horizon_s) + 1
    at = np.concatenate([first + start for first, start in zip(whole.first, starts, strict=True)])
    which = np.repeat(np.arange(len(logs)), [len(start) for start in starts])
    last = whole.last[which][:, None]
    rows = at[:, None] + np.arange(length)
    valid, rows = rows < last, np.minimum(rows, last - 1)
    batch = _begun(robot, actuator, replace(sim, nsim=len(at)), whole, at)
    log = whole.log
    more = {"target_vel": "target_vel", "torque": "target_torque"}
    rest = {key: log[name][rows[:, :-1]] for key, name in more.items() if whole.uses(name)}
    out = batch.rollout(log["target_pos"][rows[:, :-1]], record=("qpos",), **rest)
    seen = out["qpos"][:, :, batch.index.qpos] + batch.encoder_bias[:, None, :]
    measured = log["joint_pos"][rows]
    return Rolled(
        dt=batch.control_dt,
        log=which,
        joint_pos=np.concatenate([measured[:, :1], seen], axis=1),
        measured=measured,
        valid=valid,
        diverged=batch.diverged,
    )


class _Joined:
    """Several logs as one, each led in by its own first row; log k has rows first[k] to last[k] - 1.

    A gain that a log lacks is the spec's; other signals that a log lacks are zero.
    """

    def __init__(self, robot: Robot, logs: Sequence[Log]) -> None:
        self.lead = math.ceil(_BEFORE_S * logs[0].rate_hz)
        lengths = np.array([self.lead + len(log) for log in logs])
        self.last = np.cumsum(lengths)
        self.first = self.last - lengths + self.lead
        smoothed = [smooth(log) for log in logs]
        self.position = self._join([position for position, _ in smoothed])
        self.velocity = self._join([velocity for _, velocity in smoothed])
        names = [name for name in _SIGNALS if any(name in log for log in logs)]
        missing = {"target_kp": robot.spec.kp, "target_kd": robot.spec.kd}
        signals = {}
        for name in names:
            shape = [log["joint_pos"].shape for log in logs]
            default = [np.broadcast_to(missing.get(name, 0.0), s) for s in shape]
            signals[name] = self._join(
                [log.signals.get(name, other) for log, other in zip(logs, default, strict=True)]
            )
        dt = (logs[0].time[-1] - logs[0].time[0]) / (len(logs[0]) - 1)
        time = dt * np.arange(self.last[-1])
        self.log = Log(time=time, joint_names=logs[0].joint_names, signals=signals)

    def _join(self, parts: Sequence[FloatArray]) -> FloatArray:
        return np.concatenate([a for part in parts for a in (np.repeat(part[:1], self.lead, axis=0), part)])

    def uses(self, name: str) -> bool:
        return name in self.log and bool(np.any(self.log[name]))


_SIGNALS = ("joint_pos", "target_pos", "target_vel", "target_torque", "target_kp", "target_kd")


def _rows(log: Log, seconds: float) -> int:
    return max(1, round(seconds * log.rate_hz))


def _starts(log: Log, horizon_s: float | None, most: int) -> Rows:
    if horizon_s is None:
        return np.zeros(1, np.intp)
    last = len(log) - 1 - _rows(log, horizon_s)
    if last < 0:
        return np.zeros(0, np.intp)
    stride = max(_rows(log, horizon_s), math.ceil((last + 1) / most))
    return np.arange(0, last + 1, stride)


def at_rate(robot: Robot, sim: SimCfg, log: Log) -> SimCfg:
    """The simulation with the log's rate of commands, and physics at the next whole multiple of it."""
    rate = (len(log) - 1) / float(log.time[-1] - log.time[0])
    physics = rate * max(1, math.ceil((sim.physics_hz or robot.spec.physics_hz) / rate - 1e-3))
    return replace(sim, control_hz=rate, physics_hz=physics)


def _begun(robot: Robot, actuator: Actuator, sim: SimCfg, whole: _Joined, at: Rows) -> BatchSim:
    """A batch with every window in its measured state, after the commands and states that came before it."""
    cfg, log = at_rate(robot, sim, whole.log), whole.log
    if whole.uses("target_vel") or whole.uses("target_torque"):
        cfg = replace(cfg, actuator=replace(cfg.actuator, inputs="servo"))
    batch = actuator.simulation(robot, cfg)
    for name in ("kp", "kd"):
        if f"target_{name}" in log:
            batch.params.set(name, log[f"target_{name}"][at])
    actuator.apply(batch)
    qpos = np.broadcast_to(batch.default_qpos, (batch.nsim, batch.model.nq)).copy()
    qvel = np.zeros((batch.nsim, batch.model.nv))
    qpos[:, batch.index.qpos] = whole.position[at] - batch.encoder_bias
    qvel[:, batch.index.dof] = whole.velocity[at]
    start_at(batch, qpos, qvel)
    late = math.ceil(batch.cfg.max_delay_s / batch.control_dt) + 1
    batch.prime_delay(log["target_pos"][at[:, None] + np.arange(-late, 0)])
    prime_history(batch, log, whole.velocity, at)
    return batch
