"""Normalizer: running mean and variance of observations, and their use."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from trueup.core.arrays import FloatArray

Float32 = NDArray[np.float32]
Arrays = Mapping[str, NDArray[np.generic]]
EPS = 1e-2  # added to the standard deviation: a column that hardly moves must not be blown up
LIMIT = 10.0


class Normalizer:
    """y = clip((x - mean) / (std + 0.01), -10, 10), statistics by Chan's parallel update."""

    def __init__(self, size: int) -> None:
        self.mean: FloatArray = np.zeros(size)
        self.var: FloatArray = np.ones(size)
        self.count = 0.0

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
        return np.clip(out, -LIMIT, LIMIT, out=out)

    def arrays(self, name: str) -> dict[str, NDArray[np.generic]]:
        """The statistics as NAME/mean, NAME/var and NAME/count; `read_normalizer` is the opposite."""
        return {f"{name}/mean": self.mean, f"{name}/var": self.var, f"{name}/count": np.array([self.count])}


def read_normalizer(arrays: Arrays, name: str) -> Normalizer:
    """The statistics in what `Normalizer.arrays` returned; a missing array is a KeyError."""
    out = Normalizer(len(arrays[f"{name}/mean"]))
    out.mean, out.var = (np.array(arrays[f"{name}/{key}"], np.float64) for key in ("mean", "var"))
    out.count = float(np.ravel(arrays[f"{name}/count"])[0])
    return out
