"""Student: acts on its own past. Teachers who know what the robot cannot see leave this behind. NumPy only."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from trueup.policy.layers import Float32, Layer, forward
from trueup.policy.trace import Trace


class Student:
    """Reads the last `steps` of (normalised observation, action) of `nrow` rows.

    Without `policy` it answers with actions; with `policy` it estimates the latent that this policy expects behind the
    observation (RMA, arXiv 2107.04034).
    """

    def __init__(
        self, layers: Sequence[Layer], policy: Sequence[Layer], *, steps: int, naction: int, nrow: int = 1
    ) -> None:
        self.layers, self.policy, self.steps = layers, policy, steps
        self._trace = Trace(nrow, steps, layers[0][0].shape[1] // steps)
        self._last: Float32 = np.zeros((nrow, naction), np.float32)

    def __call__(self, x: Float32) -> Float32:
        """Actions (nrow, naction) of normalised observations; one call is one control step."""
        out = forward(self.layers, self._trace.push(x, self._last))
        if self.policy:
            out = forward(self.policy, np.concatenate([x, out], axis=1))
        self._last = out.copy()
        return out

    def restart(self, rows: NDArray[np.intp]) -> None:
        """Forget the past of rows whose episode ended."""
        self._trace.restart(rows)
        self._last[rows] = 0.0
