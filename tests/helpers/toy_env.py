"""A point that is pushed towards the origin: an environment without a simulator."""

import numpy as np

from trueup.core.rows import RowRandom
from trueup.rl.env import Mirror, Obs, Step


class ToyEnv:
    """x' = x + 0.2 (a - hidden) in the plane; reward 2 - |x|^2/9, so that it pays to stay.

    Out of bounds beyond 3; time runs out after 20 steps. `hidden` is drawn for each episode and is the privileged
    factor. `poison` (a count of steps) makes a reward NaN.
    """

    nactor, ncritic, nprivileged, naction, control_dt = 2, 4, 2, 2, 0.02
    limit = 20

    def __init__(self, nenv=16, seed=0, poison=None, hidden=0.5):
        self.nenv, self.poison, self.scale = nenv, poison, hidden
        self.random = RowRandom(seed, "toy", nenv)
        self.x, self.hidden = np.zeros((nenv, 2)), np.zeros((nenv, 2))
        self.age, self.total = np.zeros(nenv, np.int64), 0
        swap = np.array([1, 0])
        four = np.array([1, 0, 3, 2])
        ones = np.ones(4, np.float32)
        self.mirror = Mirror(swap, ones[:2], four, ones, swap, ones[:2])

    def _restart(self, rows):
        draw = self.random.uniform(4, rows)
        self.x[rows], self.hidden[rows] = 4 * draw[:, :2] - 2, self.scale * (2 * draw[:, 2:] - 1)
        self.age[rows] = 0

    def _see(self, rows=slice(None)):
        x, hidden = self.x[rows].astype(np.float32), self.hidden[rows].astype(np.float32)
        return Obs(x, np.concatenate([x, hidden], axis=1), hidden)

    def reset(self):
        self._restart(np.arange(self.nenv))
        self.age[:] = np.arange(self.nenv) % self.limit  # so that episodes do not end together
        return self._see()

    def step(self, action):
        self.x += 0.2 * (np.clip(action, -2, 2) - self.hidden)
        self.age += 1
        self.total += 1
        square = (self.x**2).sum(axis=1)
        reward = (2 - square / 9).astype(np.float32)
        if self.total == self.poison:
            reward[3] = np.nan
        terminated = np.abs(self.x).max(axis=1) > 3
        truncated = (self.age >= self.limit) & ~terminated
        ended = np.flatnonzero(terminated | truncated)
        last = self._see(ended)
        self._restart(ended)
        return Step(self._see(), reward, terminated, truncated, ended, last, {"distance": float(square.mean())})

    def state(self):
        return {
            "x": self.x.copy(),
            "hidden": self.hidden.copy(),
            "age": self.age.copy(),
            "total": np.array(self.total),
            "random": self.random.counter.copy(),
        }

    def restore(self, state):
        self.x[:], self.hidden[:], self.age[:] = state["x"], state["hidden"], state["age"]
        self.total = int(state["total"])
        self.random.counter[:] = state["random"]
