"""One decision a game: an environment whose best action and whose values are known."""

import numpy as np

from trueup.rl.env import Obs, Step

BEST = 0.5


class BanditEnv:
    """Every step ends with reward -(a - 0.5)^2; there is nothing to see."""

    nactor, ncritic, nprivileged, naction, control_dt = 1, 1, 0, 1, 0.02
    mirror = None

    def __init__(self, nenv=16):
        self.nenv, self.played = nenv, 0

    def reset(self):
        return self._see(self.nenv)

    def step(self, action):
        self.played += 1
        ended = np.ones(self.nenv, bool)
        reward = -((np.asarray(action)[:, 0] - BEST) ** 2).astype(np.float32)
        return Step(
            self._see(self.nenv), reward, ended, ~ended, np.arange(self.nenv), self._see(self.nenv), {"played": 1.0}
        )

    def _see(self, rows):
        nothing = np.zeros((rows, 1), np.float32)
        return Obs(nothing, nothing.copy(), np.zeros((rows, 0), np.float32))

    def state(self):
        return {"played": np.array(self.played)}

    def restore(self, state):
        self.played = int(state["played"])
