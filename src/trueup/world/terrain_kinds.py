"""Kinds of ground: heights of one square patch (n, n) in metres, for a difficulty in [0, 1].

A robot starts on the flat middle and walks outwards in any direction. Axis 0 is x, axis 1 is y. Distances from the
middle are Chebyshev distances: steps and rings are squares.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
Patch = Callable[[int, float, float, np.random.Generator], FloatArray]
_PLATFORM_M = 0.6  # half the width of the flat middle


def flat(n: int, cell_m: float, difficulty: float, rng: np.random.Generator) -> FloatArray:
    """A plane."""
    return np.zeros((n, n))


def noise(n: int, cell_m: float, difficulty: float, rng: np.random.Generator) -> FloatArray:
    """Uniform bumps of +-1 to +-5 cm at each point."""
    size = 0.01 + 0.04 * difficulty
    return _keep_middle(rng.uniform(-size, size, (n, n)), cell_m)


def slope_up(n: int, cell_m: float, difficulty: float, rng: np.random.Generator) -> FloatArray:
    """A bowl: up to 0.4 of slope on the way out."""
    return (0.05 + 0.35 * difficulty) * np.maximum(_outward(n, cell_m) - _PLATFORM_M, 0.0)


def slope_down(n: int, cell_m: float, difficulty: float, rng: np.random.Generator) -> FloatArray:
    """A hill."""
    return -slope_up(n, cell_m, difficulty, rng)


def stairs_up(n: int, cell_m: float, difficulty: float, rng: np.random.Generator) -> FloatArray:
    """Steps of 0.3 m, 3 to 15 cm high, up on the way out."""
    steps = np.ceil(np.maximum(_outward(n, cell_m) - _PLATFORM_M, 0.0) / 0.3 - 1e-9)
    return (0.03 + 0.12 * difficulty) * steps


def stairs_down(n: int, cell_m: float, difficulty: float, rng: np.random.Generator) -> FloatArray:
    """Steps down on the way out."""
    return -stairs_up(n, cell_m, difficulty, rng)


def obstacles(n: int, cell_m: float, difficulty: float, rng: np.random.Generator) -> FloatArray:
    """Blocks of 0.3 to 1 m, up to 3 to 15 cm high or deep."""
    height = 0.03 + 0.12 * difficulty
    out = np.zeros((n, n))
    for _ in range(round(1.2 * (n * cell_m) ** 2)):
        width, depth = (rng.uniform(0.3, 1.0, 2) / cell_m).astype(int)
        x, y = rng.integers(0, n, 2)
        out[x : x + width, y : y + depth] = rng.uniform(-height, height)
    return _keep_middle(out, cell_m)


def gaps(n: int, cell_m: float, difficulty: float, rng: np.random.Generator) -> FloatArray:
    """Two square ditches around the middle, 0.1 to 0.4 m wide and 5 to 50 cm deep."""
    width = 0.1 + 0.3 * difficulty
    r = _outward(n, cell_m)
    inside = [(r > start) & (r <= start + width + 1e-9) for start in (0.8, 1.8)]
    return np.where(inside[0] | inside[1], -_depth(difficulty), 0.0)


def stones(n: int, cell_m: float, difficulty: float, rng: np.random.Generator) -> FloatArray:
    """Stepping stones of 0.6 to 0.3 m, 0.1 to 0.2 m apart and 5 to 50 cm high, of slightly different height."""
    stone = max(1, round((0.6 - 0.3 * difficulty) / cell_m))
    gap = max(1, round((0.1 + 0.1 * difficulty) / cell_m))
    place = np.arange(n) % (stone + gap) < stone
    count = -(-n // (stone + gap))
    lift = np.repeat(rng.uniform(-0.02, 0.02, (count, count)) * difficulty, stone + gap, axis=0)
    lift = np.repeat(lift, stone + gap, axis=1)[:n, :n]
    return _keep_middle(np.where(place[:, None] & place[None, :], lift, -_depth(difficulty)), cell_m)


KINDS: dict[str, Patch] = {
    "flat": flat,
    "noise": noise,
    "slope_up": slope_up,
    "slope_down": slope_down,
    "stairs_up": stairs_up,
    "stairs_down": stairs_down,
    "obstacles": obstacles,
    "gaps": gaps,
    "stones": stones,
}


def _depth(difficulty: float) -> float:
    """Depth of gaps in metres: shallow at first, so that a foot that misses can be lifted out again."""
    return 0.05 + 0.45 * difficulty


def _outward(n: int, cell_m: float) -> FloatArray:
    away = np.abs(np.arange(n) - 0.5 * (n - 1)) * cell_m
    return np.maximum(away[:, None], away[None, :])


def _keep_middle(heights: FloatArray, cell_m: float) -> FloatArray:
    return np.where(_outward(len(heights), cell_m) <= _PLATFORM_M, 0.0, heights)
