"""Terrain: patches of every kind in rows of rising difficulty, as one height field that all simulations share.

A robot starts on the flat middle of a patch and walks outwards in any direction. Axis 0 is x, axis 1 is y. Distances
`r` from the middle are Chebyshev distances: steps and rings are squares.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import mujoco
import numpy as np
from numpy.typing import NDArray

from trueup.core.arrays import FloatArray
from trueup.core.errors import TrueupError, did_you_mean
from trueup.robot.model import FLOOR

Float32 = NDArray[np.float32]
_PLATFORM_M = 0.6  # half the width of the flat middle
# of difficulty 0 and 1: slope; height of steps, bumps and blocks (m); width of gaps and between stones (m)
SIZES = {
    "slope_up": (0.05, 0.40),
    "slope_down": (0.05, 0.40),
    "stairs_up": (0.03, 0.15),
    "stairs_down": (0.03, 0.15),
    "noise": (0.01, 0.05),
    "obstacles": (0.03, 0.15),
    "gaps": (0.1, 0.4),
    "stones": (0.1, 0.2),
}


def patch(kind: str, n: int, cell_m: float, difficulty: float, rng: np.random.Generator) -> FloatArray:
    """Heights of one patch of n points a side."""
    away = np.abs(np.arange(n) - 0.5 * (n - 1)) * cell_m
    r = np.maximum(away[:, None], away[None, :])
    return np.where(r <= _PLATFORM_M, 0.0, KINDS[kind](r, cell_m, difficulty, rng))


def _size(kind: str, difficulty: float) -> float:
    low, high = SIZES[kind]
    return low + (high - low) * difficulty


def difficulty_of(kind: str, size: float) -> float:
    """The difficulty at which a kind has this size (`SIZES`): above 1 beyond the hardest level, 0 of flat ground."""
    if kind not in SIZES:
        return 0.0
    low, high = SIZES[kind]
    return (size - low) / (high - low)


def _slope(r: FloatArray, cell_m: float, difficulty: float, rng: np.random.Generator) -> FloatArray:
    """A bowl: up to 0.4 of slope on the way out."""
    return _size("slope_up", difficulty) * np.maximum(r - _PLATFORM_M, 0.0)


def _stairs(r: FloatArray, cell_m: float, difficulty: float, rng: np.random.Generator) -> FloatArray:
    """Steps of 0.3 m, 3 to 15 cm high, up on the way out."""
    return _size("stairs_up", difficulty) * np.ceil(np.maximum(r - _PLATFORM_M, 0.0) / 0.3 - 1e-9)


def _noise(r: FloatArray, cell_m: float, difficulty: float, rng: np.random.Generator) -> FloatArray:
    """Uniform bumps of +-1 to +-5 cm at each point."""
    size = _size("noise", difficulty)
    return rng.uniform(-size, size, r.shape)


def _obstacles(r: FloatArray, cell_m: float, difficulty: float, rng: np.random.Generator) -> FloatArray:
    """Blocks of 0.3 to 1 m, up to 3 to 15 cm high or deep."""
    height, n, out = _size("obstacles", difficulty), len(r), np.zeros_like(r)
    for _ in range(round(1.2 * (n * cell_m) ** 2)):
        width, depth = (rng.uniform(0.3, 1.0, 2) / cell_m).astype(int)
        x, y = rng.integers(0, n, 2)
        out[x : x + width, y : y + depth] = rng.uniform(-height, height)
    return out


def _gaps(r: FloatArray, cell_m: float, difficulty: float, rng: np.random.Generator) -> FloatArray:
    """Two square ditches around the middle, 0.1 to 0.4 m wide and 5 to 50 cm deep."""
    width = _size("gaps", difficulty)
    inside = [(r > start) & (r <= start + width + 1e-9) for start in (0.8, 1.8)]
    return np.where(inside[0] | inside[1], -gap_depth(difficulty), 0.0)


def _stones(r: FloatArray, cell_m: float, difficulty: float, rng: np.random.Generator) -> FloatArray:
    """Stepping stones of 0.6 to 0.3 m, 0.1 to 0.2 m apart and 5 to 50 cm high, of slightly different height."""
    n, stone = len(r), max(1, round((0.6 - 0.3 * difficulty) / cell_m))
    pitch = stone + max(1, round(_size("stones", difficulty) / cell_m))
    place = np.arange(n) % pitch < stone
    count = -(-n // pitch)
    lift = np.kron(rng.uniform(-0.02, 0.02, (count, count)) * difficulty, np.ones((pitch, pitch)))[:n, :n]
    return np.where(place[:, None] & place[None, :], lift, -gap_depth(difficulty))


def gap_depth(difficulty: float) -> float:
    """Depth of gaps and between stones, m: shallow at first, so that a foot that misses can be lifted out again."""
    return 0.05 + 0.45 * difficulty


KINDS: dict[str, Callable[[FloatArray, float, float, np.random.Generator], FloatArray]] = {
    "flat": lambda r, *_: np.zeros_like(r),
    "noise": _noise,
    "slope_up": _slope,
    "slope_down": lambda *args: -_slope(*args),
    "stairs_up": _stairs,
    "stairs_down": lambda *args: -_stairs(*args),
    "obstacles": _obstacles,
    "gaps": _gaps,
    "stones": _stones,
}


@dataclass(frozen=True, kw_only=True)
class TerrainCfg:
    """Kinds of ground side by side (along y), levels of difficulty one behind the other (along x).

    hardest  difficulty of the last level; of the only one, if `levels` is 1
    """

    kinds: tuple[str, ...] = tuple(KINDS)
    levels: int = 8
    patch_m: float = 6.0
    cell_m: float = 0.1
    border_m: float = 2.0
    hardest: float | None = None

    def __post_init__(self) -> None:
        for kind in self.kinds:
            if kind not in KINDS:
                raise TrueupError(f"no terrain {kind!r}{did_you_mean(kind, KINDS)}")
        if not self.kinds or self.levels < 1 or not 0 < self.cell_m < self.patch_m:
            raise TrueupError("terrain needs a kind, a level and 0 < cell_m < patch_m")

    def difficulty(self, level: int) -> float:
        """Of a level: from 0, or `hardest` if it is the only one, to `hardest`."""
        if self.levels == 1:
            return self.hardest or 0.0
        return level / (self.levels - 1) * (1.0 if self.hardest is None else self.hardest)


class Terrain:
    """The heights, their lookup, and where patches are. World x = (row index) cell - border, likewise y."""

    def __init__(self, cfg: TerrainCfg, seed: int = 0) -> None:
        self.cfg = cfg
        n, edge = round(cfg.patch_m / cfg.cell_m), round(cfg.border_m / cfg.cell_m)
        rng = np.random.default_rng(seed)
        heights = np.zeros((cfg.levels * n + 2 * edge + 1, len(cfg.kinds) * n + 2 * edge + 1))
        for level in range(cfg.levels):
            for k, kind in enumerate(cfg.kinds):
                difficulty = cfg.difficulty(level)
                x, y = edge + level * n, edge + k * n
                # a patch has one point more than cells, so that it is symmetric about its middle
                heights[x : x + n + 1, y : y + n + 1] = patch(kind, n + 1, cfg.cell_m, difficulty, rng)
        self.heights: Float32 = heights.astype(np.float32)
        self._flat = np.ascontiguousarray(self.heights).ravel()
        self._offset = edge * cfg.cell_m

    def middle(self, level: NDArray[np.integer], kind: NDArray[np.integer]) -> FloatArray:
        """Middles of patches, (n, 2) world x and y."""
        return np.stack([(level + 0.5) * self.cfg.patch_m, (kind + 0.5) * self.cfg.patch_m], axis=1)

    def height_at(self, x: Float32, y: Float32) -> Float32:
        """Height of the ground at world points of any shape, by bilinear interpolation; flat beyond the edge."""
        nx, ny = self.heights.shape
        scale = np.float32(1.0 / self.cfg.cell_m)
        u = np.clip((x + np.float32(self._offset)) * scale, 0.0, np.float32(nx - 1.001))
        v = np.clip((y + np.float32(self._offset)) * scale, 0.0, np.float32(ny - 1.001))
        i, j = u.astype(np.int32), v.astype(np.int32)
        a, b = u - i, v - j
        at = i * np.int32(ny) + j
        take = self._flat.take
        near = take(at) * (1 - b) + take(at + 1) * b
        at += np.int32(ny)
        far = take(at) * (1 - b) + take(at + 1) * b
        return near + a * (far - near)

    def add_to(self, spec: mujoco.MjSpec) -> None:
        """Put the terrain in the place of the floor."""
        floor = spec.geom(FLOOR)
        if floor is not None:
            spec.delete(floor)
        nx, ny = self.heights.shape
        low, high = float(self.heights.min()), float(self.heights.max())
        half_x, half_y = 0.5 * (nx - 1) * self.cfg.cell_m, 0.5 * (ny - 1) * self.cfg.cell_m
        spec.add_hfield(
            name="terrain",
            size=[half_x, half_y, max(high - low, 1e-3), 0.5],
            nrow=ny,  # the engine's rows run along y
            ncol=nx,
            userdata=self.heights.T.astype(np.float64).ravel().tolist(),
        )
        spec.worldbody.add_geom(
            name=FLOOR,
            type=mujoco.mjtGeom.mjGEOM_HFIELD,
            hfieldname="terrain",
            pos=[half_x - self._offset, half_y - self._offset, low],
            contype=1,
            conaffinity=1,
            rgba=[0.62, 0.66, 0.6, 1],
        )
