"""Drawing without a screen: what a scene looks like, and one picture of it. Films of motions are in `film`.

`visual_model` builds a scene with light, sky and floor (`dress`); `Painter` turns a state into pixels. Both
leave physics alone: nothing here has mass or touches anything.
"""

from __future__ import annotations

import copy
import dataclasses
import importlib
import os
import platform
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from trueup.core.errors import TrueupError
from trueup.robot.load import Robot
from trueup.robot.model import FLOOR, SHOWN, ModelCfg, add_floor, compile_spec
from trueup.view.shadows import FloorShadows, flat_floor
from trueup.world.scene.scene import Scene

Pixels = NDArray[np.uint8]
SAMPLES = 0  # per pixel: 4 smooth the edges at twice the time (software renderer)
SHADOW_SIZE, SHADOW_CLIP = 2048, 6.0  # on terrain; a map that ends in view leaves dark dots there
WIDTH, HEIGHT = 1280, 720
MAX_SIDE = 4096
_SHORTEST_BONE, _BONE = 0.02, (0.42, 0.45, 0.49, 1.0)
_SUN, _SUN_HEIGHT = "trueup_sun", 4.0
_OFF = {"disable", "disabled", "off", "false", "0"}
_ZENITH, _NADIR = (0.50, 0.66, 0.86), (1.0, 1.0, 1.0)
_HORIZON = tuple((a + b) / 2 for a, b in zip(_ZENITH, _NADIR, strict=True))  # where the gradient crosses eye level
_TILE, _TILE_OTHER, _LINE = (0.80, 0.82, 0.85), (0.73, 0.76, 0.80), (0.88, 0.90, 0.92)
_INSTALL = (
    "On Debian or Ubuntu: `sudo apt-get install libegl1 libgl1-mesa-dri` (no graphics card needed). "
    "MUJOCO_GL=egl, osmesa or glfw chooses one by hand; `trueup doctor` checks it"
)


def visual_model(scene: Scene | Robot, cfg: ModelCfg | None = None) -> mujoco.MjModel:
    """A scene made to be looked at; `cfg` must be the one of the simulation whose `qpos` is shown (base)."""
    scene = Scene.of(scene)
    spec = scene.build(dataclasses.replace(cfg or ModelCfg(), visual=True, floor=True))
    dress(spec)
    return compile_spec(spec, scene.robot)


def dress(spec: mujoco.MjSpec) -> None:
    """Add sky, soft light and a tiled floor to a model before it is compiled; its physics stays as it is."""
    _add_textures(spec)
    _add_lights(spec)
    if all(geom.name != FLOOR for geom in spec.geoms):
        add_floor(spec, solid=False)
    for floor in (geom for geom in spec.geoms if geom.name == FLOOR):
        floor.material = "trueup_floor"
        floor.rgba[:] = 1.0
    _add_bones(spec)
    spec.visual.rgba.haze[:] = [*_HORIZON, 1]
    spec.visual.map.haze = 0.4
    spec.visual.map.shadowclip = SHADOW_CLIP


def _add_textures(spec: mujoco.MjSpec) -> None:
    if not any(texture.type == mujoco.mjtTexture.mjTEXTURE_SKYBOX for texture in spec.textures):
        spec.add_texture(
            name="trueup_sky",
            type=mujoco.mjtTexture.mjTEXTURE_SKYBOX,
            builtin=mujoco.mjtBuiltin.mjBUILTIN_GRADIENT,
            rgb1=_ZENITH,
            rgb2=_NADIR,
            width=256,
            height=256 * 6,
        )
    spec.add_texture(
        name="trueup_tiles",
        type=mujoco.mjtTexture.mjTEXTURE_2D,
        builtin=mujoco.mjtBuiltin.mjBUILTIN_CHECKER,
        mark=mujoco.mjtMark.mjMARK_EDGE,
        rgb1=_TILE,
        rgb2=_TILE_OTHER,
        markrgb=_LINE,
        width=512,
        height=512,
    )
    floor = spec.add_material(name="trueup_floor", texrepeat=[1, 1], texuniform=True, reflectance=0.0, specular=0.1)
    floor.textures[mujoco.mjtTextureRole.mjTEXROLE_RGB] = "trueup_tiles"


def _add_lights(spec: mujoco.MjSpec) -> None:
    head = spec.visual.headlight
    head.ambient[:], head.diffuse[:], head.specular[:] = 0.42, 0.30, 0.05
    # the sun travels with the robot, as its shadow map covers a bounded area
    for body in spec.worldbody.bodies[:1]:
        body.add_light(
            name=_SUN,
            type=mujoco.mjtLightType.mjLIGHT_DIRECTIONAL,
            mode=mujoco.mjtCamLight.mjCAMLIGHT_TRACKCOM,
            pos=[0, 0, _SUN_HEIGHT],
            dir=[0, 0, -1],
            diffuse=[0.62, 0.60, 0.57],
            specular=[0.15, 0.15, 0.15],
            ambient=[0, 0, 0],
            castshadow=True,
        )


def _turn_sun(model: mujoco.MjModel, azimuth: float) -> NDArray[np.float64] | None:
    """Let the sun shine over the camera's left shoulder; returns where to, None without a sun."""
    sun = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_LIGHT, _SUN)
    if sun < 0:
        return None
    c, s = np.cos(np.radians(azimuth)), np.sin(np.radians(azimuth))
    lean = 0.15 * np.array([c, s]) + 0.35 * np.array([s, -c])  # ahead and to the right
    model.light_dir0[sun] = np.array([*lean, -1.0]) / np.hypot(1.0, np.linalg.norm(lean))
    model.light_poscom0[sun] = _SUN_HEIGHT * np.array([*-lean, 1.0])
    return np.array(model.light_dir0[sun], np.float64)


