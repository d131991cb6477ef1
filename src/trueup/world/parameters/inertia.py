"""Inertia tensors: six numbers in the body frame against MuJoCo's principal moments and orientation."""

from __future__ import annotations

import mujoco
import numpy as np

from trueup.core.arrays import FloatArray
from trueup.core.errors import TrueupError
from trueup.policy.chain import matrices

_FULL = np.array([[0, 3, 4], [3, 1, 5], [4, 5, 2]])  # where each entry of the tensor is among the six


def matrix(six: FloatArray) -> FloatArray:
    """(..., 6) xx yy zz xy xz yz -> (..., 3, 3)."""
    return six[..., _FULL]


def check_inertia(six: FloatArray, names: tuple[str, ...]) -> None:
    """Refuse impossible inertias: a principal moment that is not positive, or larger than the sum of the other two."""
    moments = np.linalg.eigvalsh(matrix(six))
    bad = (moments[..., 0] <= 0) | (moments[..., 2] > (moments[..., 0] + moments[..., 1]) * (1 + 1e-9))
    if bad.any():
        row, body = np.argwhere(bad)[0]
        raise TrueupError(
            f"inertia of body {names[body]!r} in simulation {row} is not physical: principal moments "
            f"{np.array2string(moments[row, body], precision=4)} (each positive, at most the sum of the others)"
        )


def decompose(six: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(..., 6) -> principal moments (..., 3), largest first, and orientation quaternions (..., 4) w x y z.

    One call into the engine a body: for the few rows of a reset that is many times faster than NumPy's eigenvectors.
    """
    full = matrix(six).reshape(-1, 9)
    moments, quats, axes = np.empty((len(full), 3)), np.empty((len(full), 4)), np.empty(9)
    for moment, quat, values in zip(moments, quats, full, strict=True):
        mujoco.mju_eig3(moment, axes, quat, values)
    return moments.reshape(*six.shape[:-1], 3), quats.reshape(*six.shape[:-1], 4)


def compose(moments: FloatArray, quat: FloatArray) -> FloatArray:
    """Principal moments (..., 3) and quaternions (..., 4) -> (..., 6) in the body frame."""
    axes = matrices(quat.reshape(-1, 4)).reshape(*quat.shape[:-1], 3, 3)
    return _six((axes * moments[..., None, :]) @ np.swapaxes(axes, -1, -2))


def _six(full: FloatArray) -> FloatArray:
    """(..., 3, 3) -> (..., 6)."""
    return full[..., [0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]


def second_moment(six: FloatArray) -> FloatArray:
    """Sigma = tr(I)/2 1 - I, the mass-weighted second moment about the centre of mass, (..., 3, 3).

    A body is possible exactly when Sigma is positive definite: that is the triangle inequality of its moments, and
    with a positive mass the 4x4 pseudo-inertia [[Sigma + m c c^T, m c], [m c^T, m]] is then positive definite too
    (Wensing, Kim, Slotine, arXiv 1701.04395).
    """
    full = matrix(six)
    half = 0.5 * np.trace(full, axis1=-2, axis2=-1)[..., None, None]
    return half * np.eye(3) - full


def from_shape(shape: FloatArray, nominal: FloatArray) -> FloatArray:
    """Inertia (..., 6) whose second moment is (L0 D)(L0 D)^T, L0 the Cholesky factor of `nominal`'s (..., 6).

    D is lower triangular with exp(log xx, log yy, log zz) on its diagonal and xy, xz, yz below (Rucker and Wensing,
    log-Cholesky parametrisation): zero gives `nominal`, and every value gives a possible body.
    """
    root = _root(nominal) @ _triangle(shape)
    sigma = root @ np.swapaxes(root, -1, -2)
    return _six(np.trace(sigma, axis1=-2, axis2=-1)[..., None, None] * np.eye(3) - sigma)


def to_shape(six: FloatArray, nominal: FloatArray) -> FloatArray:
    """The inverse of `from_shape`."""
    factor = np.linalg.solve(_root(nominal), _root(six))
    logs = np.log(np.diagonal(factor, axis1=-2, axis2=-1))
    return np.concatenate([logs, factor[..., [1, 2, 2], [0, 0, 1]]], -1)


def _root(six: FloatArray) -> FloatArray:
    """Cholesky factor of the second moment; a flat or thin body (a moment of zero) is given a little thickness."""
    values, axes = np.linalg.eigh(second_moment(six))
    thick = np.maximum(values, 1e-6 * values[..., -1:])
    root: FloatArray = np.linalg.cholesky((axes * thick[..., None, :]) @ np.swapaxes(axes, -1, -2))
    return root


def _triangle(shape: FloatArray) -> FloatArray:
    out = np.zeros((*shape.shape[:-1], 3, 3))
    out[..., range(3), range(3)] = np.exp(shape[..., :3])
    out[..., [1, 2, 2], [0, 0, 1]] = shape[..., 3:]
    return out
