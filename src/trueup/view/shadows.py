"""Shadows on flat ground, drawn as shapes: every shape of the scene once more, projected onto the floor.

A shadow map costs the software renderer more than half of a frame, covers a bounded area, and speckles the lit floor
with dark dots where it ends. A projection has neither edge nor resolution: a foot meets its shadow exactly where it
touches the ground. On terrain, which a projection does not know, the shadow map stays.
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
        self._project = np.eye(3) - np.outer(direction, [0.0, 0.0, 1.0]) / direction[2]
        self._project[2] = [0.0, 0.0, _FLAT]

    def add(self, scene: mujoco.MjvScene) -> None:
        """Append one flat shape for each that stands above the floor, while the scene has room."""
        for k in range(scene.ngeom):
            shape = scene.geoms[k]
            if shape.type in _NOT_CAST or shape.rgba[3] < _OPAQUE or shape.pos[2] < self._height:
                continue
            if scene.ngeom >= scene.maxgeom:
                return
            self._append(scene, shape)

    def _append(self, scene: mujoco.MjvScene, shape: mujoco.MjvGeom) -> None:
        flat = scene.geoms[scene.ngeom]
        above = np.array([shape.pos[0], shape.pos[1], shape.pos[2] - self._height], np.float64)
        place = self._project @ above + [0.0, 0.0, self._height + _LIFT_M]
        turn = (self._project @ np.asarray(shape.mat, np.float64)).ravel()
        mujoco.mjv_initGeom(flat, shape.type, np.ones(3), place, turn, _SHADE)
        flat.size[:], flat.dataid = shape.size, shape.dataid
        flat.category = mujoco.mjtCatBit.mjCAT_DECOR
        flat.specular = flat.shininess = flat.reflectance = 0.0
        scene.ngeom += 1
