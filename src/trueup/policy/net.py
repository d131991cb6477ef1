"""PolicyNet: a trained policy as arrays with its declared kind, as in checkpoints and exports.

A layer is (weight (out, in), bias (out,)); between layers stands ELU.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from trueup.core.errors import TrueupError
from trueup.core.layers import Layer, width_of
from trueup.policy.normalizer import Arrays, Normalizer, read_normalizer


def read_layers(arrays: Arrays, name: str) -> tuple[Layer, ...]:
    """Copies of the layers NAME/0/weight, NAME/0/bias, NAME/1/weight ... of named arrays, as float32."""
    layers: list[Layer] = []
    while f"{name}/{len(layers)}/weight" in arrays:
        weight, bias = (np.array(arrays[f"{name}/{len(layers)}/{part}"], np.float32) for part in ("weight", "bias"))
        layers.append((weight, bias))
    return tuple(layers)


class NetWiring(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the networks of a policy are wired; x are the normalised observations.

    kind    plain        actor(x)
            privileged   actor([x, encoder(e)]), e the hidden factors of an episode, which no robot knows
            latent       actor([x, encoder(past)]): a student that estimates the latent (RMA, arXiv 2107.04034)
            action       actor(past): a student that acts on its past alone
    steps   control steps of (x, last action) in the past; 0: the policy has no memory
    squash  action = squash * tanh(output); 0: action = output
    """

    kind: Literal["plain", "privileged", "latent", "action"] = "plain"
    steps: int = 0
    squash: float = 0.0


@dataclass(frozen=True, kw_only=True)
class PolicyNet:
    """Networks and statistics of a policy; `privileged_normalizer` belongs to the hidden factors."""

    spec: NetWiring
    actor: tuple[Layer, ...]
    normalizer: Normalizer
    encoder: tuple[Layer, ...] = ()
    privileged_normalizer: Normalizer | None = None

    @property
    def naction(self) -> int:
        return len(self.actor[-1][1])

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """As named arrays; `read_net` is the opposite."""
        out = self.normalizer.arrays("normalizer")
        if self.privileged_normalizer is not None:
            out |= self.privileged_normalizer.arrays("privileged")
        for name, layers in (("actor", self.actor), ("encoder", self.encoder)):
            for k, (weight, bias) in enumerate(layers):
                out |= {f"{name}/{k}/weight": weight, f"{name}/{k}/bias": bias}
        return out

    def check(self, nobs: int, naction: int) -> None:
        """Refuse weights that do not fit observations (nobs,) and actions (naction,), or are not finite."""
        kind, past = self.spec.kind, self.spec.steps * (nobs + naction)
        hidden = 0 if self.privileged_normalizer is None else len(self.privileged_normalizer.mean)
        statistics = [
            normalizer for normalizer in (self.normalizer, self.privileged_normalizer) if normalizer is not None
        ]
        latent = width_of(self.encoder, {"privileged": hidden, "latent": past}.get(kind, 0))
        fits = (
            width_of(self.actor, past if kind == "action" else nobs + latent) == naction
            and latent >= 0
            and bool(self.actor)
            and bool(self.encoder) == (kind in ("privileged", "latent"))
            and bool(self.spec.steps) == (kind in ("latent", "action"))
            and self.normalizer.mean.shape == (nobs,)
            and all(normalizer.var.shape == normalizer.mean.shape for normalizer in statistics)
        )
        layers = (*self.encoder, *self.actor)
        numbers = [part for layer in layers for part in layer] + [
            part for normalizer in statistics for part in (normalizer.mean, normalizer.var)
        ]
        if not fits:
            shapes = [weight.shape for weight, _ in layers]
            raise TrueupError(f"this policy's weights do not fit its specs: layers of sizes {shapes}")
        if not all(np.isfinite(part).all() for part in numbers) or any(
            (normalizer.var < 0).any() for normalizer in statistics
        ):
            raise TrueupError("this policy has weights or statistics that are not finite")


def read_net(spec: NetWiring, arrays: Arrays) -> PolicyNet:
    """The policy in what `PolicyNet.arrays` returned; a missing array is a KeyError."""
    return PolicyNet(
        spec=spec,
        actor=read_layers(arrays, "actor"),
        encoder=read_layers(arrays, "encoder"),
        normalizer=read_normalizer(arrays, "normalizer"),
        privileged_normalizer=read_normalizer(arrays, "privileged") if spec.kind == "privileged" else None,
    )
