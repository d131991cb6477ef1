"""Actuator nets on disk: a folder with `actuator.json` and `actuator.safetensors`; never pickle."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from trueup.core.documents import read_arrays, read_json, write_json
from trueup.core.errors import TrueupError, found_instead
from trueup.core.files import write_atomic
from trueup.models.actuator_net import ActuatorNet, NetSpec

JSON_FILE, WEIGHTS_FILE = "actuator.json", "actuator.safetensors"
_ARRAYS = ("mean", "std", "scale", "context", "low", "high")


def save_actuator(net: ActuatorNet, folder: str | Path) -> Path:
    """Write the folder; the weights first, so that a spec never stands alone."""
    from safetensors.numpy import save

    arrays: dict[str, NDArray[np.generic]] = {name: getattr(net, name) for name in _ARRAYS}
    for g, group in enumerate(net.layers):
        for k, (weight, bias) in enumerate(group):
            arrays[f"{g}.{k}.weight"], arrays[f"{g}.{k}.bias"] = weight, bias
    write_atomic(Path(folder) / WEIGHTS_FILE, save(arrays))
    return write_json(Path(folder) / JSON_FILE, net.spec)


def load_actuator(folder: str | Path) -> ActuatorNet:
    """Read what `save_actuator` wrote; every failure names the file."""
    spec_file, weights_file = Path(folder) / JSON_FILE, Path(folder) / WEIGHTS_FILE
    absent = f"no actuator net here: {found_instead(folder)}; `trueup calibrate actuator` makes one"
    spec = read_json(spec_file, NetSpec, "actuator net", absent=absent)
    arrays = read_arrays(weights_file, "actuator net's weights")
    count = sum(name.startswith("0.") and name.endswith(".weight") for name in arrays)
    try:
        layers = tuple(
            tuple((arrays[f"{g}.{k}.weight"], arrays[f"{g}.{k}.bias"]) for k in range(count))
            for g in range(len(spec.groups))
        )
        numbers = {name: arrays[name] for name in _ARRAYS}
    except KeyError as error:
        raise TrueupError(f"lacks the array {error.args[0]!r}", file=weights_file) from None
    try:
        return ActuatorNet(spec=spec, layers=layers, **numbers)
    except TrueupError as error:
        raise TrueupError(f"does not fit its spec: {error}", file=weights_file) from None
