"""UAN by inversion: find the torque that the simulator lacks along the logs, then teach it to the net by regression.

A round replays whole logs under the present net, finds what is still lacking (`uan_inverse`) and lets the net learn the
sum of both from what it saw. The first round starts from the base; later ones from the motion that the net itself
makes, so that what it sees in use is what it learned on. The end of every log is kept back: the round that replays it
best is the result, the base itself (a net of zeros) among the candidates.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trueup.calibrate.net_learner import NetLearner
from trueup.calibrate.uan_data import Rows
from trueup.calibrate.uan_inverse import Lacking, lacking_torque
from trueup.calibrate.uan_rollout import Rollouts
from trueup.models.actuator_net import ActuatorNet, Float32
from trueup.rl.parameters import Adam

FloatArray = NDArray[np.float64]
State = dict[str, NDArray[np.generic]]


@dataclass(frozen=True, kw_only=True)
class RegressCfg:
    """Settings of the rounds.

    corrections  of the torque series in the first round, and in later ones
    passes       over the data in the first round; later ones take half
    rate, decay  of Adam (half in later rounds, falling along half a cosine) and of the weights
    """

    rounds: int = 5
    corrections: tuple[int, int] = (3, 2)
    passes: int = 60
    batch: int = 256
    rate: float = 2e-3
    decay: float = 1e-2


class RegressTrainer:
    """Learns a residual net on tracks of one length; `iterate` until `done`, one pass over the data at a time."""

    def __init__(
        self, rollouts: Rollouts, learner: NetLearner, starts: Rows, kept: float, cfg: RegressCfg, seed: int
    ) -> None:
        self.rollouts, self.learner, self.starts, self.kept = rollouts, learner, starts, kept
        self.cfg, self.seed, self.round, self.at = cfg, seed, 0, 0
        self.best = learner.parameters.flat.numpy().copy()
        self.best_error = np.inf
        self._first = learner.parameters.flat.numpy().copy()  # at the beginning of the round
        self._data: tuple[Float32, Float32] | None = None
        shape = (learner.net.spec.njoint, len(learner.net.spec.signals))
        self.low: Float32 = np.full(shape, np.inf, np.float32)
        self.high: Float32 = np.full(shape, -np.inf, np.float32)

    @property
    def progress(self) -> float:
        """Share that is done."""
        passed = sum(self._passes(k) for k in range(self.round)) + self.at
        return passed / sum(self._passes(k) for k in range(self.cfg.rounds))

    @property
    def done(self) -> bool:
        return self.round >= self.cfg.rounds

    def iterate(self) -> None:
        """One pass; at the beginning of a round the replays that it learns from, after the last the final look."""
        if self._data is None:
            self._begin()
        assert self._data is not None
        inputs, torque = self._data
        cfg, passes = self.cfg, self._passes(self.round)
        falling = 0.02 + 0.98 * 0.5 * (1.0 + np.cos(np.pi * self.at / passes))
        rate = cfg.rate * falling * (1.0 if self.round == 0 else 0.5)
        rng = np.random.default_rng([self.seed, self.round, self.at])
        for part in np.array_split(rng.permutation(len(inputs)), max(1, len(inputs) // cfg.batch)):
            self.learner.regress(inputs[part], torque[part], rate, cfg.decay)
        self.at += 1
        if self.at == passes:
            self.round, self.at, self._data = self.round + 1, 0, None
            self._first[:] = self.learner.parameters.flat.numpy()
            if self.done:
                self._judge(lacking_torque(self.rollouts, self.learner.actuator(), self.starts, 0))

    def result(self) -> ActuatorNet:
        """The net with the best weights so far."""
        return self.learner.actuator(self.best)

    def _passes(self, k: int) -> int:
        return self.cfg.passes if k == 0 else max(1, self.cfg.passes // 2)

    def _begin(self) -> None:
        """Replay under the weights of the round's beginning, and find what they lack."""
        flat = self.learner.parameters.flat.numpy()
        now, flat[:] = flat.copy(), self._first
        corrections = self.cfg.corrections[0 if self.round == 0 else 1]
        lacking = lacking_torque(self.rollouts, self.learner.actuator(), self.starts, corrections)
        self._judge(lacking)
        cut = [slice(0, round((1.0 - self.kept) * len(part))) for part in lacking.torque]
        inputs = np.concatenate([part[rows] for part, rows in zip(lacking.inputs, cut, strict=True)])
        torque = np.concatenate([part[rows] for part, rows in zip(lacking.torque, cut, strict=True)])
        self._data = inputs, (torque + self.learner.torques(inputs)).astype(np.float32)
        self.low = np.minimum(self.low, inputs.min(axis=(0, 3)))
        self.high = np.maximum(self.high, inputs.max(axis=(0, 3)))
        flat[:] = now
        if self.at == 0:
            self.learner.adam = Adam(self.learner.parameters)

    def _judge(self, found: Lacking) -> None:
        """Remember the weights under which the part kept back was replayed best."""
        late = found.error[:, round((1.0 - self.kept) * found.error.shape[1]) :]
        error = float(np.sqrt((late**2).mean(axis=(0, 1))).mean())
        if error < self.best_error:
            self.best_error = error
            self.best[:] = self._first

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
