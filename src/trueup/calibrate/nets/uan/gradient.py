"""UAN by gradient: the engine rolls out, a linear model of the joints carries the error back to the net's torques.

Each iteration runs windows from recorded states under the present net, takes the squared position error after a
warm-up, in units of what the base simulator leaves, and moves the weights by Adam. Windows of the end of every log are
kept back: the weights that did best there are the result, the base itself (a net of zeros) among the candidates.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trueup.calibrate.nets.net_learner import NetLearner
from trueup.calibrate.nets.uan.adjoint import linear_joints, state_of_signals, torque_gradient
from trueup.calibrate.nets.uan.data import Rows
from trueup.calibrate.nets.uan.rollout import Rollout, Rollouts
from trueup.models.actuator_net import ActuatorNet, Float32

FloatArray = NDArray[np.float64]
State = dict[str, NDArray[np.generic]]


@dataclass(frozen=True, kw_only=True)
class GradientCfg:
    """Settings of the descent.

    rate   of Adam at the start; falls to a fiftieth along half a cosine
    decay  of the weights
    check_every  iterations from one look at the windows kept back to the next
    """

    iterations: int = 240
    rate: float = 3e-3
    decay: float = 1e-2
    check_every: int = 20


class Windows(NamedTuple):
    """Start rows to draw from, rows kept back, and rows of the log that are not judged at a window's start."""

    train: Rows
    kept: Rows
    warm_up: int


class GradientTrainer:
    """Learns a residual net; `iterate` until `done`."""

    def __init__(
        self,
        rollouts: Rollouts,
        learner: NetLearner,
        windows: Windows,
        unit: FloatArray,
        cfg: GradientCfg,
        seed: int,
    ) -> None:
        """`unit` (njoint,) rad: what an error is measured in."""
        self.rollouts, self.learner, self.windows = rollouts, learner, windows
        self.unit, self.cfg, self.seed, self.iteration = unit, cfg, seed, 0
        self.best = learner.parameters.flat.numpy().copy()
        self.best_loss = np.inf
        self.low: Float32 = np.full((len(unit), len(learner.net.spec.signals)), np.inf, np.float32)
        self.high: Float32 = -self.low
        self.losses: list[float] = []

    @property
    def progress(self) -> float:
        """Share that is done."""
        return self.iteration / self.cfg.iterations

    @property
    def done(self) -> bool:
        return self.iteration >= self.cfg.iterations

    def iterate(self) -> float:
        """One step; returns the loss of its windows."""
        cfg, rollouts = self.cfg, self.rollouts
        if self.iteration % cfg.check_every == 0:
            self.check()
        rng = np.random.default_rng([self.seed, self.iteration])
        rows = np.sort(rng.choice(self.windows.train, rollouts.nwindow))
        rollout = rollouts.run(self.learner.actuator(), rows)
        self._widen(rollout)
        inputs = self._inputs(rollout)
        loss, loss_grad = self._loss(rollout.error, len(inputs))
        torque_grad = self._torque_gradient(rows, inputs, loss_grad)
        falling = 0.5 * (1.0 + np.cos(np.pi * self.iteration / cfg.iterations))
        rate = cfg.rate * (0.02 + 0.98 * falling)
        flat = inputs.reshape(-1, *inputs.shape[2:])
        self.learner.step(flat, torque_grad.reshape(len(flat), -1), rate, cfg.decay)
        self.iteration += 1
        if self.done:
            self.check()
        return loss

    def check(self) -> float:
        """Loss of the windows kept back; the best weights so far are remembered."""
        rollouts = self.rollouts
        error = [
            rollouts.run(self.learner.actuator(), rows).error
            for rows in _batches(self.windows.kept, rollouts.nwindow)
        ]
        loss = float(np.mean((np.concatenate(error)[:, self.windows.warm_up :] / self.unit) ** 2))
        self.losses.append(loss)
        if loss < self.best_loss:
            self.best_loss = loss
            self.best[:] = self.learner.parameters.flat.numpy()
        return loss

    def result(self) -> ActuatorNet:
        """The net with the best weights so far."""
        return self.learner.actuator(self.best)

    def _inputs(self, rollout: Rollout) -> Float32:
        """What the net saw, (K, nwindow, njoint, nsignal, ntap)."""
        spec = self.learner.net.spec
        steps = len(rollout.signals) - spec.depth
        at = spec.depth + np.arange(steps)[:, None] - np.array(spec.taps)
        return np.ascontiguousarray(rollout.signals[at].transpose(0, 3, 4, 2, 1))

    def _loss(self, error: FloatArray, steps: int) -> tuple[float, FloatArray]:
        """Mean squared error in units, and its gradient by position at each step of the net."""
        warm_up, length = self.windows.warm_up, error.shape[1]
        judged = error[:, warm_up:] / self.unit
        grad = np.zeros((steps + 1, *error[:, 0].shape))
        at = np.round((np.arange(warm_up, length) + 1) * steps / length).astype(np.intp)
        np.add.at(grad, at, (2.0 / judged.size * judged / self.unit).transpose(1, 0, 2))
        return float((judged**2).mean()), grad

    def _torque_gradient(self, rows: Rows, inputs: Float32, loss_grad: FloatArray) -> FloatArray:
        sim, learner, tracks = self.rollouts.sim, self.learner, self.rollouts.tracks
        dt = self.rollouts.actuator.every * sim.physics_dt
        flat = inputs.reshape(-1, *inputs.shape[2:])
        net_grad = learner.input_gradient(flat).reshape(inputs.shape)
        linear = linear_joints(sim, tracks.pos[rows + self.rollouts.length // 2], dt)
        seen = state_of_signals(learner.net.spec, sim.gains.get("kp"), sim.gains.get("kd"))
        return torque_gradient(linear, loss_grad, net_grad, seen, learner.net.spec.taps)

    def _widen(self, rollout: Rollout) -> None:
        """Keep the range of what the net saw, per joint."""
        signals = rollout.signals.transpose(0, 2, 3, 1)
        self.low = np.minimum(self.low, signals.min(axis=(0, 1)))
        self.high = np.maximum(self.high, signals.max(axis=(0, 1)))

    # --- checkpoints ---
    def state(self) -> State:
        """What a resumed training needs."""
        adam = self.learner.adam
        return {
            "flat": self.learner.parameters.flat.numpy().copy(),
            "mean": adam.mean.numpy().copy(),
            "square": adam.square.numpy().copy(),
            "steps": np.array([adam.steps, self.iteration]),
            "best": self.best.copy(),
            "best_loss": np.array([self.best_loss]),
            "range": np.stack([self.low, self.high]),
        }

    def restore(self, state: State) -> None:
        """Go on from `state`."""
        adam = self.learner.adam
        self.learner.parameters.flat.numpy()[:] = state["flat"]
        adam.mean.numpy()[:], adam.square.numpy()[:] = state["mean"], state["square"]
        adam.steps, self.iteration = (int(number) for number in state["steps"])
        self.best[:], self.best_loss = state["best"], float(state["best_loss"][0])
        self.low, self.high = np.array(state["range"], np.float32)


def _batches(rows: Rows, size: int) -> list[Rows]:
    """Rows in batches of one size; the last is filled with repeats."""
    count = -(-len(rows) // size)
    return np.split(np.resize(rows, count * size), count)
