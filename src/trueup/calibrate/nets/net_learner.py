"""An actuator net in training: weights and derivatives on the learner's buffers, to and from ActuatorNet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trueup.models.actuator_net import ActuatorNet, Float32
from trueup.rl.nets.mlp import Mlp, mlp_shapes
from trueup.rl.nets.parameters import Adam, Parameters

State = dict[str, NDArray[np.generic]]
_CHUNK = 32_768  # rows of a product: buffers of some tens of megabytes


class Regression(NamedTuple):
    """Data of one group: normalised inputs (rows, joints, ninput) and torques (rows, joints), N m."""

    inputs: Tensor
    torque: Tensor


def falling(share: float) -> float:
    """A cosine schedule for learning rates: from 1 down to a fiftieth."""
    return float(0.02 + 0.98 * 0.5 * (1.0 + np.cos(np.pi * share)))


class NetLearner:
    """Weights of all groups of a net shaped like `like` in one buffer with Adam."""

    def __init__(self, like: ActuatorNet, seed: int, *, last_gain: float = 0.0) -> None:
        """`last_gain`: of the last layer's first weights; 0: the net begins without torque."""
        self.net, spec, ncontext = like, like.spec, like.context.shape[1]
        sizes = (spec.ninput + ncontext, *like.hidden, 1)
        names = {name: size for g in range(len(spec.groups)) for name, size in mlp_shapes(f"group{g}", sizes).items()}
        self.parameters = Parameters({**names, "context": (spec.njoint, ncontext)})
        self.mlps = [Mlp(self.parameters, f"group{g}", sizes, _CHUNK, spec.activation) for g in range(len(spec.groups))]
        generator = torch.Generator().manual_seed(seed)
        for mlp in self.mlps:
            mlp.initialize(generator, last_gain=last_gain)
        self.context = self.parameters.view["context"]
        self.context.normal_(generator=generator)
        self.adam = Adam(self.parameters)
        self._scale = torch.from_numpy(like.scale)
        self._limit = torch.tensor(spec.limit, dtype=torch.float32)

    def copy(self) -> Float32:
        """A flat copy of the weights."""
        flat: Float32 = self.parameters.flat.numpy().copy()
        return flat

    def put(self, flat: Float32) -> None:
        """Set the weights from a flat copy."""
        self.parameters.flat.numpy()[:] = flat

    def actuator(self, flat: Float32 | None = None) -> ActuatorNet:
        """The present weights, or those of a flat copy, as a net."""
        view = self._views(self.copy() if flat is None else flat.copy())
        layers = tuple(
            tuple((view[f"group{g}/{k}/weight"], view[f"group{g}/{k}/bias"]) for k in range(len(mlp.weight)))
            for g, mlp in enumerate(self.mlps)
        )
        return replace(self.net, layers=layers, context=view["context"])

    def silent(self, flat: Float32) -> Float32:
        """A flat copy with last layers of zeros: the same features, no torque."""
        made, last = flat.copy(), len(self.mlps[0].weight) - 1
        for name, part in self._views(made).items():
            if f"/{last}/" in name:
                part[:] = 0.0
        return made

    def _views(self, flat: Float32) -> dict[str, Float32]:
        return {name: part.numpy() for name, part in self.parameters.views(torch.from_numpy(flat)).items()}

    def restart_adam(self) -> None:
        """Reset Adam's moments."""
        self.adam = Adam(self.parameters)

    def state(self) -> State:
        """Weights and moments, for a checkpoint."""
        return self.adam.state("net")

    def restore(self, state: State) -> None:
        """Continue from `state`."""
        self.adam.restore("net", state)

    def regressions(self, inputs: Float32, torque: Float32) -> list[Regression]:
        """Inputs (rows, njoint, nsignal, ntap) with torques (rows, njoint) that they should give, normalised once."""
        return [
            Regression(
                torch.from_numpy(self.net.group_inputs(g, inputs)),
                torch.from_numpy(torque[:, list(group)].astype(np.float32)),
            )
            for g, group in enumerate(self.net.spec.groups)
        ]

    def regress(self, regressions: Sequence[Regression], rows: Tensor, rate: float, decay: float = 0.0) -> float:
        """Move the torques of some rows towards the wanted ones; returns the mean squared miss in scales.

        A step of Adam with decoupled weight decay.
        """
        self.parameters.grad.zero_()
        loss = self._miss(regressions, rows, backward=True)
        if decay:
            self.parameters.flat.mul_(1.0 - rate * decay)
        self.adam.step(rate)
        return loss

    def miss(self, regressions: Sequence[Regression], rows: Tensor) -> float:
        """The mean squared error of rows, in units of the torque scale."""
        parts = torch.split(rows, _CHUNK // self.net.spec.njoint)
        return sum(len(part) * self._miss(regressions, part, backward=False) for part in parts) / max(1, len(rows))

    def _miss(self, regressions: Sequence[Regression], rows: Tensor, *, backward: bool) -> float:
        spec, loss = self.net.spec, 0.0
        share, own = 1.0 / (len(rows) * spec.njoint), self.parameters.grad_view["context"]
        for mlp, group, regression in zip(self.mlps, spec.groups, regressions, strict=True):
            joints = torch.tensor(group).repeat(len(rows))
            x = regression.inputs[rows].reshape(len(joints), -1)
            torque, slope = self._torque(mlp.forward(torch.cat([x, self.context[joints]], dim=1))[:, 0], joints)
            miss = (torque - regression.torque[rows].reshape(-1)) / self._scale[joints]
            loss += share * float(miss @ miss)
            if backward:
                grad = 2.0 * share * miss * slope / self._scale[joints]
                back = mlp.backward(grad[:, None], to_input=len(own[0]) > 0)
                if len(own[0]):
                    own.index_add_(0, joints, back[:, spec.ninput :])
        return loss

    def _torque(self, y: Tensor, joints: Tensor) -> tuple[Tensor, Tensor]:
        """Torques of outputs, through scale and limit, and their derivatives."""
        scale = self._scale[joints]
        if not self.net.spec.limit:
            return y * scale, scale
        limit = self._limit[joints]
        bent = torch.tanh(y * scale / limit)
        return limit * bent, scale * (1.0 - bent**2)
