"""Mirror symmetry: left and right exchanged, for robots that have them.

Half of each minibatch is replaced by its mirror image, which costs nothing and teaches both sides at once
(data augmentation of arXiv 2403.04359, without making batches larger).
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trueup.rl.env import Floats, Mirror


class Reflection:
    """Mirrors the first half of the rows of a minibatch in place."""

    def __init__(self, mirror: Mirror, nprivileged: int) -> None:
        self._privileged = _tensors(*factor_mirror(mirror, nprivileged))
        self._obs = _tensors(mirror.actor_index, mirror.actor_sign)
        self._critic = _tensors(mirror.critic_index, mirror.critic_sign)
        self._action = _tensors(mirror.action_index, mirror.action_sign)

    def actor(self, obs: Tensor, privileged: Tensor, *actions: Tensor) -> None:
        """Normalised observations of the actor, the hidden factors, and actions."""
        _reflect(obs, *self._obs)
        _reflect(privileged, *self._privileged)
        for action in actions:
            _reflect(action, *self._action)

    def critic(self, obs: Tensor) -> None:
        """Normalised observations of the critic."""
        _reflect(obs, *self._critic)


def factor_mirror(mirror: Mirror, nprivileged: int) -> tuple[NDArray[np.intp], Floats]:
    """Index and sign of the hidden factors: the last columns of the critic's observations."""
    start = len(mirror.critic_index) - nprivileged
    return mirror.critic_index[start:] - start, mirror.critic_sign[start:]


def _tensors(index: object, sign: object) -> tuple[Tensor, Tensor]:
    return torch.as_tensor(index, dtype=torch.int64), torch.as_tensor(sign, dtype=torch.float32)


def _reflect(values: Tensor, index: Tensor, sign: Tensor) -> None:
    half = values[: len(values) // 2]
    half.copy_(half[:, index].mul_(sign))
