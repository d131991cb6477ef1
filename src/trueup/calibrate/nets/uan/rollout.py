"""Logs as a learned actuator's training sees them: laid end to end on one clock, with the noise of their encoders.

A window is a start row from which enough rows of the same log follow.

Short replays under a learned actuator: from recorded states, with what the net saw at each of its steps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trueup.calibrate.data.cutting import position_noise
from trueup.calibrate.data.logs import by_gain, in_order
from trueup.calibrate.fit.residuals import fit_sim_cfg
from trueup.data.log import Log
from trueup.data.resample import at_rate, common_rate
from trueup.models.actuator_net import ActuatorNet, Float32, Setting
from trueup.robot.load import Robot
from trueup.world.actuators.net_actuator import NetActuator, put_settings, with_net
from trueup.world.actuators.substep import SubstepState
from trueup.world.batch import BatchSim
from trueup.world.replay import tracks as sim_tracks
from trueup.world.replay.playback import FollowedGains, begin, set_gains

FloatArray = NDArray[np.float64]
Rows = NDArray[np.intp]


@dataclass(frozen=True, kw_only=True)
class NoisyTracks(sim_tracks.Tracks):
    """Logs end to end; noise (njoint,) of the encoders, rad."""

    noise: FloatArray


def make_tracks(robot: Robot, logs: Sequence[Log]) -> NoisyTracks:
    """Lay logs end to end on one clock, cut where gains change for long."""
    ordered = [in_order(robot, log) for log in logs]
    rate = common_rate(ordered)
    parts = [part for log in ordered for part in by_gain(at_rate(log, rate))]
    laid = sim_tracks.lay_tracks(robot, parts)
    noise = np.sqrt(np.mean([position_noise(part["joint_pos"]) ** 2 for part in parts], axis=0))
    return NoisyTracks(noise=noise, **{one.name: getattr(laid, one.name) for one in fields(laid)})


class NetRollout(NamedTuple):
    """Windows run side by side.

    signals  (depth + K, nsignal, nwindow, njoint) what the net saw: `depth` steps before the start, then every step
    error    (nwindow, L, njoint) simulated minus measured position after each row of the log, rad
    """

    signals: Float32
    error: FloatArray


class Recorder(NetActuator):
    """A NetActuator that keeps what the net saw.

    added  (steps of the net, nsim, njoint) torque beside the net's; held  (nsim, njoint) torque instead of it
    """

    clips = False  # the range is found while it learns
    seen: list[Float32]
    added: FloatArray | None = None
    held: FloatArray | None = None

    def step(self, sim: BatchSim, state: SubstepState) -> FloatArray:
        is_due = self._clock[0] % self.every == 0
        torque = super().step(sim, state)
        if is_due:
            self.seen.append(self._signals.copy())
            if self.added is not None:
                self._torque += self.added[len(self.seen) - 1 - self.net.spec.depth]
            if self.held is not None:
                self._torque[:] = self.held
        return torque


class Rollouts:
    """A batch of `nwindow` windows of `length` rows."""

    def __init__(
        self,
        robot: Robot,
        tracks: NoisyTracks,
        net: ActuatorNet,
        nwindow: int,
        length: int,
        physics_hz: float,
        stand: tuple[Setting, ...] = (),
    ) -> None:
        """`stand`: settings of what holds the robot, beside those of the net."""
        self.tracks, self.length, self.nwindow, self.stand = tracks, length, nwindow, stand
        names = [one.name for one in (*net.spec.settings, *stand)]
        cfg = fit_sim_cfg(robot, tracks.rate_hz, names, physics_hz=physics_hz)
        self.actuator = Recorder(net)
        self.sim = BatchSim(robot, replace(with_net(cfg, net), nsim=nwindow), self.actuator)
        self.ticks = round(self.sim.substeps / self.actuator.every)  # per row of the log; 0: the log is finer
        self._base = {name: self.sim.params.get(name) for name in dict.fromkeys(names)}
        self._past = math.ceil(self.sim.cfg.max_delay_s * tracks.rate_hz) + 1

    def start(self, rows: Rows) -> None:
        """Put window k into the recorded state of row `rows[k]`, with its history."""
        sim = self.sim
        recorded = self.tracks.recorded(rows, self.length, past=self._past)
        for name, values in self._base.items():
            sim.params.set(name, values)
        set_gains(sim, recorded)
        self.actuator.prepare(sim)
        put_settings(sim, self.stand)
        self._follow, self._begun, self._changes = FollowedGains(sim, recorded), rows, set(recorded.changes)
        begin(sim, recorded)
        self._follow.at(0)

    def run(self, net: ActuatorNet, rows: Rows) -> NetRollout:
        """Run the windows under a net of the same spec."""
        self.actuator.forward.load(net)
        self.actuator.net = net
        self.start(rows)
        depth = net.spec.depth
        self.actuator.seen = [self.actuator.forward.read(age) for age in range(depth - 1, -1, -1)]
        error = np.empty((self.nwindow, self.length, net.spec.njoint))
        for t in range(self.length):
            self.step(rows + t)
            error[:, t] = self.error(rows + t + 1)
        error[self.sim.diverged] = 0.0
        return NetRollout(np.stack(self.actuator.seen), np.clip(np.nan_to_num(error), -1.0, 1.0))

    def step(self, rows: Rows) -> None:
        """Carry out the commands of rows of the log."""
        tracks, age = self.tracks, int(rows[0] - self._begun[0])
        if age in self._changes:
            self._follow.at(age)
        self.sim.step(
            tracks.target[rows],
            None if tracks.target_vel is None else tracks.target_vel[rows],
            None if tracks.torque is None else tracks.torque[rows],
        )

    def error(self, rows: Rows) -> FloatArray:
        """Simulated minus measured position (nwindow, njoint) at rows of the log."""
        return self.sim.joint_pos + self.sim.encoder_bias - self.tracks.measured[rows]
