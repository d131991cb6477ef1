"""Layers of a network as plain arrays: (weight (out, in), bias (out,)) each, ELU between them. NumPy only."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Float32 = NDArray[np.float32]
Layer = tuple[Float32, Float32]


def forward(layers: Sequence[Layer], x: Float32) -> Float32:
    """W_n elu(... elu(W_1 x + b_1)) + b_n for rows x (n, in)."""
    for k, (weight, bias) in enumerate(layers):
        x = x @ weight.T + bias
        if k < len(layers) - 1:
            x = np.where(x > 0, x, np.expm1(np.minimum(x, np.float32(0.0))))
    return x


def sizes(layers: Sequence[Layer], ninput: int) -> list[int] | None:
    """Widths from the input to the output, or None where layers do not fit each other."""
    out = [ninput, *(len(bias) for _, bias in layers)]
    fits = all(w.shape == (m, n) for (w, _), n, m in zip(layers, out[:-1], out[1:], strict=True))
    return out if fits else None
