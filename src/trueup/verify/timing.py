"""Inference time: how long one control step of a policy takes on this computer."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

_WARM_UP = 20


def inference_times(
    act: Callable[[NDArray[np.float32]], object], nobs: int, *, steps: int = 1000
) -> NDArray[np.float64]:
    """Seconds of each of `steps` calls with one row of observations."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(_WARM_UP + steps, 1, nobs)).astype(np.float32)
    out = np.empty(len(rows))
    for k, row in enumerate(rows):
        start = time.perf_counter()
        act(row)
        out[k] = time.perf_counter() - start
    return out[_WARM_UP:]
