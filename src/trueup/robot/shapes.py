"""Sizes of the engine's shapes in the world: how low they reach and what box holds them."""

from __future__ import annotations

import mujoco
import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
_TYPE = mujoco.mjtGeom


def collision_geoms(model: mujoco.MjModel) -> list[int]:
    """Shapes that can touch something and move or belong to a body; all bodies' shapes if none can."""
    bodies = [geom for geom in range(model.ngeom) if model.geom_bodyid[geom] != 0]
    solid = [geom for geom in bodies if model.geom_contype[geom] or model.geom_conaffinity[geom]]
    return solid or bodies


def geom_box(model: mujoco.MjModel, data: mujoco.MjData, geom: int) -> tuple[FloatArray, FloatArray]:
    """Return the lowest and highest corner (3,) of the world-aligned box around a shape.

    Exact for spheres, capsules, cylinders, boxes, ellipsoids and meshes; planes and fields count as points.
    """
    centre: FloatArray = data.geom_xpos[geom].copy()
    axes: FloatArray = data.geom_xmat[geom].reshape(3, 3)
    size: FloatArray = model.geom_size[geom]
    kind = model.geom_type[geom]
    if kind == _TYPE.mjGEOM_MESH:
        corners = _mesh_vertices(model, geom) @ axes.T + centre
        return corners.min(axis=0), corners.max(axis=0)
    if kind == _TYPE.mjGEOM_SPHERE:
        half = np.full(3, size[0])
    elif kind == _TYPE.mjGEOM_CAPSULE:
        half = np.abs(axes[:, 2]) * size[1] + size[0]
    elif kind == _TYPE.mjGEOM_CYLINDER:
        half = np.abs(axes[:, 2]) * size[1] + size[0] * np.sqrt(np.clip(1.0 - axes[:, 2] ** 2, 0.0, 1.0))
    elif kind == _TYPE.mjGEOM_ELLIPSOID:
        half = np.sqrt(((axes * size) ** 2).sum(axis=1))
    elif kind == _TYPE.mjGEOM_BOX:
        half = np.abs(axes) @ size
    else:
        half = np.zeros(3)
    return centre - half, centre + half


def lowest_point(model: mujoco.MjModel, data: mujoco.MjData, geom: int) -> float:
    """Height of the lowest point of a shape (m)."""
    return float(geom_box(model, data, geom)[0][2])


def lowest_place(model: mujoco.MjModel, data: mujoco.MjData, geom: int) -> FloatArray:
    """The lowest point (3,) of a shape in the world; planes and fields count as points."""
    centre: FloatArray = data.geom_xpos[geom]
    axes: FloatArray = data.geom_xmat[geom].reshape(3, 3)
    down, size, kind = -axes[2], model.geom_size[geom], model.geom_type[geom]  # down in the shape's own frame
    if kind == _TYPE.mjGEOM_MESH:
        vertices = _mesh_vertices(model, geom)
        return centre + axes @ vertices[np.argmax(vertices @ down)]
    if kind == _TYPE.mjGEOM_SPHERE:
        place = size[0] * down
    elif kind == _TYPE.mjGEOM_CAPSULE:
        place = size[0] * down + np.array([0.0, 0.0, size[1] * np.sign(down[2])])
    elif kind == _TYPE.mjGEOM_CYLINDER:
        across = down[:2] / max(float(np.linalg.norm(down[:2])), 1e-9)
        place = np.array([*(size[0] * across), size[1] * np.sign(down[2])])
    elif kind == _TYPE.mjGEOM_ELLIPSOID:
        place = size**2 * down / np.linalg.norm(size * down)
    elif kind == _TYPE.mjGEOM_BOX:
        place = size * np.sign(np.where(np.abs(down) > 1e-6, down, 0.0))
    else:
        place = np.zeros(3)
    return centre + axes @ place


def _mesh_vertices(model: mujoco.MjModel, geom: int) -> FloatArray:
    mesh = model.geom_dataid[geom]
    start, count = model.mesh_vertadr[mesh], model.mesh_vertnum[mesh]
    vertices: FloatArray = model.mesh_vert[start : start + count].astype(np.float64)
    return vertices


def inertia_diagonal(model: mujoco.MjModel, data: mujoco.MjData) -> FloatArray:
    """Return the diagonal (nv,) of the joint-space inertia: what a joint feels with all others locked.

    `data` must be evaluated (mj_forward). In the engine's sparse rows the diagonal stands last.
    """
    diagonal: FloatArray = data.M[model.M_rowadr + model.M_rownnz - 1].copy()
    return diagonal
