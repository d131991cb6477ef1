"""Short replays under a learned actuator, from recorded states, with the net's input signals at each of its steps.

Logs are laid end to end (`Tracks`); a window is a start row from which enough rows of the same log follow.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import mujoco
import numpy as np
from numpy.typing import NDArray

from trueup.calibrate.data.cutting import position_noise
from trueup.calibrate.data.logs import by_gain, in_order
from trueup.calibrate.fit.residuals import fit_sim_cfg
from trueup.core.arrays import FloatArray
from trueup.data.log import Log
from trueup.data.resample import at_rate, common_rate
from trueup.models.actuator_net import ActuatorNet, Float32, NetSpec, Setting
from trueup.robot.load import Robot
from trueup.world.actuators.net_actuator import NetActuator, put_settings, with_net
from trueup.world.actuators.substep import SubstepState
from trueup.world.batch import BatchSim
from trueup.world.replay.playback import FollowedGains, begin, set_gains
from trueup.world.replay.tracks import Tracks, lay_tracks

Rows = NDArray[np.intp]
_MARGIN = 0.1  # of the width of the fitted range


def make_tracks(robot: Robot, logs: Sequence[Log]) -> Tracks:
    """Lay logs end to end on one clock, cut where gains change for long."""
    ordered = [in_order(robot, log) for log in logs]
    rate = common_rate(ordered)
    return lay_tracks(robot, [part for log in ordered for part in by_gain(at_rate(log, rate))])


def encoder_noise(tracks: Tracks) -> FloatArray:
    """(njoint,) noise of the encoders, rad, root mean square over the logs."""
    parts = [tracks.measured[a : tracks.last[a]] for a in np.unique(tracks.first)]
    return np.sqrt(np.mean([position_noise(part) ** 2 for part in parts], axis=0))


class NetRollout(NamedTuple):
    """Windows run side by side.

    signals  (depth + K, nsignal, nwindow, njoint) inputs of the net: `depth` steps before the start, then every step
    error    (nwindow, L, njoint) simulated minus measured position after each row of the log, rad
    """

    signals: Float32
    error: FloatArray

    def inputs(self, spec: NetSpec) -> Float32:
        """The net's inputs, (K, nwindow, njoint, nsignal, ntap)."""
        steps = len(self.signals) - spec.depth
        at = spec.depth + np.arange(steps)[:, None] - np.array(spec.taps)
        return np.ascontiguousarray(self.signals[at].transpose(0, 3, 4, 2, 1))

    def widen(self, known: Float32) -> Float32:
        """A range (smallest and largest, njoint, nsignal) that includes these signals too."""
        return wider(known, self.signals.transpose(0, 2, 3, 1))


def no_range(spec: NetSpec) -> Float32:
    """The empty range of signals, (2, njoint, nsignal)."""
    infinite: Float32 = np.full((spec.njoint, len(spec.signals)), np.inf, np.float32)
    return np.stack([infinite, -infinite])


def wider(known: Float32, signals: Float32) -> Float32:
    """A range that includes signals (..., njoint, nsignal) too."""
    rows = signals.reshape(-1, *signals.shape[-2:])
    return np.stack([np.minimum(known[0], rows.min(axis=0)), np.maximum(known[1], rows.max(axis=0))])


def with_range(net: ActuatorNet, known: Float32) -> ActuatorNet:
    """The net with this as its fitted range, a little wider on both sides."""
    groups = [list(group) for group in net.spec.groups]
    low = np.stack([known[0, group].min(axis=0) for group in groups])
    high = np.stack([known[1, group].max(axis=0) for group in groups])
    more = _MARGIN * (high - low)
    return replace(net, low=low - more, high=high + more)


class SignalRecorder(NetActuator):
    """A NetActuator that records the net's input signals.

    added  (steps of the net, nsim, njoint) torque beside the net's; held  (nsim, njoint) torque instead of it
    """

    clips = False  # the range is found during training
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
    """A batch of `nwindow` windows of `length` rows; `stand`: settings of the robot's stand, beside the net's."""

    def __init__(
        self,
        robot: Robot,
        tracks: Tracks,
        net: ActuatorNet,
        nwindow: int,
        length: int,
        physics_hz: float,
        stand: tuple[Setting, ...] = (),
    ) -> None:
        self.robot, self.tracks, self.length, self.nwindow, self.stand = robot, tracks, length, nwindow, stand
        self.noise = encoder_noise(tracks)
        names = [setting.name for setting in (*net.spec.settings, *stand)]
        cfg = fit_sim_cfg(robot, tracks.rate_hz, names, free_base=tracks.base_pos is not None, physics_hz=physics_hz)
        self.actuator = SignalRecorder(net)
        self.sim = BatchSim(robot, replace(with_net(cfg, net), nsim=nwindow), self.actuator)
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
        """Execute the commands of rows of the log."""
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


def joint_inertia(sim: BatchSim) -> FloatArray:
    """Joint-space inertia (nsim, njoint, njoint) in the default pose, with the armature that is set."""
    model, data, dof = sim.model, mujoco.MjData(sim.model), sim.index.dof
    data.qpos[:], full = sim.default_qpos, np.zeros((model.nv, model.nv))
    mujoco.mj_forward(model, data)
    mujoco.mj_fullM(model, data, full)
    extra = sim.params.get("armature") - model.dof_armature[dof]
    return full[np.ix_(dof, dof)] + extra[:, :, None] * np.eye(len(dof))
