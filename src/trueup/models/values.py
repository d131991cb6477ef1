"""What every equation here takes: one float, or an array with any leading batch axes and joints last."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from trueup.core.arrays import FloatArray
from trueup.core.errors import TrueupError

Values = float | FloatArray


def freeze_arrays(net: Any, shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Make the named arrays of a frozen dataclass contiguous float32; refuse other shapes and what is not finite."""
    for name, shape in shapes.items():
        value = np.ascontiguousarray(getattr(net, name), np.float32)
        if value.shape != shape or not np.isfinite(value).all():
            raise TrueupError(f"{name} must be finite with shape {shape}, found {value.shape}", place=name)
        object.__setattr__(net, name, value)
    if "std" in shapes and np.any(net.std <= 0):
        raise TrueupError("std must be positive", place="std")


def require_positive(name: str, value: Values, *, or_zero: bool = False, finite: bool = True) -> None:
    """Raise TrueupError unless every number of `value` is positive (or zero), and finite when asked."""
    numbers = np.asarray(value, np.float64)
    enough = numbers >= 0.0 if or_zero else numbers > 0.0  # false for NaN, as it must be
    wrong = ~enough | np.isinf(numbers) if finite else ~enough
    if np.any(wrong):
        at = np.argwhere(wrong)[0].tolist()
        wanted = ("zero or more" if or_zero else "above zero") + (" and finite" if finite else "")
        found = numbers[tuple(at)]
        raise TrueupError(f"{name} must be {wanted}, found {found} at index {at}; correct it", place=name)
