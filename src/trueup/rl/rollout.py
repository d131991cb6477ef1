"""What one iteration saw: T steps of N copies, time first, in buffers that are allocated once."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trueup.rl.env import Env, Floats

STATISTICS_EVERY = 4  # steps: neighbours are nearly alike, and the sums cost time


@dataclass
class Rollout:
    """Samples of an iteration, flattened to (T N, ...) for learning; NumPy views of the same memory are (T, N, ...).

    actor, critic, privileged  normalised observations, as the networks saw them
    mean, log_prob, log_std    of the policy that acted
    raw_actor, raw_critic      observations of every fourth step as they came, for the running statistics
    timeouts                   places in (T N,) where time ran out, with the critic's view of the final state
    """

    env: Env
    steps: int
    timeouts: list[NDArray[np.intp]] = field(default_factory=list)
    finals: list[Floats] = field(default_factory=list)

    def __post_init__(self) -> None:
        env, size = self.env, self.steps * self.env.nenv
        self.actor = torch.empty(size, env.nactor)
        self.critic = torch.empty(size, env.ncritic)
        self.privileged = torch.empty(size, env.nprivileged)
        self.action, self.mean = torch.empty(size, env.naction), torch.empty(size, env.naction)
        self.log_std = torch.empty(env.naction)
        self.log_prob, self.value = torch.empty(size), torch.empty(size)
        self.advantage, self.returns = torch.empty(size), torch.empty(size)
        self.reward: Floats = np.empty((self.steps, env.nenv), np.float32)
        self.done = np.empty((self.steps, env.nenv), bool)
        kept = -(-self.steps // STATISTICS_EVERY)
        self.raw_actor: Floats = np.empty((kept, env.nenv, env.nactor), np.float32)
        self.raw_critic: Floats = np.empty((kept, env.nenv, env.ncritic), np.float32)

    def at(self, tensor: Tensor, t: int) -> Tensor:
        """Rows of step `t`, a view."""
        return tensor[t * self.env.nenv : (t + 1) * self.env.nenv]

    def restart(self) -> None:
        """Begin the next iteration."""
        self.timeouts.clear()
        self.finals.clear()

    def add_timeouts(self, t: int, rows: NDArray[np.intp], final_critic: Floats) -> None:
        """Remember rows whose time ran out at step `t`, and their final normalised critic observations."""
        self.timeouts.append(t * self.env.nenv + rows)
        self.finals.append(final_critic)
