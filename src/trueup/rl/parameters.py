"""All parameters of a learner's network in one flat float32 buffer, with their gradients in another.

One buffer makes the optimiser, the norm of the gradient and a checkpoint single operations. Every tensor starts at a
multiple of 64 bytes: matrix products then add in the same order in every run.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor

_ALIGN = 16  # floats in 64 bytes


class Parameters:
    """Named views into one buffer: `view[name]` and `grad_view[name]`; padding stays zero."""

    def __init__(self, shapes: Mapping[str, tuple[int, ...]]) -> None:
        offsets, size = {}, 0
        for name, shape in shapes.items():
            offsets[name] = size
            size += -(-math.prod(shape) // _ALIGN) * _ALIGN
        self.flat, self.grad = torch.zeros(size), torch.zeros(size)
        self.view = {name: self._cut(self.flat, offsets[name], shape) for name, shape in shapes.items()}
        self.grad_view = {name: self._cut(self.grad, offsets[name], shape) for name, shape in shapes.items()}

    @staticmethod
    def _cut(flat: Tensor, start: int, shape: tuple[int, ...]) -> Tensor:
        return flat[start : start + math.prod(shape)].view(shape)

    def clip_gradient(self, limit: float) -> float:
        """Shorten the gradient to length `limit` if it is longer; returns its length before."""
        norm = float(self.grad.norm())
        if norm > limit:
            self.grad.mul_(limit / norm)
        return norm


class Adam:
    """Adam (arXiv 1412.6980) on the flat buffer: a handful of in-place operations, whatever the network."""

    def __init__(self, parameters: Parameters, *, beta1: float = 0.9, beta2: float = 0.999) -> None:
        self.parameters = parameters
        self.beta1, self.beta2, self.eps = beta1, beta2, 1e-8
        self.mean, self.square = torch.zeros_like(parameters.flat), torch.zeros_like(parameters.flat)
        self._scratch = torch.empty_like(parameters.flat)
        self.steps = 0

    def step(self, rate: float) -> None:
        """Move the parameters against the gradient; `rate` may differ from call to call."""
        self.steps += 1
        grad = self.parameters.grad
        self.mean.lerp_(grad, 1.0 - self.beta1)
        self.square.mul_(self.beta2).addcmul_(grad, grad, value=1.0 - self.beta2)
        torch.sqrt(self.square, out=self._scratch)
        self._scratch.div_(math.sqrt(1.0 - self.beta2**self.steps)).add_(self.eps)
        self.parameters.flat.addcdiv_(self.mean, self._scratch, value=-rate / (1.0 - self.beta1**self.steps))
