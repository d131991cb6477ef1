"""Actuator nets on disk: a folder with `actuator.json` and `actuator.safetensors`; never pickle."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from trueup.core.errors import TrueupError, found_instead
from trueup.core.files import write_atomic
from trueup.models.actuator_net import ActuatorNet, NetSpec

JSON_FILE, WEIGHTS_FILE = "actuator.json", "actuator.safetensors"
_ARRAYS = ("mean", "std", "scale", "context", "low", "high")
_MAX_BYTES = 200_000_000


def save_actuator(net: ActuatorNet, folder: str | Path) -> Path:
    """Write the folder; the weights first, so that a spec never stands alone."""
    from safetensors.numpy import save

    arrays: dict[str, NDArray[np.generic]] = {name: getattr(net, name) for name in _ARRAYS}
    for g, group in enumerate(net.layers):
        for k, (weight, bias) in enumerate(group):
            arrays[f"{g}.{k}.weight"], arrays[f"{g}.{k}.bias"] = weight, bias
    write_atomic(Path(folder) / WEIGHTS_FILE, save(arrays))
    return write_atomic(Path(folder) / JSON_FILE, msgspec.json.format(msgspec.json.encode(net.spec), indent=1))


def load_actuator(folder: str | Path) -> ActuatorNet:
    """Read what `save_actuator` wrote; every failure names the file."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    spec_file, weights_file = Path(folder) / JSON_FILE, Path(folder) / WEIGHTS_FILE
    try:
        spec = msgspec.json.decode(file_content(spec_file, "actuator net"), type=NetSpec)
    except msgspec.MsgspecError as error:
        raise TrueupError(f"is not an actuator net: {error}", file=spec_file) from None
    try:
        arrays = load(file_content(weights_file, "actuator net"))
        count = sum(name.startswith("0.") and name.endswith(".weight") for name in arrays)
        layers = tuple(
            tuple((arrays[f"{g}.{k}.weight"], arrays[f"{g}.{k}.bias"]) for k in range(count))
            for g in range(len(spec.groups))
        )
        numbers = {name: arrays[name] for name in _ARRAYS}
    except SafetensorError as error:
        raise TrueupError(f"is not an actuator net's weights: {error}", file=weights_file) from None
    except KeyError as error:
        raise TrueupError(f"lacks the array {error.args[0]!r}", file=weights_file) from None
    try:
        return ActuatorNet(spec=spec, layers=layers, **numbers)
    except TrueupError as error:
        raise TrueupError(f"does not fit its spec: {error}", file=weights_file) from None


def file_content(file: Path, what: str) -> bytes:
    """The bytes of one file of a learned model; `what` names the model in errors."""
    try:
        if file.stat().st_size > _MAX_BYTES:
            raise TrueupError(f"is larger than {_MAX_BYTES} bytes: no {what}", file=file)
        return file.read_bytes()
    except OSError as error:
        found = f"; {found_instead(file.parent)}" if isinstance(error, FileNotFoundError) else ""
        raise TrueupError(f"the {what} cannot be read: {error.strerror}{found}", file=file) from None
