"""ActuatorNet: a learned servo as plain NumPy: what it sees, its weights, and the range it was fitted on.

For every joint j, with x the signals at the taps (now, one step of dt_s ago, ...), normalised,

    h_0 = [x, c_j],   h_k = f(W_k h_{k-1} + b_k),   y = W_n h_{n-1} + b_n,   tau = s_j y

f is ELU or softsign, c_j an optional context of the joint, s_j a torque scale; joints of one group share W and b. With
a limit L_j the torque saturates smoothly, tau = L_j tanh(s_j y / L_j). Without hidden layers the net is a linear filter
(FIR). `kind` says what tau is: the servo's torque itself, or a residual that is added to a PD servo's.

Configurations of this one class: Hwangbo et al. (arXiv 1901.08652), 6 inputs: pos_error and vel at t, t - 0.01 s,
t - 0.02 s; long windows of 50 to 100 steps; UAN (arXiv 2502.10894), 20 steps of pos_error and vel_error, residual.

On disk it is a folder: `actuator.json` (NetSpec) and `actuator.safetensors` (weights).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from trueup.core.arrays import FloatArray
from trueup.core.documents import Strict
from trueup.core.errors import TrueupError
from trueup.core.layers import Activation, AnyFloat, Layer, checked_layers, forward
from trueup.models.friction import LAWS
from trueup.models.values import set_arrays

Float32 = NDArray[np.float32]
Signal = Literal["pos_error", "vel", "vel_error", "command", "servo_torque"]
Kind = Literal["torque", "residual"]
SCHEMA = 1


class Setting(Strict, frozen=True, kw_only=True):
    """A parameter of the simulator that the net was fitted with; `times` multiplies what is set."""

    name: str
    of: tuple[str, ...]
    value: float
    mode: Literal["set", "times"] = "set"
    axis: int | None = None


class NetSpec(Strict, frozen=True, kw_only=True):
    """What a net sees and says.

    signals   pos_error q* - q, vel dq, vel_error dq* - dq, command q*, servo_torque kp (q* - q) + kd (dq* - dq);
              q as the encoder reports it, q* as it arrives at the servo
    taps      ages of what is seen, in steps of dt_s, ascending; 0 is now
    dt_s      from one evaluation to the next; the torque is held in between
    groups    joints (places in joint_names) that share weights
    limit     per joint, N m; empty: no saturation
    settings, friction, motor   the simulator it belongs to: parameters, friction model, torque-speed envelope
    """

    schema: int = SCHEMA
    robot: str
    joint_names: tuple[str, ...]
    kind: Kind
    signals: tuple[Signal, ...]
    taps: tuple[int, ...]
    dt_s: float
    groups: tuple[tuple[int, ...], ...]
    activation: Activation = "elu"
    limit: tuple[float, ...] = ()
    settings: tuple[Setting, ...] = ()
    friction: str | None = None
    motor: bool = False
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.schema != SCHEMA:
            raise ValueError(f"schema {self.schema} is not known to this version (it reads schema {SCHEMA})")
        if self.friction is not None and self.friction not in LAWS:
            raise ValueError(f"friction {self.friction!r} is none of {', '.join(LAWS)}")
        if not self.dt_s > 0 or not self.signals or not self.taps:
            raise ValueError("dt_s must be positive, and there must be signals and taps")
        if self.taps[0] < 0 or any(a >= b for a, b in pairwise(self.taps)):
            raise ValueError("taps must be ascending and not negative")
        if sorted(j for group in self.groups for j in group) != list(range(self.njoint)):
            raise ValueError("every joint must belong to exactly one group")
        if self.limit and (len(self.limit) != self.njoint or min(self.limit) <= 0):
            raise ValueError("limit must be positive, one number per joint")

    @property
    def njoint(self) -> int:
        return len(self.joint_names)

    @property
    def depth(self) -> int:
        """Steps of history that must be kept, now included."""
        return self.taps[-1] + 1

    @property
    def ninput(self) -> int:
        return len(self.signals) * len(self.taps)


@dataclass(frozen=True, kw_only=True, eq=False)
class ActuatorNet:
    """A spec with its numbers, all float32.

    layers   per group, first to last; the first takes inputs signal by signal, newest first, then the context
    mean, std  (ngroup, nsignal) of the normalisation
    scale    (njoint,) N m of an output of one
    context  (njoint, ncontext)
    low, high  (ngroup, nsignal) of the signals in the data that the net was fitted on
    """

    spec: NetSpec
    layers: tuple[tuple[Layer, ...], ...]
    mean: Float32
    std: Float32
    scale: Float32
    context: Float32
    low: Float32
    high: Float32

    def __post_init__(self) -> None:
        spec, ngroup, nsignal = self.spec, len(self.spec.groups), len(self.spec.signals)
        ranges = dict.fromkeys(("mean", "std", "low", "high"), (ngroup, nsignal))
        set_arrays(self, ranges | {"scale": (spec.njoint,), "context": (spec.njoint, np.shape(self.context)[-1])})
        first = spec.ninput + self.context.shape[1]
        layers = tuple(checked_layers(group, first, 1) for group in self.layers)
        object.__setattr__(self, "layers", layers)
        sizes = {tuple(w.shape for w, _ in group) for group in layers}
        if len(layers) != ngroup or len(sizes) != 1:
            raise TrueupError(f"{ngroup} groups need as many nets of one shape, found {len(layers)}")

    @property
    def hidden(self) -> tuple[int, ...]:
        """Sizes of the hidden layers; empty: a linear filter."""
        return tuple(len(bias) for _, bias in self.layers[0][:-1])

    def __call__(self, inputs: FloatArray) -> FloatArray:
        """Torques (..., njoint) of signals (..., njoint, nsignal, ntap); the plain, slow form."""
        out = np.empty(inputs.shape[:-2])
        for k, group in enumerate(self.spec.groups):
            columns, x = list(group), self.group_inputs(k, inputs)
            seen = np.broadcast_to(self.context[columns], (*x.shape[:-1], self.context.shape[1]))
            y = forward(self.layers[k], np.concatenate([x, seen], axis=-1), self.spec.activation)
            out[..., columns] = y[..., 0] * self.scale[columns]
        if not self.spec.limit:
            return out
        limit = np.array(self.spec.limit)
        return limit * np.tanh(out / limit)

    def group_inputs(self, k: int, inputs: NDArray[AnyFloat]) -> NDArray[AnyFloat]:
        """Normalised inputs (..., joints of group k, ninput) from signals (..., njoint, nsignal, ntap)."""
        of_group = inputs[..., list(self.spec.groups[k]), :, :]
        x = (of_group - self.mean[k][:, None]) / self.std[k][:, None]
        out: NDArray[AnyFloat] = x.reshape(*x.shape[:-2], -1)
        return out
