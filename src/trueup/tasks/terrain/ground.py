"""Ground: how high things are above it, and samples of it around each robot."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trueup.world.terrain import Terrain

Float32 = NDArray[np.float32]
GRID_X = tuple(np.linspace(-0.5, 0.5, 11).tolist())  # m ahead of the base
GRID_Y = tuple(np.linspace(-0.3, 0.3, 7).tolist())  # m to its left


class Ground:
    """Looks heights up; without a terrain the ground is flat at zero."""

    def __init__(self, terrain: Terrain | None) -> None:
        self.terrain = terrain
        x, y = np.meshgrid(np.array(GRID_X, np.float32), np.array(GRID_Y, np.float32), indexing="ij")
        self._x, self._y = x.ravel(), y.ravel()

    @property
    def grid(self) -> tuple[int, int]:
        """Samples along x and along y; none on flat ground."""
        return (0, 0) if self.terrain is None else (len(GRID_X), len(GRID_Y))

    def below(self, x: NDArray[np.floating], y: NDArray[np.floating]) -> Float32:
        """Height of the ground at world points."""
        if self.terrain is None:
            return np.zeros(x.shape, np.float32)
        return self.terrain.height_at(x.astype(np.float32), y.astype(np.float32))

    def around(self, position: Float32, quat: tuple[Float32, ...], below: Float32) -> Float32:
        """Heights (n, k) on a grid around bases at (2, n), turned with their heading, minus the ground `below`."""
        if self.terrain is None:
            return np.zeros((len(below), 0), np.float32)
        w, x, y, z = quat
        yaw = np.arctan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))
        cos, sin = np.cos(yaw)[:, None], np.sin(yaw)[:, None]
        u = position[0][:, None] + cos * self._x - sin * self._y
        v = position[1][:, None] + sin * self._x + cos * self._y
        return self.terrain.height_at(u, v) - below[:, None]
