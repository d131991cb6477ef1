"""Ground that is not flat: heights around each robot, and the curriculum over its rows.

Who does well goes to a harder row, who does not to an easier one. A robot starts in the middle of its patch. It goes up
a level when it has crossed more than half of the patch, that is, when it has reached the patch's edge; down when it
came less than half as far as one that does exactly what is commanded (turns included: who is told to walk in circles
comes nowhere); and to any level when it leaves the last one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trueup.core.arrays import FloatArray, Ids
from trueup.core.rows import RowRandom
from trueup.world.terrain import Terrain

Float32 = NDArray[np.float32]
GRID_X = tuple(np.linspace(-0.5, 0.5, 11).tolist())  # m ahead of the base
GRID_Y = tuple(np.linspace(-0.3, 0.3, 7).tolist())  # m to its left

_MARGIN_M = 0.5  # half a robot: patches of different kinds meet in cliffs and walls
_LEAST_M = 0.5  # commands that lead less far tell nothing


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


class Climb:
    """Terrain curriculum: level and kind of ground of every row, and the distance that it covered."""

    def __init__(self, terrain: Terrain, nenv: int, random: RowRandom, first_row: int, level: int | None) -> None:
        self.terrain, self._random, self._fixed = terrain, random, level is not None
        kinds, levels = len(terrain.cfg.kinds), terrain.cfg.levels
        self.kind = (first_row + np.arange(nenv)) % kinds
        start = np.minimum(2, levels - 1) * random.uniform(1)[:, 0]  # the easy ones first
        self.level = np.round(start).astype(np.int64) if level is None else np.full(nenv, level)
        self.asked = np.zeros((nenv, 2), np.float32)  # where commands would have led in this episode, m from its start
        self.heading = np.zeros(nenv, np.float32)  # and how far they would have turned the robot, rad

    def middle(self, ids: Ids) -> FloatArray:
        """Middle of the patch of each row."""
        return self.terrain.middle(self.level[ids], self.kind[ids])

    def advance(self, command: Float32, dt: float) -> None:
        """One control step has passed under `command` (nenv, 3): forward, sideways, turn."""
        forward, left, turn = np.float32(dt) * command.T
        cos, sin = np.cos(self.heading), np.sin(self.heading)
        self.asked += np.stack([cos * forward - sin * left, sin * forward + cos * left], axis=1)
        self.heading += turn

    def away(self, position: NDArray[np.floating]) -> NDArray[np.floating]:
        """Distance of world positions (nenv, 2) from the middle of each row's patch along x or y, the larger."""
        return np.abs(position - self.terrain.middle(self.level, self.kind)).max(axis=1)

    def crossed(self, position: NDArray[np.floating]) -> NDArray[np.bool_]:
        """Rows that have reached the edge of their patch, short of where they would step on the next one."""
        return self.away(position) > 0.5 * self.terrain.cfg.patch_m - _MARGIN_M

    def ended(self, ids: Ids, position: NDArray[np.floating]) -> None:
        """Episodes of rows `ids` ended at (nenv, 2) positions: move rows up or down."""
        if not self._fixed:
            up = self.crossed(position)[ids]
            way = np.linalg.norm(position[ids] - self.middle(ids), axis=1)
            distance = np.linalg.norm(self.asked[ids], axis=1)
            down = ~up & (distance > _LEAST_M) & (way < 0.5 * distance)
            level = self.level[ids] + up - down
            top = self.terrain.cfg.levels
            anywhere = np.floor(top * self._random.uniform(1, ids)[:, 0]).astype(np.int64)
            self.level[ids] = np.where(level >= top, anywhere, np.maximum(level, 0))
        self.asked[ids] = 0.0
        self.heading[ids] = 0.0

    def metrics(self) -> dict[str, float]:
        """Mean level, over all and by kind."""
        out = {"terrain/level": float(self.level.mean())}
        for k, kind in enumerate(self.terrain.cfg.kinds):
            rows = self.kind == k
            if rows.any():
                out[f"terrain/{kind}"] = float(self.level[rows].mean())
        return out

    def memory(self) -> dict[str, NDArray[np.generic]]:
        """Live arrays for a checkpoint."""
        return {"level": self.level, "asked": self.asked, "heading": self.heading, "counter": self._random.counter}
