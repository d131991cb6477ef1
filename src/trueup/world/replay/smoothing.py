"""The state of a log with its noise taken out: where a replay starts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.signal import savgol_filter  # type: ignore[attr-defined]

from trueup.data.log import Log
from trueup.data.resample import rate_of

FloatArray = NDArray[np.float64]
_SMOOTH_S = 0.03  # half width of the smoothing polynomial


def smooth(log: Log) -> tuple[FloatArray, FloatArray]:
    """Return position and velocity by a cubic fitted around every sample (zero phase), (T, njoint) each."""
    position, dt = log["joint_pos"], 1.0 / rate_of(log)
    width = 2 * max(2, round(_SMOOTH_S / dt)) + 1
    if len(position) <= width:
        return position, np.gradient(position, dt, axis=0)
    return (
        savgol_filter(position, width, 3, axis=0),
        savgol_filter(position, width, 3, deriv=1, delta=dt, axis=0),
    )
