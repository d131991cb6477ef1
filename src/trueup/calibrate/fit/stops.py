"""Where joints met their stops in the data: a fit must begin there, for a stop that is never met has no slope."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from trueup.calibrate.data.windows import Windows
from trueup.world.fitted.fit_parameter import FitParameter

FloatArray = NDArray[np.float64]
_PUSHED = 0.1  # rad that a command must go beyond the furthest position for a stop to be suspected
_NEAR = 0.3  # rad from its nominal stop: a joint that stays further away says nothing about it
_DEPTH = 0.2  # rad that a soft stop is pressed in


def near_stops(parameters: Sequence[FitParameter], windows: Windows) -> tuple[FitParameter, ...]:
    """Drop stops that the joints stayed away from, and begin the others where the joint was held."""
    out: list[FitParameter] = []
    for entry in parameters:
        if entry.name not in ("stop_low", "stop_high"):
            out.append(entry)
            continue
        sign = 1.0 if entry.name == "stop_high" else -1.0
        met = [_met(windows.joint_names.index(joint), windows, sign, entry.prior) for joint in entry.of]
        found = [value for value in met if value is not None]
        if found:
            mean = float(np.clip(np.mean(found), entry.low + 0.05, entry.high - 0.05))
            out.append(msgspec.structs.replace(entry, prior=mean))
    held = {joint for entry in out if entry.name in ("stop_low", "stop_high") for joint in entry.of}
    return tuple(entry for entry in out if not entry.name.startswith("stop_") or held & set(entry.of))


def _met(joint: int, windows: Windows, sign: float, nominal: float) -> float | None:
    """Where this joint seems to have met its stop; None: it did not come near."""
    furthest = float((sign * windows.measured[..., joint]).max())
    asked = float((sign * windows.target[..., joint]).max())
    limit = sign * nominal
    if furthest < limit - _NEAR or asked < min(furthest + _PUSHED, limit):
        return None
    return sign * (furthest - _DEPTH)
