"""Layers of a network as plain arrays: (weight (out, in), bias (out,)) each, ELU between them. NumPy only."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

Float32 = NDArray[np.float32]
Layer = tuple[Float32, Float32]
Arrays = Mapping[str, NDArray[np.generic]]


def forward(layers: Sequence[Layer], x: Float32) -> Float32:
    """W_n elu(... elu(W_1 x + b_1)) + b_n for rows x (n, in), with elu(x) = max(x, exp(min(x, 0)) - 1)."""
    for k, (weight, bias) in enumerate(layers):
        x = x @ weight.T + bias
        if k < len(layers) - 1:
            x = np.maximum(x, np.exp(np.minimum(x, np.float32(0.0))) - np.float32(1.0))
    return x


def as_layers(layers: Iterable[tuple[ArrayLike, ArrayLike]]) -> tuple[Layer, ...]:
    """Copies as float32."""
    return tuple((np.array(weight, np.float32), np.array(bias, np.float32)) for weight, bias in layers)


def read_layers(arrays: Arrays, name: str) -> tuple[Layer, ...]:
    """The layers NAME/0/weight, NAME/0/bias, NAME/1/weight ... of named arrays."""
    count = 0
    while f"{name}/{count}/weight" in arrays:
        count += 1
    return as_layers((arrays[f"{name}/{k}/weight"], arrays[f"{name}/{k}/bias"]) for k in range(count))


def name_layers(layers: Sequence[Layer], name: str) -> dict[str, NDArray[np.generic]]:
    """The opposite of `read_layers`."""
    out: dict[str, NDArray[np.generic]] = {}
    for k, (weight, bias) in enumerate(layers):
        out[f"{name}/{k}/weight"], out[f"{name}/{k}/bias"] = weight, bias
    return out


def sizes(layers: Sequence[Layer], ninput: int) -> list[int] | None:
    """Widths from the input to the output, or None where layers do not fit each other."""
    out = [ninput, *(len(bias) for _, bias in layers)]
    fits = all(w.shape == (m, n) for (w, _), n, m in zip(layers, out[:-1], out[1:], strict=True))
    return out if fits else None
