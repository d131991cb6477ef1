"""Course: slope, stairs, gaps or uneven slabs made of boxes, which robots walk along x from a flat start at the origin.

A height field of the same shape is no substitute: feet that sink in by a millimetre meet the edges between its cells
and stumble on ground that looks even. Boxes have the edges that are there and no others, and risers are upright.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from trueup.core.arrays import FloatArray
from trueup.core.errors import TrueupError, did_you_mean
from trueup.robot.model import FLOOR
from trueup.world.terrain import Float32, Terrain, TerrainCfg, difficulty_of, gap_depth

Floats = NDArray[np.floating[Any]]
COURSES = ("slope_up", "slope_down", "stairs_up", "stairs_down", "gaps", "noise")
_START_M, _TREAD_M, _ISLAND_M = 1.0, 0.3, 1.0  # flat at the start; of a step; between gaps
_THICK_M, _WIDE_M = 0.5, 8.0
_SLAB_M, _SLABS = 0.25, 16  # side of a slab, slabs abreast


class Course(Terrain):
    """One kind at one size: slope in degrees; height of a step or of slabs, width of a gap, in m.

    It goes on for `length_m`; beyond its edges the last height does.
    """

    def __init__(self, kind: str, size: float, length_m: float, seed: int = 0) -> None:
        if kind not in COURSES:
            raise TrueupError(f"no course {kind!r}{did_you_mean(kind, COURSES)}")
        self.cfg = TerrainCfg(kinds=(kind,), levels=1)
        self._tan = 0.0
        across: Floats = np.array([-_WIDE_M, _WIDE_M])
        edges: Floats
        tops: Floats
        if kind.startswith("slope"):
            self._tan = math.tan(math.radians(size)) * (1 if kind == "slope_up" else -1)
            edges, tops = np.array([0.0, length_m]), np.zeros((1, 1))
        elif kind == "noise":
            across = _SLAB_M * (np.arange(_SLABS + 1) - 0.5 * _SLABS)
            edges = _SLAB_M * np.arange(math.ceil(length_m / _SLAB_M) + 1)
            tops = np.random.default_rng(seed).uniform(-size, size, (len(edges) - 1, _SLABS))
        elif kind == "gaps":
            period, depth = size + _ISLAND_M, gap_depth(difficulty_of(kind, size))
            count = math.ceil(length_m / period)
            edges = np.append((period * np.arange(count)[:, None] + [0.0, size]).ravel(), count * period)
            tops = np.tile([[-depth], [0.0]], (count, 1))
        else:
            edges = _TREAD_M * np.arange(math.ceil(length_m / _TREAD_M) + 1)
            tops = (size if kind == "stairs_up" else -size) * np.arange(1, len(edges))[:, None]
        self._x, self._y, self._tops = _START_M + edges, across, tops

    def middle(self, level: NDArray[np.integer], kind: NDArray[np.integer]) -> FloatArray:
        """Where robots start, (n, 2)."""
        return np.zeros((len(level), 2))

    def height_at(self, x: Float32, y: Float32) -> Float32:
        """Height of the ground at world points of any shape."""
        i, j = (np.searchsorted(edges, at, side="right") - 1 for edges, at in ((self._x, x), (self._y, y)))
        top = self._tops[np.clip(i, 0, len(self._tops) - 1), np.clip(j, 0, self._tops.shape[1] - 1)]
        height = np.where(x < _START_M, 0.0, top + self._tan * (x - _START_M))
        return height.astype(np.float32)

    def add_to(self, spec: mujoco.MjSpec) -> None:
        """Put boxes in the place of the floor; the flat start has its name."""
        floor = spec.geom(FLOOR)
        if floor is not None:
            spec.delete(floor)
        low = min(0.0, float(self._tops.min())) - _THICK_M
        self._add_block(spec, FLOOR, (-_WIDE_M, _START_M), (-_WIDE_M, _WIDE_M), (low, 0.0))
        if self._tan:
            self._add_slope(spec)
            return
        for (i, j), top in np.ndenumerate(self._tops):
            sides = self._x[i : i + 2].tolist(), self._y[j : j + 2].tolist(), (low, float(top))
            self._add_block(spec, f"{FLOOR}_{i}_{j}", *sides)

    def _add_block(self, spec: mujoco.MjSpec, name: str, *sides: Sequence[float]) -> None:
        half, place = ([0.5 * (high + sign * low) for low, high in sides] for sign in (-1.0, 1.0))
        _add_box(spec, name, half, place, [1.0, 0.0, 0.0, 0.0])

    def _add_slope(self, spec: mujoco.MjSpec) -> None:
        """A tilted box whose upper side begins at the end of the start."""
        angle = math.atan(self._tan)
        middle, down = 0.5 * (self._x[-1] - _START_M) / math.cos(angle), 0.5 * _THICK_M
        place = [
            _START_M + middle * math.cos(angle) + down * math.sin(angle),
            0.0,
            middle * math.sin(angle) - down * math.cos(angle),
        ]
        turned = [math.cos(0.5 * angle), 0.0, -math.sin(0.5 * angle), 0.0]
        _add_box(spec, f"{FLOOR}_slope", [middle, _WIDE_M, down], place, turned)


def _add_box(spec: mujoco.MjSpec, name: str, half: list[float], place: list[float], quat: list[float]) -> None:
    shade = 0.62 - 0.06 * (len(spec.worldbody.geoms) % 2)
    spec.worldbody.add_geom(
        name=name,
        type=mujoco.mjtGeom.mjGEOM_BOX,
        size=half,
        pos=place,
        quat=quat,
        contype=1,
        conaffinity=1,
        rgba=[shade, shade + 0.04, shade - 0.02, 1],
    )
