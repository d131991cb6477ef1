"""Point of view of the live page: starts near the robot and keeps a walking one in the middle.

The scene moves under a camera that belongs to the user: a camera set by the server would fight with the mouse.
"""

from __future__ import annotations

import math

import mujoco
import numpy as np
import viser
from numpy.typing import NDArray

from trueup.view.camera import CameraCfg, MotionFrames, Tracking

Floats = NDArray[np.float64]
_PER_FRAME = np.array([0.25, 0.25, 0.05])  # share of the way made up in a frame: the floor must not bob with every step
_JUMP_M = 1.0  # a new episode elsewhere, not a step
_ROOM = 1.6  # times as far as a film's camera: the panel covers a part of the page


class Follow:
    """Where the scene is shifted to; `body` is the one to follow, None where the robot stays in its place."""

    def __init__(
        self, server: viser.ViserServer, model: mujoco.MjModel, qpos: Floats, body: int | None, camera: CameraCfg
    ) -> None:
        self._body, self._centre = body, np.zeros(3)
        motion = MotionFrames(model, qpos[None], 1.0, 1.0)
        if body is not None:
            self._centre = motion.place(0).xpos[body].copy()
        self._aim(server, model, Tracking(motion, camera, aspect=1.0, fps=1.0).at(0))
        self._box: viser.GuiCheckboxHandle | None = None
        if body is not None:
            self._box = server.gui.add_checkbox("Follow the robot", initial_value=True)

    def shift(self, data: mujoco.MjData) -> Floats:
        """What to add to every position (3,) in this frame; the view stays where it is while following is off."""
        if self._box is not None and self._box.value:
            away = data.xpos[self._body] - self._centre
            if np.isfinite(away).all():
                self._centre += away if np.linalg.norm(away) > _JUMP_M else _PER_FRAME * away
        return -self._centre

    def _aim(self, server: viser.ViserServer, model: mujoco.MjModel, view: mujoco.MjvCamera) -> None:
        azimuth, elevation = math.radians(view.azimuth), math.radians(view.elevation)
        ahead = np.array(
            [math.cos(elevation) * math.cos(azimuth), math.cos(elevation) * math.sin(azimuth), math.sin(elevation)]
        )
        target = view.lookat - self._centre
        if self._body is not None:
            target[:2] = 0.0  # it will turn
        server.initial_camera.fov = math.radians(model.vis.global_.fovy)
        server.initial_camera.position = target - _ROOM * view.distance * ahead
        server.initial_camera.look_at = target
