"""A page in the browser that shows a model in three dimensions: the live view, a robot as its sensors say, a motion."""

from __future__ import annotations

import math
from contextlib import redirect_stdout
from io import StringIO

import mujoco
import numpy as np
import viser
from mjviser import ViserMujocoScene

from trueup.core.arrays import FloatArray
from trueup.view.camera import CameraCfg, MotionFrames, TrackingCamera

_PER_FRAME = np.array([0.25, 0.25, 0.05])  # share of the way made up in a frame: the floor must not bob with every step
_JUMP_M = 1.0  # a new episode elsewhere, not a step
_ROOM = 1.6  # times as far as a film's camera: the panel covers a part of the page


class ModelPage:
    """A page at `url` that shows `model`; `server` takes controls. Call `look` after them, then `draw`."""

    def __init__(self, model: mujoco.MjModel, *, host: str, port: int, label: str = "trueup") -> None:
        with redirect_stdout(StringIO()):  # the library prints a banner of its own
            self.server = viser.ViserServer(host=host, port=port, label=label, verbose=False)
        self.url = f"http://{host}:{self.server.get_port()}"
        self.model, self.data = model, mujoco.MjData(model)
        self._scene = ViserMujocoScene(self.server, model, num_envs=1)
        self._scene.camera_tracking_enabled = False  # `Follow` does it, without the robot's bobbing

    def look(self, qpos: FloatArray, body: int | None, camera: CameraCfg) -> None:
        """Aim at the model in positions (nq,); `body` is the one to follow, None where the robot stays in its place."""
        self.follow = Follow(self.server, self.model, qpos, body, camera)

    def draw(self, qpos: FloatArray) -> None:
        """Show positions (nq,)."""
        self.data.qpos[:] = qpos
        mujoco.mj_kinematics(self.model, self.data)
        shift = self.follow.shift(self.data)
        self.data.xpos += shift
        with self.server.atomic():
            self._scene.update_from_mjdata(self.data)
            self._scene.fixed_bodies_frame.position = shift
        self.server.flush()

    def close(self) -> None:
        """End the server."""
        with redirect_stdout(StringIO()):
            self.server.stop()


class Follow:
    """Point of view of the page: starts near the robot and keeps a walking one in the middle.

    The scene moves under a camera that belongs to the user: a camera set by the server would fight with the mouse.
    `body` is the one to follow, None where the robot stays in its place.
    """

    def __init__(
        self, server: viser.ViserServer, model: mujoco.MjModel, qpos: FloatArray, body: int | None, camera: CameraCfg
    ) -> None:
        self._body, self._centre = body, np.zeros(3)
        motion = MotionFrames(model, qpos[None], 1.0, 1.0)
        if body is not None:
            self._centre = motion.place(0).xpos[body].copy()
        self._aim(server, model, TrackingCamera(motion, camera, aspect=1.0, fps=1.0).at(0))
        self._box: viser.GuiCheckboxHandle | None = None
        if body is not None:
            self._box = server.gui.add_checkbox("Follow the robot", initial_value=True)

    def shift(self, data: mujoco.MjData) -> FloatArray:
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
