"""Shadows on flat ground, drawn as shapes: every shape of the scene once more, projected onto the floor.

A shadow map costs the software renderer more than half of a frame, covers a bounded area, and speckles the lit floor
with dark dots where it ends. A projection has neither edge nor resolution: a foot meets its shadow exactly where it
touches the ground, and of a shape that sinks into it only the part above casts one. On terrain, which a projection does
not know, the shadow map stays.
"""

from __future__ import annotations

import mujoco
import numpy as np
from numpy.typing import NDArray

from trueup.robot.model import FLOOR

Floats = NDArray[np.float64]
_SHADE = np.array([0.30, 0.32, 0.36, 1.0], np.float32)
_LIFT_M = 0.002  # above the floor, or the two would flicker
_FLAT = 1e-3  # of a shape's height is left: an exactly flat one has no normals
_OPAQUE = 0.5
_NOT_CAST = (int(mujoco.mjtGeom.mjGEOM_PLANE), int(mujoco.mjtGeom.mjGEOM_HFIELD), int(mujoco.mjtGeom.mjGEOM_SKIN))


def flat_floor(model: mujoco.MjModel) -> float | None:
    """Height of a model's level floor (m), or None where there is terrain or no floor to draw on."""
    floor = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_GEOM, FLOOR)
    if floor < 0 or model.geom_type[floor] != mujoco.mjtGeom.mjGEOM_PLANE or model.nhfield:
        return None
    return float(model.geom_pos[floor, 2])


class FloorShadows:
    """Adds the shadows to a scene after each update; `direction` is the light's, pointing down."""

    def __init__(self, height: float, direction: Floats) -> None:
        self._height = height
        self._slope = -direction[:2] / direction[2]  # how far a shadow moves for each metre of height

    def add(self, scene: mujoco.MjvScene) -> None:
        """Append one flat shape for each that rises above the floor, while the scene has room."""
        for k in range(scene.ngeom):
            shape = scene.geoms[k]
            if shape.type in _NOT_CAST or shape.rgba[3] < _OPAQUE:
                continue
            if shape.pos[2] + half_height(shape) < self._height:
                continue
            if scene.ngeom >= scene.maxgeom:
                return
            self._append(scene, shape)

    def _append(self, scene: mujoco.MjvScene, shape: mujoco.MjvGeom) -> None:
        """Project a shape; one that reaches below the floor is first compressed to its height above it.

        Its buried part would be projected against the light, to the wrong side of a foot.
        """
        flat = scene.geoms[scene.ngeom]
        half, height = half_height(shape), float(shape.pos[2]) - self._height
        is_buried = half > max(height, 0.0) or height < 0.0
        above = (height + half) / (2.0 * half) if is_buried else 1.0  # share of the shape
        project = np.eye(3)
        project[:2, 2], project[2, 2] = above * self._slope, _FLAT
        x, y = shape.pos[:2] + self._slope * (above * half if is_buried else height)
        place = np.array([x, y, self._height + _LIFT_M + _FLAT * max(height, 0.0)])
        turn = (project @ np.asarray(shape.mat, np.float64)).ravel()
        mujoco.mjv_initGeom(flat, shape.type, np.ones(3), place, turn, _SHADE)
        flat.size[:], flat.dataid = shape.size, shape.dataid
        flat.category = mujoco.mjtCatBit.mjCAT_DECOR
        flat.specular = flat.shininess = flat.reflectance = 0.0
        scene.ngeom += 1


def half_height(shape: mujoco.MjvGeom) -> float:
    """Half of the vertical extent of a drawn shape, m; 0 for meshes, whose vertices are not in the scene."""
    upward, size = np.abs(np.asarray(shape.mat, np.float64)[2]), np.asarray(shape.size, np.float64)
    if shape.type == mujoco.mjtGeom.mjGEOM_BOX:
        return float(upward @ size)
    if shape.type in (mujoco.mjtGeom.mjGEOM_SPHERE, mujoco.mjtGeom.mjGEOM_ELLIPSOID):
        return float(np.linalg.norm(upward * size))
    if shape.type == mujoco.mjtGeom.mjGEOM_CAPSULE:
        return float(size[0] + upward[2] * size[2])
    if shape.type == mujoco.mjtGeom.mjGEOM_CYLINDER:
        return float(size[0] * np.sqrt(max(0.0, 1.0 - upward[2] ** 2)) + upward[2] * size[2])
    return 0.0
