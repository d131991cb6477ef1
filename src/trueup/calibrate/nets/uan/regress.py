"""UAN by inversion: estimate the torque that the simulator lacks along the logs, then regress the net on it.

A round replays whole logs under the present net with a torque series added to the servo, and corrects the series by the
error that it leaves (iterative learning control), through the inverse of a linear model in the frequency domain,

    G(w) = (-w^2 M + i w (Kd + D) + Kp)^-1,    dtau = -(G' G + r)^-1 G' e

The ridge r weighs the encoder's noise against plausible torques. Then the net learns by regression the part of its own
and the missing torque that its inputs explain. Inputs come from one of two motions, and neither is always right:

corrected  the motion with the missing torque added, which is the measured one. Where the missing torque is a function
           of the inputs, one round finds it. But a hand, a stand or another joint moves the joint too: the net then
           takes
           the joint's response for the cause, and fed back it makes the motion worse
simulated  the motion under the net itself, from commands alone: it has no disturbance, and what does not follow
           from the commands averages out (instrumental variables of closed-loop identification). It is not yet where
           the robot's motion, so it needs more rounds

A net inside the loop changes its own inputs: a whole step can be too far. So a round ends with a line search along its
step, scored on the held-out end of every log; without progress there the training ends. The best weights are the
result, unless the base itself replays that part better: then it is a net of zeros.

With several kinds of inputs, each trains one round, and the one with the lowest held-out error continues (`Race`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import torch

from trueup.calibrate.nets.net_learner import NetLearner, Regression, State, falling
from trueup.calibrate.nets.uan.rollout import NetRollout, Rollouts, Rows, joint_inertia, no_range, with_range
from trueup.core.arrays import FloatArray
from trueup.models.actuator_net import ActuatorNet, Float32

Way = Literal["corrected", "simulated"]
HELD = 0.15  # of every replay, at its end: to choose the weights by
_AT_ONCE = 100  # steps of one `iterate`
_TOP_HZ = 30.0  # above, an encoder shows noise only
_PAD_S = 1.0
_ROWS = 8192  # whose torques are computed at once


@dataclass(frozen=True, kw_only=True)
class RegressCfg:
    """Settings of the rounds.

    corrections  of the torque series in the first round, and in later ones
    steps        of Adam in the first round; later ones take half
    batch        torques, of all joints together, in a step
    rate, decay  of Adam (half in later rounds, with a cosine schedule) and of the weights
    shares       of a round's step tried by the line search at its end
    ways         motions that inputs are computed from; of several, the best after one round continues
    """

    rounds: int = 5
    corrections: tuple[int, int] = (4, 2)
    steps: int = 10_000
    batch: int = 768
    rate: float = 2e-3
    decay: float = 1e-2
    shares: tuple[float, ...] = (1.0, 0.5, 0.25)
    ways: tuple[Way, ...] = ("corrected", "simulated")


def late_error(error: FloatArray) -> float:
    """Mean over joints of the error of replays (nwindow, L, njoint) in their held-out part, rad."""
    late = error[:, round((1.0 - HELD) * error.shape[1]) :]
    return float(np.sqrt((late**2).mean(axis=(0, 1))).mean())


class MissingTorque(NamedTuple):
    """Inputs (nwindow, K, njoint, nsignal, ntap) to train on, and the missing torque (nwindow, K, njoint).

    before, after  replays without the torque and with it
    """

    inputs: Float32
    torque: FloatArray
    before: NetRollout
    after: NetRollout


def missing_torque(
    rollouts: Rollouts, net: ActuatorNet, starts: Rows, rounds: int, *, corrected: bool = True
) -> MissingTorque:
    """Estimate the missing torque of the replays under a net that begin at `starts`.

    corrected  inputs along the corrected motion; else along the motion under the net
    """
    spec, actuator = net.spec, rollouts.actuator
    steps = round(rollouts.length * rollouts.sim.substeps / actuator.every)
    at = np.minimum(np.arange(steps) * rollouts.length // steps, rollouts.length - 1)
    torque = np.zeros((steps, len(starts), spec.njoint))
    most = np.array(spec.limit) if spec.limit else np.inf
    actuator.added = None
    found = before = rollouts.run(net, starts)
    for _ in range(rounds):
        torque = np.clip(torque + _correction(rollouts, found.error).transpose(1, 0, 2)[at], -most, most)
        actuator.added = torque
        found = rollouts.run(net, starts)
    actuator.added = None
    inputs = (found if corrected else before).inputs(spec).swapaxes(0, 1)
    return MissingTorque(inputs, torque.swapaxes(0, 1), before, found)


def _correction(rollouts: Rollouts, error: FloatArray) -> FloatArray:
    """Torques (nwindow, L, njoint) whose effect would cancel errors (nwindow, L, njoint), by the linear model."""
    sim, rate, length = rollouts.sim, rollouts.tracks.rate_hz, error.shape[1]
    pad = round(_PAD_S * rate)
    spectrum = np.fft.rfft(np.pad(error, ((0, 0), (pad, pad), (0, 0)), mode="edge"), axis=1)
    frequency = np.fft.rfftfreq(length + 2 * pad, 1.0 / rate)
    used = frequency <= min(_TOP_HZ, 0.4 * rate)
    out = np.zeros_like(spectrum)
    stiffness, damping = sim.params.get("kp"), sim.params.get("kd") + sim.params.get("damping")
    inertia = joint_inertia(sim)
    omega = 2.0 * np.pi * frequency[used][:, None, None]
    plausible = (stiffness.mean(axis=0) * np.sqrt((error**2).mean(axis=(0, 1)))) ** 2
    ridge = np.diag(rollouts.noise**2 / np.maximum(plausible, 1e-12))
    for k in range(len(error)):
        g = np.linalg.inv(-(omega**2) * inertia[k] + 1j * omega * np.diag(damping[k]) + np.diag(stiffness[k]))
        g_h = g.conj().transpose(0, 2, 1)
        out[k, used] = -np.linalg.solve(g_h @ g + ridge, g_h @ spectrum[k, used][:, :, None])[:, :, 0]
    return np.fft.irfft(out, length + 2 * pad, axis=1)[:, pad : pad + length]


class RegressTrainer:
    """Learns a residual net on replays from rows `starts`; `iterate` until `done`, a hundred steps at a time.

    base, base_error  the simulator without the net, as a net of zeros, and its error in what is held out, rad
    """

    def __init__(
        self,
        rollouts: Rollouts,
        starts: Rows,
        learner: NetLearner,
        base: tuple[ActuatorNet, float],
        cfg: RegressCfg,
        seed: int,
    ) -> None:
        self.rollouts, self.starts, self.learner = rollouts, starts, learner
        self.base, self.base_error = base
        self.cfg, self.seed, self.round, self.at = cfg, seed, 0, 0
        self.best, self.best_error = learner.copy(), np.inf
        self.range = no_range(learner.net.spec)
        self._first = learner.copy()  # weights at the beginning of the round
        self._data: list[Regression] = []
        self._steps = [cfg.steps, *[max(1, cfg.steps // 2)] * (cfg.rounds - 1)]

    @property
    def progress(self) -> float:
        """Share of the training done."""
        return (sum(self._steps[: self.round]) + self.at) / sum(self._steps)

    @property
    def first_share(self) -> float:
        """Progress at the end of the first round."""
        return self._steps[0] / sum(self._steps)

    @property
    def done(self) -> bool:
        return self.round >= self.cfg.rounds

    def iterate(self) -> None:
        """Some steps; begins a round with its replays and ends it with the line search."""
        if not self._data:
            self._begin()
        cfg, steps, njoint = self.cfg, self._steps[self.round], self.learner.net.spec.njoint
        rng = np.random.default_rng([self.seed, self.round, self.at])
        shape = (min(_AT_ONCE, steps - self.at), max(1, cfg.batch // njoint))
        for rows in torch.from_numpy(rng.integers(0, len(self._data[0].torque), shape)):
            rate = cfg.rate * falling(self.at / steps) * (1.0 if self.round == 0 else 0.5)
            self.learner.regress(self._data, rows, rate, cfg.decay)
            self.at += 1
        if self.at == steps:
            self._end()

    def result(self) -> ActuatorNet:
        """The net with the best weights so far, or the base."""
        net = self.learner.actuator(self.best) if self.best_error < self.base_error else self.base
        return with_range(net, self.range)

    def _begin(self) -> None:
        """Replay under the round's initial weights, and estimate the missing torque."""
        net, rounds = self.learner.actuator(self._first), self.cfg.corrections[min(self.round, 1)]
        corrected = self.cfg.ways[0] == "corrected"
        missing = missing_torque(self.rollouts, net, self.starts, rounds, corrected=corrected)
        cut = round((1.0 - HELD) * missing.torque.shape[1])
        inputs = missing.inputs[:, :cut].reshape(-1, *missing.inputs.shape[2:])
        own = [net(inputs[k : k + _ROWS].astype(np.float64)) for k in range(0, len(inputs), _ROWS)]
        wanted = missing.torque[:, :cut].reshape(len(inputs), -1) + np.concatenate(own)
        self._data = self.learner.regressions(inputs, wanted.astype(np.float32))
        self.range = missing.after.widen(missing.before.widen(self.range))
        if self.at == 0:
            self.learner.restart_adam()

    def _end(self) -> None:
        """Continue from the best of some shares of the round's step; without progress the training ends."""
        learner, before, new = self.learner, self.best_error, self.learner.copy()
        first = learner.silent(new) if self.round == 0 else self._first
        for share in self.cfg.shares:
            weights = first + share * (new - first)
            error = late_error(self.rollouts.run(learner.actuator(weights), self.starts).error)
            if error < self.best_error:
                self.best_error, self.best = error, weights
        self.round, self.at, self._data = self.round + 1, 0, []
        if not self.best_error < before:
            self.round = self.cfg.rounds
        learner.put(self.best)
        self._first = self.best.copy()

    def state(self) -> State:
        """What a resumed training needs; the round's data follow from the weights at its beginning."""
        return {
            **self.learner.state(),
            "first": self._first,
            "place": np.array([self.round, self.at]),
            "best": self.best,
            "best_error": np.array([self.best_error]),
            "range": self.range,
        }

    def restore(self, state: State) -> None:
        """Continue from `state`."""
        self.learner.restore(state)
        self._first, self.best = (np.array(state[name], np.float32) for name in ("first", "best"))
        self.round, self.at = (int(number) for number in state["place"])
        self.best_error = float(state["best_error"][0])
        self.range = np.array(state["range"], np.float32)


