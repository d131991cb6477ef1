"""Interaction mesh: who is beside whom, kept by Laplacian coordinates, as a task for inverse kinematics.

Key points of the body, corners of things and points of the ground are joined by a Delaunay mesh of the source in every
row. A point's Laplacian coordinate is its place minus the mean of its neighbours, weighted by 1/distance^2: what is
near stays near and what touches keeps touching, although limbs are shorter (interaction mesh, Ho et al. 2010;
OmniRetarget, arXiv 2509.26633).

    minimise  sum_i w |L_i(q) - L_i(source)|^2,   L = p_i - weighted mean of p_j over the neighbours j
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import mujoco
import numpy as np
from numpy.typing import NDArray

from trueup.core.arrays import FloatArray
from trueup.motion.retarget.points import KeyPoints, Thing
from trueup.motion.rotations import rotate

if TYPE_CHECKING:
    from mink import Configuration

_GROUND_M = 0.35  # between points of the ground around the pelvis
_NEAREST_M = 0.02
_CORNERS = np.array(list(itertools.product((-1.0, 0.0, 1.0), repeat=3)))


def laplacian(places: FloatArray) -> FloatArray:
    """Matrix (n, n) that takes points to Laplacian coordinates, by the Delaunay mesh of the points (n, 3)."""
    from scipy.spatial import Delaunay, QhullError

    n = len(places)
    beside = np.zeros((n, n), bool)
    try:
        # the joggle keeps coplanar points of the ground in the mesh
        cells = Delaunay(places, qhull_options="QJ Pp").simplices
    except QhullError:  # all in one plane
        cells = np.zeros((0, 4), np.int32)
    for a, b in itertools.combinations(range(4), 2):
        beside[cells[:, a], cells[:, b]] = beside[cells[:, b], cells[:, a]] = True
    far = np.linalg.norm(places[:, None] - places, axis=2)
    weight = np.where(beside, 1.0 / np.maximum(far, _NEAREST_M) ** 2, 0.0)
    out: FloatArray = np.eye(n) - weight / np.maximum(weight.sum(axis=1, keepdims=True), 1e-12)
    return out


def around(points: KeyPoints, row: int) -> FloatArray:
    """Points of things and of the ground in a row, (m, 3)."""
    middle = points.of("pelvis")[row]
    grid = np.array(list(itertools.product((-1, 0, 1), repeat=2)), float) * _GROUND_M
    ground = np.concatenate([middle[:2] + grid, np.zeros((len(grid), 1))], axis=1)
    return np.concatenate([ground, *(_surface(one, row) for one in points.things)])


def _surface(one: Thing, row: int) -> FloatArray:
    """Corners, middles of edges and of faces of a box, (26, 3)."""
    local = np.delete(_CORNERS, len(_CORNERS) // 2, axis=0) * one.size
    return one.pos[row] + rotate(np.broadcast_to(one.quat[row], (len(local), 4)), local)


class InteractionTask:
    """A task in mink's form: rows of the mesh that concern the body; `bodies` by number carry its points."""

    def __init__(self, model: mujoco.MjModel, bodies: list[int], weight: float) -> None:
        self._model, self._bodies, self._weight = model, bodies, weight
        self._wanted: FloatArray = np.zeros((0, 3))
        self._share: FloatArray = np.zeros((0, len(bodies)))
        self._fixed: FloatArray = np.zeros((0, 3))

    def set_target(self, source: FloatArray, others: FloatArray) -> None:
        """Body points of the source (n, 3), in the order of `bodies`, and what is around them (m, 3)."""
        whole, n = np.concatenate([source, others]), len(source)
        matrix = laplacian(whole)
        rows = np.flatnonzero(np.abs(matrix[:, :n]).sum(axis=1) > 0)
        self._wanted = matrix[rows] @ whole
        self._share, self._fixed = matrix[rows, :n], matrix[rows, n:] @ others

    def compute_qp_residual(self, configuration: Configuration) -> tuple[FloatArray, FloatArray, float]:
        """Weighted Jacobian, weighted error to be made up for, and no damping."""
        data, nv = configuration.data, self._model.nv
        places = data.xpos[self._bodies]
        gap = self._share @ places + self._fixed - self._wanted
        jacobian: NDArray[np.float64] = np.empty((len(self._bodies), 3, nv))
        for k, body in enumerate(self._bodies):
            mujoco.mj_jacBody(self._model, data, jacobian[k], None, body)
        moved = np.einsum("ij,jkv->ikv", self._share, jacobian).reshape(-1, nv)
        return self._weight * moved, -self._weight * gap.ravel(), 0.0
