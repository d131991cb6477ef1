"""An actuator net in training: weights and derivatives on the learner's buffers, to and from ActuatorNet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
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


@dataclass(frozen=True, kw_only=True)
class NetShape:
    """Hidden layers, size of each joint's context, gain of the last layer at the start."""

    hidden: tuple[int, ...] = (128, 128)
    context: int = 0
    last_gain: float = 0.0


class NetLearner:
    """Weights of all groups in one buffer with Adam.

    Inputs are (rows, njoint, nsignal, ntap); derivatives are with respect to torques in N m.
    """

    def __init__(self, like: ActuatorNet, shape: NetShape, seed: int) -> None:
        self.net, self.shape, spec = like, shape, like.spec
        if spec.activation != "elu" and shape.hidden:
            raise ValueError("this learner has derivatives of ELU nets only")
        sizes = (spec.ninput + shape.context, *shape.hidden, 1)
        names = {name: size for g in range(len(spec.groups)) for name, size in mlp_shapes(f"group{g}", sizes).items()}
        self.parameters = Parameters({**names, "context": (spec.njoint, shape.context)})
        self.mlps = [Mlp(self.parameters, f"group{g}", sizes, _CHUNK) for g in range(len(spec.groups))]
        generator = torch.Generator().manual_seed(seed)
        for mlp in self.mlps:
            mlp.initialize(generator, last_gain=shape.last_gain)
        self.context = self.parameters.view["context"]
        self.context.normal_(generator=generator)
        self.adam = Adam(self.parameters)
        self._sum = torch.empty_like(self.parameters.flat)
        self._scale = torch.from_numpy(like.scale)
        self._limit = torch.tensor(spec.limit, dtype=torch.float32)

    def copy(self) -> Float32:
        """A flat copy of the weights."""
        flat: Float32 = self.parameters.flat.numpy().copy()
        return flat

    def put(self, flat: Float32) -> None:
        """Take over the weights of a flat copy."""
        self.parameters.flat.numpy()[:] = flat

    def actuator(self, flat: Float32 | None = None) -> ActuatorNet:
        """The present weights, or those of a flat copy, as a net."""
        now = self.copy()
        self.put(now if flat is None else flat)
        layers = tuple(
            tuple((w.numpy().copy(), b.numpy().copy()) for w, b in zip(mlp.weight, mlp.bias, strict=True))
            for mlp in self.mlps
        )
        made = replace(self.net, layers=layers, context=self.context.numpy().copy())
        self.put(now)
        return made

    def silent(self, flat: Float32) -> Float32:
        """A flat copy with last layers of zeros: the same features, no torque."""
        now = self.copy()
        self.put(flat)
        for mlp in self.mlps:
            mlp.weight[-1].zero_()
            mlp.bias[-1].zero_()
        made = self.copy()
        self.put(now)
        return made

    def restart_adam(self) -> None:
        """Forget the moments of earlier steps."""
        self.adam = Adam(self.parameters)

    def state(self) -> State:
        """Weights and moments, for a checkpoint."""
        mean, square = (part.numpy().copy() for part in (self.adam.mean, self.adam.square))
        return {"flat": self.copy(), "mean": mean, "square": square, "adam_steps": np.array(self.adam.steps)}

    def restore(self, state: State) -> None:
        """Continue from `state`."""
        self.put(np.array(state["flat"], np.float32))
        self.adam.mean.numpy()[:], self.adam.square.numpy()[:] = state["mean"], state["square"]
        self.adam.steps = int(state["adam_steps"])

    def input_gradient(self, inputs: Float32) -> Float32:
        """dtau/dinput, shaped as the inputs."""
        spec, out = self.net.spec, np.empty_like(inputs)
        for g, rows, x, joints in self._parts(inputs):
            y = self.mlps[g].forward(x)
            _, slope = self._torque(y[:, 0], joints)
            back = self.mlps[g].backward(slope[:, None], to_input=True).numpy()
            group = list(spec.groups[g])
            part = back[:, : spec.ninput].reshape(-1, len(group), len(spec.signals), len(spec.taps))
            out[rows, group] = part / self.net.std[g][:, None]
        return out

    def step(self, inputs: Float32, torque_grad: NDArray[np.float64], rate: float, decay: float = 0.0) -> float:
        """Move the weights against the loss whose gradient by torques (rows, njoint) is given; returns its norm."""
        self._sum.zero_()
        spec = self.net.spec
        for g, rows, x, joints in self._parts(inputs):
            y = self.mlps[g].forward(x)
            asked = torch.from_numpy(
                np.ascontiguousarray(torque_grad[rows][:, list(spec.groups[g])], np.float32)
            ).reshape(-1)
            self.parameters.grad.zero_()
            _, slope = self._torque(y[:, 0], joints)
            back = self.mlps[g].backward((asked * slope)[:, None], to_input=self.shape.context > 0)
            if self.shape.context:
                self.parameters.grad_view["context"].index_add_(0, joints, back[:, spec.ninput :])
            self._sum += self.parameters.grad
        self.parameters.grad.copy_(self._sum)
        norm = float(self.parameters.grad.norm())
        self._descend(rate, decay)
        return norm

    def regressions(self, inputs: Float32, torque: Float32) -> list[Regression]:
        """Inputs with torques (rows, njoint) that they should give, normalised once for many steps of `regress`."""
        made = []
        for g, group in enumerate(self.net.spec.groups):
            wanted = torque[:, list(group)].astype(np.float32)
            x = self.net.group_inputs(g, inputs)
            made.append(Regression(torch.from_numpy(x), torch.from_numpy(wanted)))
        return made

    def regress(self, regressions: Sequence[Regression], rows: Tensor, rate: float, decay: float = 0.0) -> float:
        """Move the torques of some rows towards the wanted ones; returns the mean squared miss in scales."""
        spec, loss = self.net.spec, 0.0
        share = 1.0 / (len(rows) * spec.njoint)
        self.parameters.grad.zero_()
        own = self.parameters.grad_view["context"]
        for mlp, group, regression in zip(self.mlps, spec.groups, regressions, strict=True):
            joints = torch.tensor(group).repeat(len(rows))
            x = regression.inputs[rows].reshape(len(joints), -1)
            torque, slope = self._torque(mlp.forward(torch.cat([x, self.context[joints]], dim=1))[:, 0], joints)
            miss = (torque - regression.torque[rows].reshape(-1)) / self._scale[joints]
            loss += share * float(miss @ miss)
            grad = 2.0 * share * miss * slope / self._scale[joints]
            back = mlp.backward(grad[:, None], to_input=self.shape.context > 0)
            if self.shape.context:
                own.index_add_(0, joints, back[:, spec.ninput :])
        self._descend(rate, decay)
        return loss

    def _descend(self, rate: float, decay: float) -> None:
        """A step of Adam with decoupled weight decay."""
        if decay:
            self.parameters.flat.mul_(1.0 - rate * decay)
        self.adam.step(rate)

    def torques(self, inputs: Float32) -> NDArray[np.float64]:
        """Torques (rows, njoint) of inputs."""
        spec, out = self.net.spec, np.empty(inputs.shape[:2])
        for g, rows, x, joints in self._parts(inputs):
            torque, _ = self._torque(self.mlps[g].forward(x)[:, 0], joints)
            out[rows, list(spec.groups[g])] = torque.numpy().reshape(-1, len(spec.groups[g]))
        return out

    def _parts(self, inputs: Float32):  # type: ignore[no-untyped-def]
        """Normalised rows of each group, in chunks: (group, rows of `inputs`, x, joints)."""
        spec, net = self.net.spec, self.net
        for g, group in enumerate(spec.groups):
            size = max(1, _CHUNK // len(group))
            for start in range(0, len(inputs), size):
                rows = slice(start, start + size)
                part = net.group_inputs(g, inputs[rows])
                joints = torch.tensor(group).repeat(len(part))
                x = torch.from_numpy(part.reshape(len(joints), -1))
                yield g, rows, torch.cat([x, self.context[joints]], dim=1), joints

    def _torque(self, y: Tensor, joints: Tensor) -> tuple[Tensor, Tensor]:
        """Torques of outputs, through scale and limit, and their derivatives."""
        scale = self._scale[joints]
        if not self.net.spec.limit:
            return y * scale, scale
        limit = self._limit[joints]
        bent = torch.tanh(y * scale / limit)
        return limit * bent, scale * (1.0 - bent**2)
