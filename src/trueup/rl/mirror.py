"""Symmetry: left and right exchanged, for robots that have them.

Half of each minibatch is replaced by its mirror image, which costs nothing and teaches both sides at once
(data augmentation of arXiv 2403.04359, without making batches larger).
"""

from __future__ import annotations

import torch
from torch import Tensor

from trueup.rl.env import Mirror


class Reflection:
    """Mirrors the first half of the rows of a minibatch in place."""

    def __init__(self, mirror: Mirror) -> None:
        self._obs = _tensors(mirror.actor_index, mirror.actor_sign)
        self._critic = _tensors(mirror.critic_index, mirror.critic_sign)
        self._action = _tensors(mirror.action_index, mirror.action_sign)

    def actor(self, obs: Tensor, *actions: Tensor) -> None:
        """Normalised observations of the actor, and actions."""
        _reflect(obs, *self._obs)
        for action in actions:
            _reflect(action, *self._action)

    def critic(self, obs: Tensor) -> None:
        """Normalised observations of the critic."""
        _reflect(obs, *self._critic)


def _tensors(index: object, sign: object) -> tuple[Tensor, Tensor]:
    return torch.as_tensor(index, dtype=torch.int64), torch.as_tensor(sign, dtype=torch.float32)


def _reflect(values: Tensor, index: Tensor, sign: Tensor) -> None:
    half = values[: len(values) // 2]
    half.copy_(half[:, index].mul_(sign))
