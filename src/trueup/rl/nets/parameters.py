"""All parameters of a learner's network in one flat float32 buffer, with their gradients in another.

One buffer makes the optimiser, the norm of the gradient and a checkpoint single operations. Every tensor starts at a
multiple of 64 bytes: matrix products then add in the same order in every run.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Arrays = dict[str, NDArray[np.generic]]
_ALIGN = 16  # floats in 64 bytes
GROWTH = 40  # iterations after which the span grows by one


class Parameters:
    """Named views into one buffer: `view[name]` and `grad_view[name]`; padding stays zero."""

    def __init__(self, shapes: Mapping[str, tuple[int, ...]]) -> None:
        self._places, size = {}, 0
        for name, shape in shapes.items():
            self._places[name] = size, shape
            size += -(-math.prod(shape) // _ALIGN) * _ALIGN
        self.flat, self.grad = torch.zeros(size), torch.zeros(size)
        self.view, self.grad_view = self.views(self.flat), self.views(self.grad)

    def views(self, flat: Tensor) -> dict[str, Tensor]:
        """Named views into a buffer laid out like this one."""
        places = self._places.items()
        return {name: flat[at : at + math.prod(shape)].view(shape) for name, (at, shape) in places}

    def arrays(self, prefix: str = "") -> Arrays:
        """Views as NumPy arrays PREFIX + NAME."""
        return {f"{prefix}{name}": view.numpy() for name, view in self.view.items()}

    def restore(self, arrays: Mapping[str, NDArray[np.generic]], prefix: str = "") -> None:
        """Restore what `arrays` returned."""
        for name, view in self.view.items():
            view.copy_(torch.from_numpy(arrays[f"{prefix}{name}"]))

    def clip_gradient(self, limit: float) -> float:
        """Clip the gradient to norm `limit`; returns its norm before."""
        norm = float(self.grad.norm())
        if norm > limit:
            self.grad.mul_(limit / norm)
        return norm


class Adam:
    """Adam (arXiv 1412.6980) on the flat buffer: a handful of in-place operations, whatever the network."""

    beta1, beta2, eps = 0.9, 0.999, 1e-8

    def __init__(self, parameters: Parameters) -> None:
        self.parameters = parameters
        self.mean, self.square = torch.zeros_like(parameters.flat), torch.zeros_like(parameters.flat)
        self._scratch = torch.empty_like(parameters.flat)
        self.steps = 0

    def step(self, learning_rate: float) -> None:
        """Move the parameters against the gradient; the learning rate may differ from call to call."""
        self.steps += 1
        grad = self.parameters.grad
        self.mean.lerp_(grad, 1.0 - self.beta1)
        self.square.mul_(self.beta2).addcmul_(grad, grad, value=1.0 - self.beta2)
        torch.sqrt(self.square, out=self._scratch)
        self._scratch.div_(math.sqrt(1.0 - self.beta2**self.steps)).add_(self.eps)
        self.parameters.flat.addcdiv_(self.mean, self._scratch, value=-learning_rate / (1.0 - self.beta1**self.steps))

    def state(self, name: str) -> Arrays:
        """Parameters (NAME/...) and moments (NAME_adam/...) as arrays, views where possible."""
        moments = {"mean": self.mean.numpy(), "square": self.square.numpy(), "steps": np.array(self.steps)}
        return self.parameters.arrays(f"{name}/") | {f"{name}_adam/{key}": values for key, values in moments.items()}

    def restore(self, name: str, state: Mapping[str, NDArray[np.generic]]) -> None:
        """Continue from `state`."""
        self.parameters.restore(state, f"{name}/")
        self.mean.copy_(torch.from_numpy(state[f"{name}_adam/mean"]))
        self.square.copy_(torch.from_numpy(state[f"{name}_adam/square"]))
        self.steps = int(state[f"{name}_adam/steps"])


class Average(Parameters):
    """The mean of parameters `of` over about the last `span` iterations, at most the last fortieth of all.

    p += (x - p) / min(1 + k / 40, span) at the k-th (k / 40 rounded down): Polyak averaging (Polyak and Juditsky,
    1992). PPO's newest policy varies around a good one; the mean of the last ones varies less. While much is learned in
    every iteration a long mean lags behind, so its span grows with the training.
    """

    def __init__(self, of: Parameters, span: int) -> None:
        super().__init__({name: tuple(view.shape) for name, view in of.view.items()})
        self._of, self._span, self.count = of, max(1, span), 0
        self.flat.copy_(of.flat)

    def update(self) -> None:
        """Update the average with the current parameters."""
        self.count += 1
        self.flat.lerp_(self._of.flat, 1.0 / min(1 + self.count // GROWTH, self._span))
