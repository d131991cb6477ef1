"""Dense layers in NumPy: the forward pass that policies and actuator nets share.

The same numbers are computed faster in `models.net_forward` (thousands of joints between physics steps) and with
derivatives in `rl.nets.mlp`; tests compare them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

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
