"""Normalizer: running mean and variance of observations, and their use."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

Float32 = NDArray[np.float32]
FloatArray = NDArray[np.float64]
EPS = 1e-2  # added to the standard deviation: a column that hardly moves must not be blown up


class Normalizer:
    """y = clip((x - mean) / (std + 0.01), -limit, limit), statistics by Chan's parallel update."""

    def __init__(self, size: int, limit: float = 10.0) -> None:
        self.mean: FloatArray = np.zeros(size)
        self.var: FloatArray = np.ones(size)
        self.count = 0.0
        self.limit = limit

    def update(self, values: NDArray[np.floating]) -> None:
        """Take in (n, size) more observations."""
        new = np.asarray(values, np.float64)
        count, mean, var = len(new), new.mean(axis=0), new.var(axis=0)
        total = self.count + count
        delta = mean - self.mean
        self.var = (self.var * self.count + var * count + delta**2 * self.count * count / total) / total
        self.mean = self.mean + delta * count / total
        self.count = total

    def __call__(self, values: Float32) -> Float32:
        scale = 1.0 / (np.sqrt(self.var) + EPS)
        out = (values - self.mean.astype(np.float32)) * scale.astype(np.float32)
        return np.clip(out, -self.limit, self.limit, out=out)

    def state(self) -> dict[str, FloatArray]:
        """Arrays for a checkpoint or a policy file."""
        return {"mean": self.mean.copy(), "var": self.var.copy(), "count": np.array([self.count])}

    def restore(self, state: Mapping[str, NDArray[np.floating]]) -> None:
        """Continue from `state`."""
        self.mean = np.array(state["mean"], np.float64)
        self.var = np.array(state["var"], np.float64)
        self.count = float(np.ravel(state["count"])[0])
