"""A camera that keeps a moving robot in view: it follows one body, smoothly, and never turns."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import mujoco
import numpy as np
from numpy.typing import NDArray

from trueup.core.errors import TrueupError, did_you_mean

Floats = NDArray[np.float64]
_MARGIN = 1.05
_SMOOTH_S = 0.5  # over which the motion of the followed body is averaged


@dataclass(frozen=True, kw_only=True)
class CameraCfg:
    """Where the camera stands.

    azimuth, elevation  direction of view in degrees; azimuth 180 looks the robot in the face
    distance            metres from the robot; None: just far enough to see all of it
    scene_camera        name of a camera of the scene, which is used as it is
    """

    azimuth: float = 140.0
    elevation: float = -18.0
    distance: float | None = None
    scene_camera: str | None = None


def turned(camera: CameraCfg, quat: Floats) -> CameraCfg:
    """The camera turned with a robot: its azimuth counts from where a base of orientation w x y z (4,) faces."""
    w, x, y, z = quat
    yaw = math.degrees(math.atan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z)))
    return replace(camera, azimuth=camera.azimuth + yaw)


class MotionFrames:
    """A motion qpos (T, nq) seen at the times of `frames` pictures, one every `1 / fps` seconds."""

    def __init__(self, model: mujoco.MjModel, qpos: Floats, sample_hz: float, fps: float) -> None:
        self.model, self.data = model, mujoco.MjData(model)
        self.frames = max(1, round(len(qpos) / sample_hz * fps))
        self._qpos, self._velocity = qpos, np.zeros(model.nv)
        self._samples_per_frame = sample_hz / fps

    def place(self, frame: int) -> mujoco.MjData:
        """Pose the robot as it is at `frame`; between samples it moves along its joints (quaternions too)."""
        at = min(frame * self._samples_per_frame, len(self._qpos) - 1.0)
        k = int(at)
        self.data.qpos[:] = self._qpos[k]
        if at > k:
            mujoco.mj_differentiatePos(self.model, self._velocity, 1.0, self._qpos[k], self._qpos[k + 1])
            mujoco.mj_integratePos(self.model, self.data.qpos, self._velocity, at - k)
        mujoco.mj_kinematics(self.model, self.data)
        mujoco.mj_comPos(self.model, self.data)  # lights may follow the centre of mass
        mujoco.mj_camlight(self.model, self.data)
        return self.data


class TrackingCamera:
    """The camera of every frame of a motion; `at(frame)` returns it. It follows the heaviest tree of bodies."""

    def __init__(self, motion: MotionFrames, cfg: CameraCfg, *, aspect: float, fps: float) -> None:
        self._camera = mujoco.MjvCamera()
        if cfg.scene_camera is not None:
            self._camera.type = mujoco.mjtCamera.mjCAMERA_FIXED
            names = [motion.model.camera(k).name for k in range(motion.model.ncam)]
            if cfg.scene_camera not in names:
                hint = did_you_mean(cfg.scene_camera, names)
                raise TrueupError(f"the scene has no camera {cfg.scene_camera!r}{hint}")
            self._camera.fixedcamid = names.index(cfg.scene_camera)
        self._path, radius = _survey(motion, round(_SMOOTH_S * fps))
        half_view = math.radians(motion.model.vis.global_.fovy) / 2
        half_view = min(half_view, math.atan(math.tan(half_view) * aspect))  # the narrower side decides
        self._camera.azimuth, self._camera.elevation = cfg.azimuth, cfg.elevation
        self._camera.distance = cfg.distance or _MARGIN * radius / math.sin(half_view)

    def at(self, frame: int) -> mujoco.MjvCamera:
        self._camera.lookat[:] = self._path[frame]
        return self._camera


def _survey(motion: MotionFrames, window: int) -> tuple[Floats, float]:
    """Return where to look in each frame (F, 3) and the radius around it that the robot needs."""
    model = motion.model
    tops = np.flatnonzero(model.body_parentid == 0)[1:]  # the world is its own parent
    body = int(tops[np.argmax(model.body_subtreemass[tops])]) if len(tops) else 0
    shapes = np.flatnonzero((model.geom_bodyid > 0) & (model.geom_type != mujoco.mjtGeom.mjGEOM_PLANE))
    size = model.geom_rbound[shapes]
    followed = np.empty((motion.frames, 3))
    position = np.empty((motion.frames, len(shapes), 3))
    for frame in range(motion.frames):
        data = motion.place(frame)
        followed[frame], position[frame] = data.xpos[body], data.geom_xpos[shapes]
    if not len(shapes):
        return _smooth(followed, window), float(model.stat.extent)
    low, high = (position - size[:, None]).min(axis=1), (position + size[:, None]).max(axis=1)
    path = _smooth(followed, window) + np.median((low + high) / 2 - followed, axis=0)
    reach = (np.linalg.norm(position - path[:, None], axis=2) + size).max(axis=1)
    # a robot that blows up must not shrink the rest of the film to a dot
    return path, float(min(reach.max(), 2.5 * np.median(reach)))


def _smooth(path: Floats, window: int) -> Floats:
    """Average over `window` frames to either side, without lag; ends are held."""
    if window < 1 or len(path) < 2:
        return path
    weight = np.hanning(2 * window + 3)[1:-1]
    held = np.pad(path, ((window, window), (0, 0)), mode="edge")
    return np.stack([np.convolve(held[:, k], weight / weight.sum(), "valid") for k in range(path.shape[1])], axis=1)
