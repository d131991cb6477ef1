"""Quaternions w x y z of any number of rows, in the precision they come in: product, rotation, differences."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from trueup.core.arrays import FloatArray

AnyFloat = TypeVar("AnyFloat", np.float32, np.float64)


def multiply(a: NDArray[AnyFloat], b: NDArray[AnyFloat]) -> NDArray[AnyFloat]:
    """Hamilton product of quaternions (..., 4)."""
    aw, ax, ay, az = (a[..., k] for k in range(4))
    bw, bx, by, bz = (b[..., k] for k in range(4))
    return np.stack(
        [
            aw * bw - ax * bx - ay * by - az * bz,
            aw * bx + ax * bw + ay * bz - az * by,
            aw * by - ax * bz + ay * bw + az * bx,
            aw * bz + ax * by - ay * bx + az * bw,
        ],
        axis=-1,
    )


def conjugate(q: NDArray[AnyFloat]) -> NDArray[AnyFloat]:
    """The inverse of unit quaternions (..., 4)."""
    return q * np.array([1, -1, -1, -1], q.dtype)


def rotate(q: NDArray[AnyFloat], v: NDArray[AnyFloat]) -> NDArray[AnyFloat]:
    """Vectors (..., 3) turned by quaternions (..., 4): v + w t + q x t with t = 2 q x v."""
    t = 2 * cross(q[..., 1:], v)
    return v + q[..., :1] * t + cross(q[..., 1:], t)


def cross(a: NDArray[AnyFloat], b: NDArray[AnyFloat]) -> NDArray[AnyFloat]:
    """Cross product (..., 3), without the checks that make NumPy's slow for few rows."""
    ax, ay, az = (a[..., k] for k in range(3))
    bx, by, bz = (b[..., k] for k in range(3))
    return np.stack([ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx], axis=-1)


def rotation_vector(q: NDArray[AnyFloat]) -> NDArray[AnyFloat]:
    """Axis times angle (..., 3) of unit quaternions, the shorter way round."""
    sign = np.where(q[..., :1] < 0, -1, 1).astype(q.dtype)
    sin = np.sqrt(np.sum(q[..., 1:] ** 2, axis=-1, keepdims=True))
    angle = 2 * np.arctan2(sin, np.abs(q[..., :1]))
    scale = np.where(sin > 1e-7, angle / np.maximum(sin, 1e-30), 2.0).astype(q.dtype)
    return sign * q[..., 1:] * scale


def angle_between(a: NDArray[AnyFloat], b: NDArray[AnyFloat]) -> NDArray[AnyFloat]:
    """Angle (...) between unit quaternions (..., 4), the shorter way round."""
    dots = np.abs(np.sum(a * b, axis=-1))
    return 2 * np.arccos(np.minimum(dots, dots.dtype.type(1.0)))


def about_axis(axis: NDArray[AnyFloat], angle: NDArray[AnyFloat]) -> NDArray[AnyFloat]:
    """Quaternions of turns by `angle` (...) about unit vectors `axis` (..., 3)."""
    half = 0.5 * angle[..., None]
    return np.concatenate([np.cos(half), np.sin(half) * axis], axis=-1)


def yaw_of(q: NDArray[AnyFloat]) -> NDArray[AnyFloat]:
    """Heading: angle of the x axis in the ground plane, (...)."""
    w, x, y, z = (q[..., k] for k in range(4))
    return np.arctan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))


def about_z(yaw: NDArray[AnyFloat]) -> NDArray[AnyFloat]:
    """Quaternions (..., 4) of headings."""
    zero = np.zeros_like(yaw)
    return np.stack([np.cos(0.5 * yaw), zero, zero, np.sin(0.5 * yaw)], axis=-1)


def continuous(q: FloatArray) -> FloatArray:
    """The same rotations (T, ..., 4) with signs that do not jump from row to row."""
    flip = np.sum(q[1:] * q[:-1], axis=-1) < 0
    sign = np.where(np.concatenate([np.zeros_like(flip[:1]), np.cumsum(flip, axis=0) % 2 == 1]), -1.0, 1.0)
    return q * sign[..., None]


def spin(q: FloatArray, rate_hz: float) -> FloatArray:
    """Angular velocity (T, ..., 3) in the world frame by central differences, rad/s."""
    before, after = np.concatenate([q[:1], q[:-1]]), np.concatenate([q[1:], q[-1:]])
    span = np.full(len(q), 2.0)
    span[[0, -1]] = 1.0
    turn = rotation_vector(multiply(after, conjugate(before)))
    return turn * (rate_hz / span).reshape(-1, *[1] * (q.ndim - 1))
