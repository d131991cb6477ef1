"""A multilayer perceptron with ELU (or softsign) between layers, its derivative written out.

    h_0 = x,   h_k = f(W_k h_{k-1} + b_k),   y = W_n h_{n-1} + b_n
    elu'(a) = 1 where h > 0, else h + 1;   softsign'(a) = (1 - |h|)^2      (the output is enough: no input is kept)

Buffers are allocated once and matrix products write into them: on a CPU the time goes to the products, not to
bookkeeping. A test compares the derivative with autograd.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from trueup.rl.nets.parameters import Parameters

_elu_backward = torch.ops.aten.elu_backward.grad_input


def _elu_(x: Tensor, scratch: Tensor) -> Tensor:
    """elu(x) = max(x, exp(min(x, 0)) - 1) in place; NumPy's exponential is six times as fast as torch's on a CPU."""
    numbers = torch.clamp(x, max=0.0, out=scratch).numpy()
    np.exp(numbers, out=numbers)
    return torch.maximum(x, scratch.sub_(1.0), out=x)


def mlp_shapes(prefix: str, sizes: Sequence[int]) -> dict[str, tuple[int, ...]]:
    """Names and shapes of the parameters of layers `sizes[0] -> ... -> sizes[-1]`."""
    shapes: dict[str, tuple[int, ...]] = {}
    for k, (nin, nout) in enumerate(pairwise(sizes)):
        shapes[f"{prefix}/{k}/weight"] = (nout, nin)
        shapes[f"{prefix}/{k}/bias"] = (nout,)
    return shapes


class Mlp:
    """Layers on parameters named `prefix/k/weight` and `prefix/k/bias`, for up to `rows` rows at once.

    `forward` returns a view of a buffer that the next call overwrites; `backward` belongs to the last `forward`.
    """

    def __init__(
        self,
        parameters: Parameters,
        prefix: str,
        sizes: Sequence[int],
        rows: int,
        activation: Literal["elu", "softsign"] = "elu",
    ) -> None:
        self.prefix, self.sizes, self.rows, self._is_elu = prefix, tuple(sizes), rows, activation == "elu"
        names = [f"{prefix}/{k}" for k in range(len(sizes) - 1)]
        self.weight = [parameters.view[f"{name}/weight"] for name in names]
        self.bias = [parameters.view[f"{name}/bias"] for name in names]
        self._grad_weight = [parameters.grad_view[f"{name}/weight"] for name in names]
        self._grad_bias = [parameters.grad_view[f"{name}/bias"] for name in names]
        self._out = [torch.empty(rows, size) for size in sizes[1:]]
        self._grad = [torch.empty(rows, size) for size in sizes[:-1]]
        self._ones = torch.ones(rows)
        self._input = torch.empty(0)

    def initialize(self, generator: torch.Generator, last_gain: float = 1.0) -> None:
        """Weights uniform in +-1/sqrt(inputs), those of the last layer times `last_gain`; biases zero."""
        for k, (weight, bias) in enumerate(zip(self.weight, self.bias, strict=True)):
            bound = (last_gain if k == len(self.weight) - 1 else 1.0) / weight.shape[1] ** 0.5
            weight.uniform_(-bound, bound, generator=generator)
            bias.zero_()

    def forward(self, x: Tensor) -> Tensor:
        """(n, nin) -> (n, nout)."""
        self._input, n, last = x, len(x), len(self.weight) - 1
        for k, (weight, bias) in enumerate(zip(self.weight, self.bias, strict=True)):
            out = self._out[k][:n]
            torch.addmm(bias, x, weight.t(), out=out)
            if k < last:
                out = _elu_(out, self._grad[k + 1][:n]) if self._is_elu else out.div_(out.abs().add_(1.0))
            x = out
        return x

    def backward(self, grad: Tensor, *, to_input: bool = False) -> Tensor:
        """Write the gradients of the parameters, given that of the output (n, nout).

        With `to_input`, returns the gradient of the input (n, nin), a buffer; else the returned tensor has no meaning.
        """
        n, ones = len(grad), self._ones[: len(grad)]
        for k in range(len(self.weight) - 1, -1, -1):
            below = self._input if k == 0 else self._out[k - 1][:n]
            torch.mm(grad.t(), below, out=self._grad_weight[k])
            torch.mv(grad.t(), ones, out=self._grad_bias[k])
            if k == 0 and not to_input:
                return grad
            out = self._grad[k][:n]
            torch.mm(grad, self.weight[k], out=out)
            if k > 0 and self._is_elu:
                out = _elu_backward(out, 1.0, 1.0, 1.0, True, below, grad_input=out)
            elif k > 0:
                out.mul_((1.0 - below.abs()).square_())
            grad = out
        return grad
