"""UAN without gradients: CMA-ES on the weights of a small net, for the comparison in `actuator_methods.py`.

A candidate costs a batch of rollouts, so the net has eight hidden units, the covariance is diagonal, and windows are
few and short. Everything else is as in the gradient's trainer.
"""

from __future__ import annotations

from importlib import import_module

import numpy as np
import torch

from trueup.calibrate.nets.net_learner import NetLearner, NetShape
from trueup.calibrate.nets.uan import uan
from trueup.models.actuator_net import ActuatorNet

HIDDEN = (8,)
WINDOWS, WINDOW_S = 16, 0.6
_STEP = 0.1


class CmaTrainer:
    """Learns by `iterate`, one generation each; there is no end but the caller's."""

    done = False

    def __init__(self, problem: uan.UanProblem, seed: int) -> None:
        self._problem, self._seed, self._generation = problem, seed, 0
        self._learner = NetLearner(problem.blank, NetShape(hidden=HIDDEN, context=0), seed)
        self._flat = self._learner.parameters.flat.numpy().copy()
        marks = torch.zeros_like(self._learner.parameters.flat)
        for view in self._learner.parameters.views(marks).values():
            view.fill_(1.0)
        self._used = np.flatnonzero(marks.numpy())  # padding left out
        options = {"CMA_diagonal": True, "seed": seed + 1, "verbose": -9}
        engine = import_module("cma").CMAEvolutionStrategy
        self._engine = engine(self._flat[self._used].astype(np.float64), _STEP, options)
        self._best, self._least = self._flat.copy(), self._kept(self._flat)

    def iterate(self) -> None:
        """Ask, judge all on the same windows, tell; the mean is judged on what was kept back."""
        rng = np.random.default_rng([self._seed, self._generation])
        rows = np.sort(rng.choice(self._problem.windows.train, self._problem.rollouts.nwindow))
        asked = self._engine.ask()
        self._engine.tell(asked, [self._loss(self._whole(x), rows) for x in asked])
        mean = self._whole(self._engine.mean)
        loss = self._kept(mean)
        if loss < self._least:
            self._best, self._least = mean, loss
        self._generation += 1

    def result(self) -> ActuatorNet:
        """The best net so far."""
        return self._learner.actuator(self._best)

    def _whole(self, x: np.ndarray) -> np.ndarray:
        flat = self._flat.copy()
        flat[self._used] = x
        return flat

    def _kept(self, flat: np.ndarray) -> float:
        rows = np.resize(self._problem.windows.held, self._problem.rollouts.nwindow)
        return self._loss(flat, rows)

    def _loss(self, flat: np.ndarray, rows: np.ndarray) -> float:
        problem = self._problem
        error = problem.rollouts.run(self._learner.actuator(flat), rows).error
        return float(np.mean((error[:, problem.windows.warm_up :] / problem.unit) ** 2))
