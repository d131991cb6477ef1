"""What every equation here takes: one float, or an array with any leading batch axes and joints last."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from trueup.core.arrays import FloatArray
from trueup.core.errors import TrueupError

Values = float | FloatArray


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


def set_arrays(owner: object, shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Make named fields of a frozen net contiguous float32; refused where not finite or of another shape."""
    for name, shape in shapes.items():
        value: NDArray[np.float32] = np.ascontiguousarray(getattr(owner, name), np.float32)
        if value.shape != shape or not np.isfinite(value).all():
            raise TrueupError(f"{name} must be finite with shape {shape}, found {value.shape}", place=name)
        if name == "std" and (value <= 0).any():
            raise TrueupError("std must be positive", place="std")
        object.__setattr__(owner, name, value)
