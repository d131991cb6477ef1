"""Actor and critic: separate networks with separate parameters, so that two cores can train them side by side."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from trueup.rl.nets.mlp import Mlp, mlp_shapes
from trueup.rl.nets.parameters import Parameters
from trueup.rl.settings import NetCfg


class Actor:
    """Gaussian policy: mean = net([obs, z]), z = mu(privileged), one standard deviation for each action."""

    def __init__(self, nobs: int, nprivileged: int, naction: int, cfg: NetCfg, rows: int) -> None:
        self.cfg, self.nobs, self.naction = cfg, nobs, naction
        sizes = (nobs + cfg.latent, *cfg.actor, naction)
        shapes = {**mlp_shapes("actor", sizes), "log_std": (naction,)}
        encoder_sizes = (nprivileged, *cfg.encoder, cfg.latent)
        if cfg.latent:
            shapes |= mlp_shapes("encoder", encoder_sizes)
        self.parameters = Parameters(shapes)
        self.net = Mlp(self.parameters, "actor", sizes, rows)
        self.encoder = Mlp(self.parameters, "encoder", encoder_sizes, rows) if cfg.latent else None
        self.log_std = self.parameters.view["log_std"]
        self._joined = torch.empty(rows, nobs + cfg.latent)

    def initialize(self, generator: torch.Generator) -> None:
        """Small actions at first: the last layer starts near zero."""
        self.net.initialize(generator, last_gain=0.01)
        if self.encoder is not None:
            self.encoder.initialize(generator)
        self.log_std.fill_(math.log(self.cfg.std))

    def forward(self, obs: Tensor, privileged: Tensor) -> Tensor:
        """Mean action (n, nact) of normalised observations; a buffer that the next call overwrites."""
        if self.encoder is None:
            return self.net.forward(obs)
        joined = self._joined[: len(obs)]
        joined[:, : self.nobs] = obs
        joined[:, self.nobs :] = self.encoder.forward(privileged)
        return self.net.forward(joined)

    def backward(self, grad_mean: Tensor, grad_log_std: Tensor) -> None:
        """Write the gradient of every parameter, after `forward`."""
        grad = self.net.backward(grad_mean, to_input=self.encoder is not None)
        if self.encoder is not None:
            self.encoder.backward(grad[:, self.nobs :])
        self.parameters.grad_view["log_std"].copy_(grad_log_std)

    def clamp_std(self, highest: float) -> None:
        """Clamp the standard deviation between `min_std` and `highest`."""
        self.log_std.clamp_(min=math.log(self.cfg.min_std), max=math.log(highest))


class Critic:
    """Value of a state, from everything the simulator knows."""

    def __init__(self, nobs: int, cfg: NetCfg, rows: int) -> None:
        sizes = (nobs, *cfg.critic, 1)
        self.parameters = Parameters(mlp_shapes("critic", sizes))
        self.net = Mlp(self.parameters, "critic", sizes, rows)

    def forward(self, obs: Tensor) -> Tensor:
        """Values (n,) of normalised observations; a buffer."""
        return self.net.forward(obs)[:, 0]

    def values(self, obs: Tensor) -> Tensor:
        """Values of any number of rows, a copy."""
        parts = [self.forward(part).clone() for part in torch.split(obs, self.net.rows)]
        return torch.cat(parts) if parts else torch.empty(0)
