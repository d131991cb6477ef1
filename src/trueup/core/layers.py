"""Dense layers in NumPy: the forward pass that policies and actuator nets share.

The same numbers are computed faster in `models.net_forward` (thousands of joints between physics steps) and with
derivatives in `rl.nets.mlp`; tests compare them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from trueup.core.errors import TrueupError

Layer = tuple[NDArray[np.float32], NDArray[np.float32]]  # weight (out, in), bias (out,)
Activation = Literal["elu", "softsign"]
AnyFloat = TypeVar("AnyFloat", np.float32, np.float64)


def forward(layers: Sequence[Layer], x: NDArray[AnyFloat], activation: Activation = "elu") -> NDArray[AnyFloat]:
    """W_n f(... f(W_1 x + b_1)) + b_n of x (..., in), in the precision of x.

    elu(x) = max(x, exp(min(x, 0)) - 1), softsign(x) = x / (1 + |x|).
    """
    for k, (weight, bias) in enumerate(layers):
        x = x @ weight.T.astype(x.dtype, copy=False) + bias
        if k < len(layers) - 1:
            is_elu = activation == "elu"
            x = np.maximum(x, np.exp(np.minimum(x, 0.0)) - 1.0) if is_elu else np.divide(x, 1.0 + np.abs(x))
    return x


def width_of(layers: Sequence[Layer], ninput: int) -> int:
    """Width of the output of layers on `ninput` columns, -1 where layers do not fit each other."""
    for weight, bias in layers:
        if bias.ndim != 1 or weight.shape != (len(bias), ninput):
            return -1
        ninput = len(bias)
    return ninput


def checked_layers(layers: Sequence[Sequence[NDArray[np.floating]]], ninput: int, noutput: int) -> tuple[Layer, ...]:
    """The layers as contiguous float32; refused where they are not finite or not of these widths."""
    out = tuple(
        (np.ascontiguousarray(weight, np.float32), np.ascontiguousarray(bias, np.float32)) for weight, bias in layers
    )
    if not all(np.isfinite(part).all() for layer in out for part in layer):
        raise TrueupError("these layers have weights that are not finite")
    if width_of(out, ninput) != noutput:
        shapes = [weight.shape for weight, _ in out]
        raise TrueupError(f"layers of sizes {shapes} do not fit {ninput} inputs and {noutput} outputs")
    return out
