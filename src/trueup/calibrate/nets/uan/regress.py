"""UAN by inversion: find the torque that the simulator lacks along the logs, then teach it to the net by regression.

A round replays whole logs under the present net, finds what is still lacking (`uan_inverse`) and lets the net learn the
sum of both. What it sees while it learns is one of two motions, and neither is always right:

corrected  the motion with the lacking torque added, which is the measured one. Where all that is lacking is a function
           of what the net sees, one round finds it. But what a hand, a stand or a neighbour does moves the joint too:
           the net then takes the joint's answer for the cause, and fed back it makes the motion worse
simulated  the motion as the net itself makes it, from commands alone: no disturbance is in it, and what does not
           follow from the commands averages out (the instruments of closed-loop identification). It is not yet where
           the robot was, so it needs more rounds

A net inside the loop changes what it sees: a whole step can be too far. So a round ends with a search along its step,
by the end of every log, which is kept back; without progress there the training ends. The best weights are the result,
unless the base itself replays that part better: then it is a net of zeros.

Several ways of learning in a race: each has one round, and the one that leads on the part kept back goes on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from trueup.calibrate.nets.net_learner import NetLearner, Regression
from trueup.calibrate.nets.uan.inverse import lacking_torque
from trueup.calibrate.nets.uan.rollout import Rollouts, Rows
from trueup.models.actuator_net import ActuatorNet, Float32
from trueup.rl.nets.parameters import Adam

FloatArray = NDArray[np.float64]
Way = Literal["corrected", "simulated"]
State = dict[str, NDArray[np.generic]]
_AT_ONCE = 100  # steps from one look at the clock to the next


@dataclass(frozen=True, kw_only=True)
class RegressCfg:
    """Settings of the rounds.

    corrections  of the torque series in the first round, and in later ones
    steps        of Adam in the first round; later ones take half
    batch        torques, of all joints together, in a step
    rate, decay  of Adam (half in later rounds, falling along half a cosine) and of the weights
    shares       of a round's step that are tried at its end
    ways         what the net sees while it learns; of several, the best after one round goes on
    """

    rounds: int = 5
    corrections: tuple[int, int] = (4, 2)
    steps: int = 10_000
    batch: int = 768
    rate: float = 2e-3
    decay: float = 1e-2
    shares: tuple[float, ...] = (1.0, 0.5, 0.25)
    ways: tuple[Way, ...] = ("corrected", "simulated")


def late_error(error: FloatArray, kept: float) -> float:
    """Mean over joints of the error of replays (nwindow, L, njoint) in their last part, rad."""
    late = error[:, round((1.0 - kept) * error.shape[1]) :]
    return float(np.sqrt((late**2).mean(axis=(0, 1))).mean())


class Replays(NamedTuple):
    """Where whole replays start, which share at their end is kept back, and the base as a net of zeros with its error.

    left  (nwindow, L, njoint) rad
    """

    starts: Rows
    kept: float
    base: ActuatorNet
    left: FloatArray


class RegressTrainer:
    """Learns a residual net on tracks of one length; `iterate` until `done`, a hundred steps at a time."""

    def __init__(
        self, rollouts: Rollouts, learner: NetLearner, replays: Replays, cfg: RegressCfg, seed: int
    ) -> None:
        self.rollouts, self.learner, self.starts, self.kept = rollouts, learner, replays.starts, replays.kept
        self.base, self.base_error = replays.base, late_error(replays.left, replays.kept)
        self.cfg, self.seed, self.round, self.at = cfg, seed, 0, 0
        self.best = learner.parameters.flat.numpy().copy()
        self.best_error = np.inf
        self._first = learner.parameters.flat.numpy().copy()  # at the beginning of the round
        self._regressions: list[Regression] = []
        shape = (learner.net.spec.njoint, len(learner.net.spec.signals))
        self.low: Float32 = np.full(shape, np.inf, np.float32)
        self.high: Float32 = np.full(shape, -np.inf, np.float32)

    @property
    def progress(self) -> float:
        """Share that is done."""
        passed = sum(self._steps(k) for k in range(self.round)) + self.at
        return passed / sum(self._steps(k) for k in range(self.cfg.rounds))

    @property
    def first_share(self) -> float:
        """Progress at the end of the first round."""
        return self._steps(0) / sum(self._steps(k) for k in range(self.cfg.rounds))

    @property
    def done(self) -> bool:
        return self.round >= self.cfg.rounds

    def iterate(self) -> None:
        """Some steps; at the beginning of a round the replays that it learns from, at its end the search."""
        if not self._regressions:
            self._begin()
        cfg, steps, njoint = self.cfg, self._steps(self.round), self.learner.net.spec.njoint
        rng = np.random.default_rng([self.seed, self.round, self.at])
        shape = (min(_AT_ONCE, steps - self.at), max(1, cfg.batch // njoint))
        for rows in torch.from_numpy(rng.integers(0, len(self._regressions[0].torque), shape)):
            falling = 0.02 + 0.98 * 0.5 * (1.0 + np.cos(np.pi * self.at / steps))
            rate = cfg.rate * falling * (1.0 if self.round == 0 else 0.5)
            self.learner.regress(self._regressions, rows, rate, cfg.decay)
            self.at += 1
        if self.at == steps:
            self._end()

    def result(self) -> ActuatorNet:
        """The net with the best weights so far, or the base."""
        return self.learner.actuator(self.best) if self.best_error < self.base_error else self.base

    def _steps(self, k: int) -> int:
        return self.cfg.steps if k == 0 else max(1, self.cfg.steps // 2)

    def _begin(self) -> None:
        """Replay under the weights of the round's beginning, and find what they lack."""
        flat = self.learner.parameters.flat.numpy()
        now, flat[:] = flat.copy(), self._first
        corrections = self.cfg.corrections[0 if self.round == 0 else 1]
        lacking = lacking_torque(
            self.rollouts,
            self.learner.actuator(),
            self.starts,
            corrections,
            corrected=self.cfg.ways[0] == "corrected",
        )
        cut = [slice(0, round((1.0 - self.kept) * len(part))) for part in lacking.torque]
        inputs = np.concatenate([part[rows] for part, rows in zip(lacking.inputs, cut, strict=True)])
        torque = np.concatenate([part[rows] for part, rows in zip(lacking.torque, cut, strict=True)])
        wanted = torque + self.learner.torques(inputs)
        self._regressions = self.learner.regressions(inputs, wanted.astype(np.float32))
        self.low, self.high = np.minimum(self.low, lacking.low), np.maximum(self.high, lacking.high)
        flat[:] = now
        if self.at == 0:
            self.learner.adam = Adam(self.learner.parameters)

    def _end(self) -> None:
        """Go on from the best of some shares of the round's step; where none is progress, the training ends."""
        flat, before = self.learner.parameters.flat.numpy(), self.best_error
        new = flat.copy()
        first = self.learner.silent(new) if self.round == 0 else self._first
        for share in self.cfg.shares:
            flat[:] = first + share * (new - first)
            error = late_error(self.rollouts.run(self.learner.actuator(), self.starts).error, self.kept)
            if error < self.best_error:
                self.best_error, self.best[:] = error, flat
        self.round, self.at, self._regressions = self.round + 1, 0, []
        if not self.best_error < before:
            self.round = self.cfg.rounds
        flat[:] = self.best
        self._first[:] = self.best

    # --- checkpoints ---
    def state(self) -> State:
        """What a resumed training needs; the round's data follow from the weights at its beginning."""
        adam = self.learner.adam
        return {
            "flat": self.learner.parameters.flat.numpy().copy(),
            "first": self._first.copy(),
            "mean": adam.mean.numpy().copy(),
            "square": adam.square.numpy().copy(),
            "place": np.array([adam.steps, self.round, self.at]),
            "best": self.best.copy(),
            "best_error": np.array([self.best_error]),
            "range": np.stack([self.low, self.high]),
        }

    def restore(self, state: State) -> None:
        """Go on from `state`."""
        adam = self.learner.adam
        self.learner.parameters.flat.numpy()[:] = state["flat"]
        self._first[:], self.best[:] = state["first"], state["best"]
        adam.mean.numpy()[:], adam.square.numpy()[:] = state["mean"], state["square"]
        adam.steps, self.round, self.at = (int(number) for number in state["place"])
        self.best_error = float(state["best_error"][0])
        self.low, self.high = np.array(state["range"], np.float32)


