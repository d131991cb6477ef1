"""FrozenPolicy: a trained actor as plain NumPy, for assessments, films and the live view. Acts without noise."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from trueup.policy.normalizer import Normalizer
from trueup.rl.collect import part
from trueup.rl.env import Floats, Obs

Arrays = Mapping[str, NDArray[np.generic]]


class FrozenPolicy:
    """Mean action of a learner's state or checkpoint; with an encoder it also needs the privileged factors."""

    def __init__(self, arrays: Arrays) -> None:
        state = dict(arrays)
        self.layers = _layers(state, "actor/actor/")
        self.encoder = _layers(state, "actor/encoder/")
        self.normalizer = _normalizer(state, "actor")
        self._privileged = _normalizer(state, "privileged")

    def __call__(self, obs: Obs) -> Floats:
        """Actions (n, naction) of observations (n, nactor)."""
        x = self.normalizer(obs.actor)
        if self.encoder:
            x = np.concatenate([x, forward(self.encoder, self._privileged(obs.privileged))], axis=1)
        return forward(self.layers, x)


Layers = list[tuple[Floats, Floats]]


def forward(layers: Layers, x: Floats) -> Floats:
    """ELU between layers, none after the last."""
    for k, (weight, bias) in enumerate(layers):
        x = x @ weight.T + bias
        if k < len(layers) - 1:
            x = np.where(x > 0, x, np.expm1(np.minimum(x, np.float32(0.0))))
    return x


def _layers(state: dict[str, NDArray[np.generic]], prefix: str) -> Layers:
    found = part(state, prefix)
    numbers = sorted({int(match[1]) for name in found if (match := re.match(r"(\d+)/weight$", name))})
    return [
        (np.array(found[f"{k}/weight"], np.float32), np.array(found[f"{k}/bias"], np.float32))
        for k in numbers
    ]


def _normalizer(state: dict[str, NDArray[np.generic]], name: str) -> Normalizer:
    found = part(state, f"normalizer/{name}/")
    normalizer = Normalizer(len(found["mean"]))
    normalizer.restore(found)  # type: ignore[arg-type]
    return normalizer
