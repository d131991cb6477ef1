"""Kinds of ground: heights of one square patch (n, n) in metres, for a difficulty in [0, 1].

A robot starts on the flat middle and walks outwards in any direction. Axis 0 is x, axis 1 is y. Distances `r` from the
middle are Chebyshev distances: steps and rings are squares.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
_PLATFORM_M = 0.6  # half the width of the flat middle


def patch(kind: str, n: int, cell_m: float, difficulty: float, rng: np.random.Generator) -> FloatArray:
    """Heights of one patch of n points a side."""
    away = np.abs(np.arange(n) - 0.5 * (n - 1)) * cell_m
    r = np.maximum(away[:, None], away[None, :])
    return np.where(r <= _PLATFORM_M, 0.0, KINDS[kind](r, cell_m, difficulty, rng))


def _slope(r: FloatArray, cell_m: float, difficulty: float, rng: np.random.Generator) -> FloatArray:
    """A bowl: up to 0.4 of slope on the way out."""
    return (0.05 + 0.35 * difficulty) * np.maximum(r - _PLATFORM_M, 0.0)


def _stairs(r: FloatArray, cell_m: float, difficulty: float, rng: np.random.Generator) -> FloatArray:
    """Steps of 0.3 m, 3 to 15 cm high, up on the way out."""
    return (0.03 + 0.12 * difficulty) * np.ceil(np.maximum(r - _PLATFORM_M, 0.0) / 0.3 - 1e-9)


def _noise(r: FloatArray, cell_m: float, difficulty: float, rng: np.random.Generator) -> FloatArray:
    """Uniform bumps of +-1 to +-5 cm at each point."""
    size = 0.01 + 0.04 * difficulty
    return rng.uniform(-size, size, r.shape)


def _obstacles(r: FloatArray, cell_m: float, difficulty: float, rng: np.random.Generator) -> FloatArray:
    """Blocks of 0.3 to 1 m, up to 3 to 15 cm high or deep."""
    height, n, out = 0.03 + 0.12 * difficulty, len(r), np.zeros_like(r)
    for _ in range(round(1.2 * (n * cell_m) ** 2)):
        width, depth = (rng.uniform(0.3, 1.0, 2) / cell_m).astype(int)
        x, y = rng.integers(0, n, 2)
        out[x : x + width, y : y + depth] = rng.uniform(-height, height)
    return out


def _gaps(r: FloatArray, cell_m: float, difficulty: float, rng: np.random.Generator) -> FloatArray:
    """Two square ditches around the middle, 0.1 to 0.4 m wide and 5 to 50 cm deep."""
    width = 0.1 + 0.3 * difficulty
    inside = [(r > start) & (r <= start + width + 1e-9) for start in (0.8, 1.8)]
    return np.where(inside[0] | inside[1], -_depth(difficulty), 0.0)


def _stones(r: FloatArray, cell_m: float, difficulty: float, rng: np.random.Generator) -> FloatArray:
    """Stepping stones of 0.6 to 0.3 m, 0.1 to 0.2 m apart and 5 to 50 cm high, of slightly different height."""
    n, stone = len(r), max(1, round((0.6 - 0.3 * difficulty) / cell_m))
    pitch = stone + max(1, round((0.1 + 0.1 * difficulty) / cell_m))
    place = np.arange(n) % pitch < stone
    count = -(-n // pitch)
    lift = np.kron(rng.uniform(-0.02, 0.02, (count, count)) * difficulty, np.ones((pitch, pitch)))[:n, :n]
    return np.where(place[:, None] & place[None, :], lift, -_depth(difficulty))


def _depth(difficulty: float) -> float:
    """Depth of gaps in metres: shallow at first, so that a foot that misses can be lifted out again."""
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
