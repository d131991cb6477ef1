"""UAN by inversion: find the torque that the simulator is missing along the logs, then teach it to the net.

A round replays whole logs under the present net, finds the torque that is still missing (`inverse`) and lets the net
learn the sum of both. The inputs it is trained on come from one of two motions, and neither is always right:

corrected  the motion with the missing torque added, which is the measured one. Where the missing torque is a function
           of the inputs, one round finds it. But a hand, a stand or a neighbour moves the joint too: the net then takes
           the joint's response for the cause, and fed back it makes the motion worse
simulated  the motion as the net itself makes it, from commands alone: it holds no disturbance, and what does not follow
           from the commands averages out (instrumental variables of closed-loop identification). It is not yet where
           the robot was, so it needs more rounds

A net inside the loop changes its own inputs: a whole step can be too far. So a round ends with a line search along its
step, scored on the held-out end of every log; without progress there the training ends. The best weights are the
result, unless the base itself replays that part better: then it is a net of zeros.

With several ways, each has one round, and the one with the lowest held-out error continues (`Race`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from trueup.calibrate.nets.net_learner import NetLearner, Regression, State
from trueup.calibrate.nets.uan.inverse import missing_torque
from trueup.calibrate.nets.uan.rollout import Rollouts, Rows, SignalRange
from trueup.models.actuator_net import ActuatorNet

FloatArray = NDArray[np.float64]
Way = Literal["corrected", "simulated"]
_AT_ONCE = 100  # steps of one `iterate`


@dataclass(frozen=True, kw_only=True)
class RegressCfg:
    """Settings of the rounds.

    corrections  of the torque series in the first round, and in later ones
    steps        of Adam in the first round; later ones take half
    batch        torques, of all joints together, in a step
    rate, decay  of Adam (half in later rounds, with a cosine schedule) and of the weights
    shares       of a round's step that are tried at its end
    ways         motions that inputs come from; of several, the best after one round continues
    """

    rounds: int = 5
    corrections: tuple[int, int] = (4, 2)
    steps: int = 10_000
    batch: int = 768
    rate: float = 2e-3
    decay: float = 1e-2
    shares: tuple[float, ...] = (1.0, 0.5, 0.25)
    ways: tuple[Way, ...] = ("corrected", "simulated")


def late_error(error: FloatArray, share: float) -> float:
    """Mean over joints of the error of replays (nwindow, L, njoint) in their last share, rad."""
    late = error[:, round((1.0 - share) * error.shape[1]) :]
    return float(np.sqrt((late**2).mean(axis=(0, 1))).mean())


class Replays(NamedTuple):
    """Start rows of whole replays, the share at their end that is held out, and the base as a net of zeros.

    left  (nwindow, L, njoint) error of the base, rad
    """

    starts: Rows
    held: float
    base: ActuatorNet
    left: FloatArray


class RegressTrainer:
    """Learns a residual net on tracks of one length; `iterate` until `done`, a hundred steps at a time."""

    def __init__(self, rollouts: Rollouts, learner: NetLearner, replays: Replays, cfg: RegressCfg, seed: int) -> None:
        self.rollouts, self.learner, self.starts, self.held = rollouts, learner, replays.starts, replays.held
        self.base, self.base_error = replays.base, late_error(replays.left, replays.held)
        self.cfg, self.seed, self.round, self.at = cfg, seed, 0, 0
        self.best, self.best_error = learner.copy(), np.inf
        self.range = SignalRange(learner.net.spec)
        self._first = learner.copy()  # weights at the beginning of the round
        self._data: list[Regression] = []
        self._steps = [cfg.steps, *[max(1, cfg.steps // 2)] * (cfg.rounds - 1)]

    @property
    def progress(self) -> float:
        """Share that is done."""
        return (sum(self._steps[: self.round]) + self.at) / sum(self._steps)

    @property
    def first_share(self) -> float:
        """Progress at the end of the first round."""
        return self._steps[0] / sum(self._steps)

    @property
    def done(self) -> bool:
        return self.round >= self.cfg.rounds

    def iterate(self) -> None:
        """Some steps; at the beginning of a round the replays that it learns from, at its end the line search."""
        if not self._data:
            self._begin()
        cfg, steps, njoint = self.cfg, self._steps[self.round], self.learner.net.spec.njoint
        rng = np.random.default_rng([self.seed, self.round, self.at])
        shape = (min(_AT_ONCE, steps - self.at), max(1, cfg.batch // njoint))
        for rows in torch.from_numpy(rng.integers(0, len(self._data[0].torque), shape)):
            falling = 0.02 + 0.98 * 0.5 * (1.0 + np.cos(np.pi * self.at / steps))
            rate = cfg.rate * falling * (1.0 if self.round == 0 else 0.5)
            self.learner.regress(self._data, rows, rate, cfg.decay)
            self.at += 1
        if self.at == steps:
            self._end()

    def result(self) -> ActuatorNet:
        """The net with the best weights so far, or the base."""
        return self.learner.actuator(self.best) if self.best_error < self.base_error else self.base

    def _begin(self) -> None:
        """Replay under the weights of the round's beginning, and find the torque that is missing."""
        learner, now = self.learner, self.learner.copy()
        learner.put(self._first)
        missing = missing_torque(
            self.rollouts,
            learner.actuator(),
            self.starts,
            self.cfg.corrections[min(self.round, 1)],
            corrected=self.cfg.ways[0] == "corrected",
        )
        cut = [slice(0, round((1.0 - self.held) * len(part))) for part in missing.torque]
        inputs = np.concatenate([part[rows] for part, rows in zip(missing.inputs, cut, strict=True)])
        torque = np.concatenate([part[rows] for part, rows in zip(missing.torque, cut, strict=True)])
        wanted = torque + learner.torques(inputs)
        self._data = learner.regressions(inputs, wanted.astype(np.float32))
        for replay in (missing.before, missing.after):
            self.range.widen(*replay.range())
        learner.put(now)
        if self.at == 0:
            learner.restart_adam()

    def _end(self) -> None:
        """Continue from the best of some shares of the round's step; without progress the training ends."""
        learner, before, new = self.learner, self.best_error, self.learner.copy()
        first = learner.silent(new) if self.round == 0 else self._first
        for share in self.cfg.shares:
            learner.put(first + share * (new - first))
            error = late_error(self.rollouts.run(learner.actuator(), self.starts).error, self.held)
            if error < self.best_error:
                self.best_error, self.best = error, learner.copy()
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
            "range": self.range.state(),
        }

    def restore(self, state: State) -> None:
        """Continue from `state`."""
        self.learner.restore(state)
        self._first, self.best = (np.array(state[name], np.float32) for name in ("first", "best"))
        self.round, self.at = (int(number) for number in state["place"])
        self.best_error = float(state["best_error"][0])
        self.range.restore(state["range"])


class Race:
    """A trainer made of trainers: one round each, then the leader to its end (its error only falls, so it leads on)."""

    def __init__(self, runners: Sequence[RegressTrainer]) -> None:
        self.runners = list(runners)

    @property
    def leader(self) -> RegressTrainer:
        """The trainer with the lowest held-out error so far."""
        return min(self.runners, key=lambda one: one.best_error)

    @property
    def range(self) -> SignalRange:
        return self.leader.range

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
        """Some steps of the trainer whose turn it is."""
        (self._waiting or self.leader).iterate()

    def result(self) -> ActuatorNet:
        """The leader's net, or the base."""
        return self.leader.result()

    @property
    def _waiting(self) -> RegressTrainer | None:
        """The first trainer that has not had its round."""
        return next((one for one in self.runners if one.round == 0), None)

    def state(self) -> State:
        """What a resumed training needs, of all."""
        return {f"{k}/{name}": a for k, one in enumerate(self.runners) for name, a in one.state().items()}

    def restore(self, state: State) -> None:
        """Continue from `state`."""
        for k, one in enumerate(self.runners):
            mine = f"{k}/"
            one.restore({n.removeprefix(mine): a for n, a in state.items() if n.startswith(mine)})
