"""DeltaNet: a learned delta action (ASAP, arXiv 2502.01143), the correction of joint targets that a simulator lacks.

In a control step with targets q* and state s the corrected simulator runs under q* + delta(x), with

    x = [q* - q, dq, q - q0, tanh(dq / 0.1), (gravity, gyro), q*(-1) - q*, ...],  clipped to its range, normalised
    delta = L tanh((A x + net(x)) / L)

q0 is the default pose; gravity and gyro are those of a floating base in its own frame; q*(-k) are the targets k steps
before. A is linear: in it wrong gains are a share of q* - q and of dq, a late command is one of q*(-1) - q*, and
dry friction is one of tanh(dq / 0.1), each in the joint's own columns, so that a few seconds of log show them. The net
has what is left. L limits the correction; the range is that of the data that it was fitted on.
A delta action belongs to the simulator: policies train under it and are deployed without it.

On disk it is a folder: `delta.json` (DeltaSpec) and `delta.safetensors` (numbers).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from trueup.core.arrays import FloatArray
from trueup.core.documents import read_arrays, read_json, write_json
from trueup.core.errors import TrueupError
from trueup.core.files import write_atomic
from trueup.core.layers import Layer, checked_layers, forward
from trueup.models.values import set_arrays

JSON_FILE, WEIGHTS_FILE = "delta.json", "delta.safetensors"
SCHEMA = 1
_SLOW = 0.1  # rad/s
_ARRAYS = ("linear", "mean", "std", "low", "high")
Float32 = NDArray[np.float32]


class DeltaSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a delta action sees and corrects.

    corrected   joints (places in joint_names) whose targets it changes
    base        whether it sees gravity and gyro of a floating base
    past        earlier targets that it sees
    rate_hz     control rate of the logs it was fitted on
    limit_rad   largest correction
    """

    schema: int = SCHEMA
    robot: str
    joint_names: tuple[str, ...]
    default_pose: tuple[float, ...]
    corrected: tuple[int, ...]
    base: bool
    rate_hz: float
    limit_rad: float
    past: int = 0
    notes: tuple[str, ...] = ()

    @property
    def ninput(self) -> int:
        return (4 + self.past) * len(self.joint_names) + 6 * self.base

    def own(self, joint: int) -> tuple[int, ...]:
        """Columns of the input that belong to a joint, and those of the base."""
        n, base = len(self.joint_names), 6 * self.base
        before = [4 * n + base + k * n + joint for k in range(self.past)]
        return (*(k * n + joint for k in range(4)), *range(4 * n, 4 * n + base), *before)


@dataclass(frozen=True, kw_only=True, eq=False)
class DeltaNet:
    """A spec with its numbers: `linear` (ncorrected, ninput), `layers` (none: linear only), ranges (ninput,) each."""

    spec: DeltaSpec
    linear: Float32
    layers: tuple[Layer, ...]
    mean: Float32
    std: Float32
    low: Float32
    high: Float32

    def __post_init__(self) -> None:
        spec, per_input = self.spec, (self.spec.ninput,)
        set_arrays(
            self,
            dict.fromkeys(("mean", "std", "low", "high"), per_input) | {"linear": (len(spec.corrected), *per_input)},
        )
        if self.layers:
            object.__setattr__(self, "layers", checked_layers(self.layers, *per_input, len(spec.corrected)))

    def inputs(
        self,
        target: FloatArray,
        pos: FloatArray,
        vel: FloatArray,
        base: FloatArray | None,
        past: FloatArray | None = None,
    ) -> FloatArray:
        """x (n, ninput) as it is, from targets and joint state (n, njoint) and gravity with gyro (n, 6).

        past  (n, `spec.past`, njoint) targets before this one, the newest first
        """
        parts = [target - pos, vel, pos - np.array(self.spec.default_pose), np.tanh(vel / _SLOW)]
        if self.spec.base:
            if base is None:
                raise TrueupError("this delta action sees gravity and gyro: it needs a robot with a floating base")
            parts.append(base)
        if self.spec.past:
            assert past is not None
            parts.append((past - target[:, None]).reshape(len(target), -1))
        return np.concatenate(parts, axis=1)

    def outside(self, x: FloatArray) -> FloatArray:
        """Share of the inputs of each row (n,) beyond the range of the data."""
        return np.mean((x < self.low) | (x > self.high), axis=1)

    def __call__(self, x: FloatArray) -> FloatArray:
        """Corrections (n, njoint), rad; zero for joints that are not corrected."""
        seen = (np.clip(x, self.low, self.high) - self.mean) / self.std
        y = seen @ self.linear.T.astype(np.float64)
        if self.layers:
            y = y + forward(self.layers, seen.astype(np.float32))
        out = np.zeros((len(x), len(self.spec.joint_names)))
        out[:, list(self.spec.corrected)] = self.spec.limit_rad * np.tanh(y / self.spec.limit_rad)
        return out


def save_delta(net: DeltaNet, folder: str | Path) -> Path:
    """Write the folder; the numbers first, so that a spec never stands alone."""
    from safetensors.numpy import save

    arrays: dict[str, NDArray[np.generic]] = {name: getattr(net, name) for name in _ARRAYS}
    for k, (weight, bias) in enumerate(net.layers):
        arrays[f"{k}.weight"], arrays[f"{k}.bias"] = np.ascontiguousarray(weight), np.ascontiguousarray(bias)
    write_atomic(Path(folder) / WEIGHTS_FILE, save(arrays))
    return write_json(Path(folder) / JSON_FILE, net.spec)


def load_delta(folder: str | Path) -> DeltaNet:
    """Read what `save_delta` wrote; every failure names the file."""
    weights_file = Path(folder) / WEIGHTS_FILE
    spec = read_json(Path(folder) / JSON_FILE, DeltaSpec, "delta action")
    arrays = read_arrays(weights_file, "delta action's numbers")
    count = sum(name.endswith(".weight") for name in arrays)
    try:
        layers = tuple((arrays[f"{k}.weight"], arrays[f"{k}.bias"]) for k in range(count))
        return DeltaNet(spec=spec, layers=layers, **{name: arrays[name] for name in _ARRAYS})
    except TrueupError as error:
        raise TrueupError(f"does not fit its spec: {error.message[:300]}", file=weights_file) from None
    except KeyError as error:
        raise TrueupError(f"lacks the array {error.args[0]!r}", file=weights_file) from None
