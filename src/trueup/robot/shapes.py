"""Sizes of the engine's shapes in the world: how low they reach and what box holds them."""

from __future__ import annotations

import mujoco
import numpy as np
from numpy.typing import ArrayLike

from trueup.core.arrays import FloatArray

_TYPE = mujoco.mjtGeom


def collision_geoms(model: mujoco.MjModel) -> list[int]:
    """Shapes that can touch something and move or belong to a body; all bodies' shapes if none can."""
    bodies = [geom for geom in range(model.ngeom) if model.geom_bodyid[geom] != 0]
    solid = [geom for geom in bodies if model.geom_contype[geom] or model.geom_conaffinity[geom]]
    return solid or bodies


def farthest_point(model: mujoco.MjModel, data: mujoco.MjData, geom: int, direction: ArrayLike) -> FloatArray:
    """The point (3,) of a shape that lies farthest in a direction (3,) of length one, in the world.

    Exact for spheres, capsules, cylinders, boxes, ellipsoids and meshes; planes and fields count as points.
    """
    axes: FloatArray = data.geom_xmat[geom].reshape(3, 3)
    along, size, kind = np.asarray(direction) @ axes, model.geom_size[geom], model.geom_type[geom]
    if kind == _TYPE.mjGEOM_MESH:
        mesh = model.geom_dataid[geom]
        vertices = model.mesh_vert[model.mesh_vertadr[mesh] :][: model.mesh_vertnum[mesh]].astype(np.float64)
        place = vertices[np.argmax(vertices @ along)]
    elif kind == _TYPE.mjGEOM_SPHERE:
        place = size[0] * along
    elif kind == _TYPE.mjGEOM_CAPSULE:
        place = size[0] * along + np.array([0.0, 0.0, size[1] * np.sign(along[2])])
    elif kind == _TYPE.mjGEOM_CYLINDER:
        across = along[:2] / max(float(np.linalg.norm(along[:2])), 1e-9)
        place = np.array([*(size[0] * across), size[1] * np.sign(along[2])])
    elif kind == _TYPE.mjGEOM_ELLIPSOID:
        place = size**2 * along / np.linalg.norm(size * along)
    elif kind == _TYPE.mjGEOM_BOX:
        place = size * np.sign(np.where(np.abs(along) > 1e-6, along, 0.0))  # the middle of a face that lies flat
    else:
        place = np.zeros(3)
    found: FloatArray = data.geom_xpos[geom] + axes @ place
    return found


def geom_box(model: mujoco.MjModel, data: mujoco.MjData, geom: int) -> tuple[FloatArray, FloatArray]:
    """Return the lowest and highest corner (3,) of the world-aligned box around a shape."""
    low, high = (
        np.array([farthest_point(model, data, geom, sign * axis)[k] for k, axis in enumerate(np.eye(3))])
        for sign in (-1.0, 1.0)
    )
    return low, high


def lowest_place(model: mujoco.MjModel, data: mujoco.MjData, geom: int) -> FloatArray:
    """The lowest point (3,) of a shape in the world."""
    return farthest_point(model, data, geom, (0.0, 0.0, -1.0))


def lowest_point(model: mujoco.MjModel, data: mujoco.MjData, geom: int) -> float:
    """Height of the lowest point of a shape (m)."""
    return float(lowest_place(model, data, geom)[2])


def inertia_diagonal(model: mujoco.MjModel, data: mujoco.MjData) -> FloatArray:
    """Return the diagonal (nv,) of the joint-space inertia: what a joint feels with all others locked.

    `data` must be evaluated (mj_forward). In the engine's sparse rows the diagonal stands last.
    """
    diagonal: FloatArray = data.M[model.M_rowadr + model.M_rownnz - 1].copy()
    return diagonal
