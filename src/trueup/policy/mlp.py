"""MlpPolicy: a trained network as plain NumPy, with the specs of what it sees and says. The robot needs nothing else.

On disk a policy is a folder: `policy.json` (specs, rate, sizes) and `policy.safetensors` (weights, statistics).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from trueup.core.errors import TrueupError
from trueup.core.files import write_atomic
from trueup.policy.action import ActionSpec
from trueup.policy.normalizer import Normalizer
from trueup.policy.observation import ObservationSpec

Float32 = NDArray[np.float32]
Layer = tuple[Float32, Float32]
JSON_FILE, WEIGHTS_FILE = "policy.json", "policy.safetensors"
SCHEMA = 1


class PolicySpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What must agree between training and robot; kp and kd are the servo's gains, per joint."""

    schema: int = SCHEMA
    task: str
    robot: str
    control_hz: float
    kp: tuple[float, ...]
    kd: tuple[float, ...]
    observation: ObservationSpec
    action: ActionSpec

    def __post_init__(self) -> None:
        if self.schema != SCHEMA:
            raise ValueError(f"schema {self.schema} is not known to this version (it reads schema {SCHEMA})")


class MlpPolicy:
    """action = W_n elu(... elu(W_1 normalised(obs) + b_1)) + b_n; weights are (out, in)."""

    def __init__(self, spec: PolicySpec, layers: Sequence[Layer], normalizer: Normalizer) -> None:
        self.spec, self.normalizer = spec, normalizer
        self.layers = [(np.asarray(w, np.float32), np.asarray(b, np.float32)) for w, b in layers]
        sizes = [spec.observation.nactor, *(len(b) for _, b in self.layers)]
        fits = all(w.shape == (m, n) for (w, _), n, m in zip(self.layers, sizes[:-1], sizes[1:], strict=True))
        if not fits or sizes[-1] != len(spec.action.moved) or len(normalizer.mean) != sizes[0]:
            raise TrueupError(f"this policy's weights do not fit its specs: layers of sizes {sizes}")
        if not all(np.isfinite(part).all() for layer in self.layers for part in layer):
            raise TrueupError("this policy has weights that are not finite")

    def __call__(self, obs: Float32) -> Float32:
        """Actions (n, naction) of observations (n, nactor)."""
        x = self.normalizer(obs)
        for k, (weight, bias) in enumerate(self.layers):
            x = x @ weight.T + bias
            if k < len(self.layers) - 1:
                x = np.where(x > 0, x, np.expm1(np.minimum(x, 0)))
        return x

    def save(self, folder: str | Path) -> None:
        """Write the folder; the weights first, so that a spec never stands alone."""
        from safetensors.numpy import save

        arrays: dict[str, NDArray[np.generic]] = {
            f"normalizer.{name}": values for name, values in self.normalizer.state().items()
        }
        for k, (weight, bias) in enumerate(self.layers):
            arrays[f"{k}.weight"], arrays[f"{k}.bias"] = weight, bias
        write_atomic(Path(folder) / WEIGHTS_FILE, save(arrays))
        write_atomic(Path(folder) / JSON_FILE, msgspec.json.format(msgspec.json.encode(self.spec), indent=1))


def load_policy(folder: str | Path) -> MlpPolicy:
    """Read what `MlpPolicy.save` wrote; every failure names the file."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    spec_file, weights_file = Path(folder) / JSON_FILE, Path(folder) / WEIGHTS_FILE
    try:
        spec = msgspec.json.decode(spec_file.read_bytes(), type=PolicySpec)
        arrays = load(weights_file.read_bytes())
    except OSError as error:
        raise TrueupError(f"the policy cannot be read: {error.strerror}", file=error.filename) from None
    except msgspec.MsgspecError as error:
        raise TrueupError(f"is not a policy: {error}", file=spec_file) from None
    except SafetensorError as error:
        raise TrueupError(f"is not a policy's weights: {error}", file=weights_file) from None
    try:
        count = sum(name.endswith(".weight") for name in arrays)
        layers = [(arrays[f"{k}.weight"], arrays[f"{k}.bias"]) for k in range(count)]
        normalizer = Normalizer(spec.observation.nactor)
        normalizer.restore({name: arrays[f"normalizer.{name}"] for name in ("mean", "var", "count")})
    except KeyError as error:
        raise TrueupError(f"lacks the array {error.args[0]!r}", file=weights_file) from None
    return MlpPolicy(spec, layers, normalizer)