class Race:
    """A trainer made of trainers; who leads after the first round only gets better, so it leads to the end."""

    def __init__(self, runners: Sequence[RegressTrainer]) -> None:
        self.runners = list(runners)

    @property
    def leader(self) -> RegressTrainer:
        """The best so far."""
        return min(self.runners, key=lambda one: one.best_error)

    @property
    def low(self) -> Float32:
        return self.leader.low

    @property
    def high(self) -> Float32:
        return self.leader.high

    @property
    def done(self) -> bool:
        return self._waiting is None and self.leader.done

    @property
    def progress(self) -> float:
        """Share that is done: first rounds of all, then the leader's others."""
        if self.done:
            return 1.0
        first = self.runners[0].first_share
        more = max((one.progress - first for one in self.runners), default=0.0)
        passed = sum(min(one.progress, first) for one in self.runners) + max(0.0, more)
        return passed / (1.0 + first * (len(self.runners) - 1))

    def iterate(self) -> None:
        """Some steps of whose turn it is."""
        (self._waiting or self.leader).iterate()

    def result(self) -> ActuatorNet:
        """The leader's net, or the base."""
        return self.leader.result()

    @property
    def _waiting(self) -> RegressTrainer | None:
        """The first that has not had its round."""
        return next((one for one in self.runners if one.round == 0), None)

    # --- checkpoints ---
    def state(self) -> State:
        """What a resumed training needs, of all."""
        return {
            f"{k}/{name}": part for k, one in enumerate(self.runners) for name, part in one.state().items()
        }

    def restore(self, state: State) -> None:
        """Go on from `state`."""
        for k, one in enumerate(self.runners):
            start = f"{k}/"
            one.restore(
                {name.removeprefix(start): part for name, part in state.items() if name.startswith(start)}
            )