def _add_bones(spec: mujoco.MjSpec) -> None:
    """Join the shapes of mesh-free robots by thin rods, so that links do not hang in the air."""
    look = {"type": mujoco.mjtGeom.mjGEOM_CAPSULE, "rgba": _BONE, "group": SHOWN}
    for top in spec.worldbody.bodies:
        if any(geom.type == mujoco.mjtGeom.mjGEOM_MESH for geom in top.find_all("geom")):
            continue
        for body in (top, *top.find_all("body")):
            for end in [part.pos for part in (*body.bodies, *body.geoms)]:
                length = float(np.linalg.norm(end))
                if np.isfinite(length) and length > _SHORTEST_BONE:
                    rod = {"fromto": [0, 0, 0, *end], "size": [0.05 * length, 0, 0]}
                    body.add_geom(**look, **rod, contype=0, conaffinity=0, mass=0)


class Painter:
    """Draws states of one model into arrays (height, width, 3), without a screen. Close it, or use `with`.

    `azimuth` is the direction the camera will look in (degrees): the light comes from behind it.
    """

    def __init__(
        self, model: mujoco.MjModel, width: int = WIDTH, height: int = HEIGHT, *, azimuth: float = 140.0
    ) -> None:
        if not (16 <= width <= MAX_SIDE and 16 <= height <= MAX_SIDE):
            raise TrueupError(f"a picture is 16 to {MAX_SIDE} pixels wide and high, asked for {width} x {height}")
        self.model = copy.copy(model)  # the size of the buffer is a field of the model: the caller's stays
        self.model.vis.global_.offwidth, self.model.vis.global_.offheight = width, height
        self.model.vis.quality.offsamples = SAMPLES
        self.model.vis.quality.shadowsize = SHADOW_SIZE
        sunshine, floor = _turn_sun(self.model, azimuth), flat_floor(self.model)
        self._rect = mujoco.MjrRect(0, 0, width, height)
        self._scene = mujoco.MjvScene(self.model, maxgeom=max(1000, 4 * model.ngeom))
        self._shadows = None if sunshine is None or floor is None else FloorShadows(floor, sunshine)
        self._scene.flags[mujoco.mjtRndFlag.mjRND_SHADOW] = self._shadows is None
        self._option = mujoco.MjvOption()
        self._option.sitegroup[:] = 0
        self._pixels: Pixels = np.empty((height, width, 3), np.uint8)
        self._gl = _open_gl(width, height)
        try:
            self._context = mujoco.MjrContext(self.model, mujoco.mjtFontScale.mjFONTSCALE_100)
            mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN, self._context)
        except (mujoco.FatalError, RuntimeError) as error:
            self._gl.free()
            raise TrueupError(f"OpenGL started but cannot draw: {error}. {_INSTALL}") from None

    def paint(self, data: mujoco.MjData, camera: mujoco.MjvCamera) -> Pixels:
        """Return the picture of `data`; the array is used again by the next call."""
        mujoco.mjv_updateScene(self.model, data, self._option, None, camera, mujoco.mjtCatBit.mjCAT_ALL, self._scene)
        if self._shadows is not None:
            self._shadows.add(self._scene)
        mujoco.mjr_render(self._rect, self._scene, self._context)
        mujoco.mjr_readPixels(self._pixels, None, self._rect, self._context)
        return self._pixels[::-1]  # OpenGL counts rows from below

    def close(self) -> None:
        """Give the graphics memory back; an unclosed context complains when Python exits."""
        self._context.free()
        self._gl.free()

    def __enter__(self) -> Painter:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def backends() -> tuple[str, ...]:
    """Names of the OpenGL back ends to try here, best first; MUJOCO_GL overrules."""
    requested = os.environ.get("MUJOCO_GL", "").lower().strip()
    if requested in _OFF:
        raise TrueupError(f"drawing is switched off by MUJOCO_GL={requested}; unset it to make films")
    if requested in ("egl", "osmesa", "glfw", "cgl"):
        return (requested,)
    has_screen = bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
    linux = ("egl", "glfw", "osmesa") if has_screen else ("egl", "osmesa")
    return {"Darwin": ("cgl", "glfw"), "Linux": linux}.get(platform.system(), ("glfw",))


def _open_gl(width: int, height: int) -> Any:
    """Return a current OpenGL context from the first back end that works.

    MuJoCo itself decides when it is imported, too early for a library: hence no `mujoco.Renderer`.
    """
    failures = []
    for name in backends():
        # set while OpenGL is loaded; what the user has set wins
        platform_before = os.environ.get("PYOPENGL_PLATFORM")
        try:
            context = importlib.import_module(f"mujoco.{name}").GLContext(width, height)
            context.make_current()
            return context
        except Exception as error:  # each back end fails in its own way: missing library, no device, no display
            failures.append(f"{name}: {type(error).__name__}: {error}")
        if platform_before is None:
            os.environ.pop("PYOPENGL_PLATFORM", None)
    raise TrueupError(f"no OpenGL to draw with ({'; '.join(failures)}). {_INSTALL}")