class Race:
    """Several trainers: one round each, then the leader to its end (its error only falls, so it stays the leader)."""

    def __init__(self, runners: Sequence[RegressTrainer]) -> None:
        self.runners = list(runners)

    @property
    def leader(self) -> RegressTrainer:
        """The trainer with the lowest held-out error so far."""
        return min(self.runners, key=lambda trainer: trainer.best_error)

    @property
    def done(self) -> bool:
        return self._waiting is None and self.leader.done

    @property
    def progress(self) -> float:
        """Share done: first rounds of all, then the leader's others."""
        if self.done:
            return 1.0
        first = self.runners[0].first_share
        more = max((trainer.progress - first for trainer in self.runners), default=0.0)
        passed = sum(min(trainer.progress, first) for trainer in self.runners) + max(0.0, more)
        return passed / (1.0 + first * (len(self.runners) - 1))

    def iterate(self) -> None:
        """Some steps of the present trainer."""
        (self._waiting or self.leader).iterate()

    def result(self) -> ActuatorNet:
        """The leader's net, or the base."""
        return self.leader.result()

    @property
    def _waiting(self) -> RegressTrainer | None:
        """The first trainer that has not had its round."""
        return next((trainer for trainer in self.runners if trainer.round == 0), None)

    def state(self) -> State:
        """What a resumed training needs, of all."""
        return {f"{k}/{name}": a for k, trainer in enumerate(self.runners) for name, a in trainer.state().items()}

    def restore(self, state: State) -> None:
        """Continue from `state`."""
        for k, trainer in enumerate(self.runners):
            prefix = f"{k}/"
            trainer.restore({n.removeprefix(prefix): a for n, a in state.items() if n.startswith(prefix)})
