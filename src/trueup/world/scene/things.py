"""Parts of a scene beside robots and ground: objects, switchable links, cameras."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import mujoco
import numpy as np

from trueup.core.errors import TrueupError, did_you_mean

Vec3 = tuple[float, float, float]
Quat = tuple[float, float, float, float]
IDENTITY: Quat = (1.0, 0.0, 0.0, 0.0)
_SHAPES = {
    "box": (mujoco.mjtGeom.mjGEOM_BOX, 3),
    "sphere": (mujoco.mjtGeom.mjGEOM_SPHERE, 1),
    "cylinder": (mujoco.mjtGeom.mjGEOM_CYLINDER, 2),
    "capsule": (mujoco.mjtGeom.mjGEOM_CAPSULE, 2),
}
_KINDS = {"weld": mujoco.mjtEq.mjEQ_WELD, "connect": mujoco.mjtEq.mjEQ_CONNECT}
_CONDIM = 4  # contacts of objects resist turning too: a grip by two fingers must


@dataclass(frozen=True, kw_only=True)
class Object:
    """A rigid body of one shape. It touches robots' contact geoms, the ground and other objects.

    size       m; box: half lengths along x, y, z; sphere: radius; cylinder and capsule: radius, half length along z
    mass       kg, spread evenly over the shape
    friction   sliding friction of its contacts, whatever it touches; between two objects the larger one counts
    free       moves; False: fixed to the world (a table, a wall)
    pos, quat  where it starts, world frame; quaternion w x y z
    colour     red, green, blue in [0, 1]
    """

    name: str
    shape: Literal["box", "sphere", "cylinder", "capsule"]
    size: tuple[float, ...]
    mass: float = 0.1
    friction: float = 0.8
    free: bool = True
    pos: Vec3 = (0.0, 0.0, 0.0)
    quat: Quat = IDENTITY
    colour: Vec3 = (0.85, 0.35, 0.15)

    def __post_init__(self) -> None:
        if not self.name:
            raise TrueupError("an object needs a name")
        if self.shape not in _SHAPES:
            raise TrueupError(f"object {self.name!r}: no shape {self.shape!r}{did_you_mean(self.shape, _SHAPES)}")
        wanted = _SHAPES[self.shape][1]
        if len(self.size) != wanted or not all(0.0 < number < math.inf for number in self.size):
            size = f"the size of a {self.shape} is {wanted} positive numbers, found {self.size}"
            raise TrueupError(f"object {self.name!r}: {size}")
        if not (0.0 < self.mass < math.inf and 0.0 <= self.friction < math.inf):
            raise TrueupError(f"object {self.name!r}: mass must be positive and friction not negative")
        check_pose(f"object {self.name!r}", self.pos, self.quat)

    def add_to(self, spec: mujoco.MjSpec) -> None:
        """Put the object into a model."""
        body = spec.worldbody.add_body(name=self.name, pos=self.pos, quat=self.quat)
        if self.free:
            body.add_freejoint(name=self.name)
        body.add_geom(
            name=self.name,
            type=_SHAPES[self.shape][0],
            size=[*self.size, 0.0, 0.0][:3],
            mass=self.mass,
            friction=[self.friction, 0.005, 0.0001],
            priority=1,  # the object's friction counts, not the larger one of it and the ground
            condim=_CONDIM,
            contype=1,
            conaffinity=1,
            rgba=[*self.colour, 1.0],
        )


@dataclass(frozen=True, kw_only=True)
class SceneLink:
    """A constraint between two bodies that each simulation switches on and off (`BatchSim.set_link`).

    kind     "weld": the bodies keep their relative pose; "connect": they share one point and may turn about it
    a, b     names of bodies, prefix included; b None: the world
    anchor   the shared point in the frame of body a (connect)
    active   in force after a reset

    The relative pose is the one of the model's reference configuration, until a link is switched on `here`.
    """

    name: str
    kind: Literal["weld", "connect"]
    a: str
    b: str | None = None
    anchor: Vec3 = (0.0, 0.0, 0.0)
    active: bool = False

    def add_to(self, spec: mujoco.MjSpec) -> None:
        """Put the constraint into a model that has the bodies."""
        for body in (self.a, self.b or "world"):
            _need_body(spec, body, f"link {self.name!r}")
        data = np.zeros(mujoco.mjNEQDATA)
        data[:3] = self.anchor if self.kind == "connect" else 0.0
        data[10] = self.kind == "weld"  # weight of turning against moving
        spec.add_equality(
            name=self.name,
            type=_KINDS[self.kind],
            objtype=mujoco.mjtObj.mjOBJ_BODY,
            name1=self.a,
            name2=self.b or "",
            active=self.active,
            data=data.tolist(),
        )


@dataclass(frozen=True, kw_only=True)
class Camera:
    """A camera with a name, for films: at `pos`, looking at `look_at`, upright; in the frame of `body` or the world.

    fovy  vertical field of view in degrees
    """

    name: str
    pos: Vec3
    look_at: Vec3 = (0.0, 0.0, 0.0)
    fovy: float = 45.0
    body: str | None = None

    def add_to(self, spec: mujoco.MjSpec) -> None:
        """Put the camera into a model."""
        body = _need_body(spec, self.body or "world", f"camera {self.name!r}")
        body.add_camera(name=self.name, pos=self.pos, quat=self._quat(), fovy=self.fovy)

    def _quat(self) -> list[float]:
        """A camera looks along its -z, with y up."""
        ahead = np.subtract(self.look_at, self.pos)
        right = np.cross(ahead, (0.0, 0.0, 1.0))
        if np.linalg.norm(right) < 1e-9:
            right = np.array([0.0, -1.0, 0.0])  # straight up or down
        axes = np.stack([right, np.cross(right, ahead), -ahead], axis=1)
        quat = np.zeros(4)
        mujoco.mju_mat2Quat(quat, (axes / np.linalg.norm(axes, axis=0)).ravel())
        return quat.tolist()


def _need_body(spec: mujoco.MjSpec, name: str, what: str) -> mujoco.MjsBody:
    if (body := spec.body(name)) is None:
        raise TrueupError(f"{what}: no body {name!r}{did_you_mean(name, [body.name for body in spec.bodies])}")
    return body


def check_pose(of: str, pos: Sequence[float], quat: Sequence[float]) -> None:
    """Refuse a place that is not finite, or a quaternion without direction."""
    if not (np.isfinite([*pos, *quat]).all() and np.linalg.norm(quat) > 1e-6):
        raise TrueupError(f"{of}: pos and quat must be finite, quat not zero; found {pos} and {quat}")
