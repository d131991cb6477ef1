"""PolicyNet: a trained policy as arrays with its declared kind. Learners give it, checkpoints and exports hold it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from trueup.core.errors import TrueupError
from trueup.policy.layers import Arrays, Layer, name_layers, read_layers, sizes
from trueup.policy.normalizer import Normalizer


class Wiring(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
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

    spec: Wiring
    actor: tuple[Layer, ...]
    normalizer: Normalizer
    encoder: tuple[Layer, ...] = ()
    privileged_normalizer: Normalizer | None = None

    @property
    def naction(self) -> int:
        return len(self.actor[-1][1])

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """As named arrays; `read_net` is the opposite."""
        out = name_layers(self.actor, "actor") | name_layers(self.encoder, "encoder")
        out |= {f"normalizer/{name}": values for name, values in self.normalizer.state().items()}
        if self.privileged_normalizer is not None:
            out |= {f"privileged/{name}": v for name, v in self.privileged_normalizer.state().items()}
        return out

    def check(self, nobs: int, naction: int) -> None:
        """Refuse weights that do not fit observations (nobs,) and actions (naction,), or are not finite."""
        spec, past = self.spec, self.spec.steps * (nobs + naction)
        hidden = 0 if self.privileged_normalizer is None else len(self.privileged_normalizer.mean)
        ninput = {"plain": 0, "privileged": hidden, "latent": past, "action": 0}[spec.kind]
        encoder = sizes(self.encoder, ninput)
        actor = None
        if encoder is not None:
            actor = sizes(self.actor, past if spec.kind == "action" else nobs + encoder[-1])
        if (
            actor is None
            or actor[-1] != naction
            or not self.actor
            or bool(self.encoder) != (spec.kind in ("privileged", "latent"))
            or bool(spec.steps) != (spec.kind in ("latent", "action"))
            or len(self.normalizer.mean) != nobs
        ):
            shapes = [w.shape for w, _ in (*self.encoder, *self.actor)]
            raise TrueupError(f"this policy's weights do not fit its specs: layers of sizes {shapes}")
        if not all(np.isfinite(part).all() for layer in (*self.encoder, *self.actor) for part in layer):
            raise TrueupError("this policy has weights that are not finite")


def read_net(spec: Wiring, arrays: Arrays) -> PolicyNet:
    """The policy in what `PolicyNet.arrays` returned; a missing array is a KeyError."""
    return PolicyNet(
        spec=spec,
        actor=read_layers(arrays, "actor"),
        encoder=read_layers(arrays, "encoder"),
        normalizer=read_normalizer(arrays, "normalizer"),
        privileged_normalizer=read_normalizer(arrays, "privileged") if spec.kind == "privileged" else None,
    )


def read_normalizer(arrays: Arrays, name: str) -> Normalizer:
    """The statistics in NAME/mean, NAME/var and NAME/count."""
    normalizer = Normalizer(len(arrays[f"{name}/mean"]))
    normalizer.restore({key: np.asarray(arrays[f"{name}/{key}"], np.float64) for key in ("mean", "var", "count")})
    return normalizer
