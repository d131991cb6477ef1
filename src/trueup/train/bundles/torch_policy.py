"""TorchPolicy: a PolicyNet computed by PyTorch, as an independent reference for exports."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from trueup.core.layers import Layer
from trueup.policy.net import PolicyNet
from trueup.policy.normalizer import EPS, LIMIT, Float32


class TorchPolicy:
    """Acts for `nrow` rows with torch's own layers, in float32."""

    def __init__(self, net: PolicyNet, nrow: int = 1) -> None:
        self.spec, normalizer = net.spec, net.normalizer
        self._actor, self._encoder = _module(net.actor), _module(net.encoder)
        self._mean = torch.tensor(normalizer.mean, dtype=torch.float32)
        self._std = torch.tensor(np.sqrt(normalizer.var) + EPS, dtype=torch.float32)
        width = len(normalizer.mean) + net.naction
        self._past = torch.zeros(nrow, net.spec.steps, width)
        self._last = torch.zeros(nrow, net.naction)

    @torch.no_grad()
    def act(self, obs: Float32) -> Float32:
        """Actions (n, naction) of observations (n, nobs)."""
        x = torch.clamp((torch.from_numpy(obs) - self._mean) / self._std, -LIMIT, LIMIT)
        fed = x
        if self.spec.steps:
            self._past = torch.roll(self._past, -1, dims=1)
            self._past[:, -1] = torch.cat([x, self._last], dim=1)
            fed = torch.flatten(self._past, 1)
        if self.spec.kind == "latent":
            fed = torch.cat([x, self._encoder(fed)], dim=1)
        out = self._actor(fed)
        out = torch.tanh(out) * self.spec.squash if self.spec.squash else out
        if self.spec.steps:
            self._last = out.clone()
        return np.asarray(out.numpy(), np.float32)

    def restart(self, rows: NDArray[np.intp]) -> None:
        self._past[rows] = 0.0
        self._last[rows] = 0.0


def _module(layers: tuple[Layer, ...]) -> torch.nn.Sequential:
    parts: list[torch.nn.Module] = []
    for weight, bias in layers:
        linear = torch.nn.Linear(weight.shape[1], weight.shape[0])
        linear.weight.data, linear.bias.data = torch.from_numpy(weight.copy()), torch.from_numpy(bias.copy())
        parts += [linear, torch.nn.ELU()]
    return torch.nn.Sequential(*parts[:-1])
