"""Scene: robots, objects, links, cameras and ground, and the one builder of engine models."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import msgspec
import mujoco
import numpy as np

from trueup.core.arrays import FloatArray
from trueup.core.errors import TrueupError
from trueup.robot.load import Robot
from trueup.robot.model import Base, ModelCfg, add_floor, base_mode, build_spec, compile_spec
from trueup.world.scene.things import IDENTITY, Camera, Object, Quat, SceneLink, Vec3, check_pose
from trueup.world.terrain import Terrain

__all__ = ["Camera", "Mounted", "Object", "Scene", "SceneLink"]


@dataclass(frozen=True, kw_only=True)
class Mounted:
    """A robot in its place.

    prefix     before the names of its joints, bodies, geoms and sites; only the first robot may go without one
    pos, quat  of the frame that the robot's own model stands in, world frame; quaternion w x y z
    base       "free", "fixed" or "mount" (`ModelCfg`); None: as the robot's spec says
    """

    robot: Robot
    prefix: str = ""
    pos: Vec3 = (0.0, 0.0, 0.0)
    quat: Quat = IDENTITY
    base: Base | None = None

    def __post_init__(self) -> None:
        check_pose(f"mount of robot {self.robot.spec.name!r}", self.pos, self.quat)


@dataclass(frozen=True, kw_only=True)
class Scene:
    """The simulated scene; every engine model is built here.

    robots   in the order of all joint arrays: the joints of the first robot, then those of the second, ...
    objects  free objects come after the robots in `qpos`, in this order
    links    constraints that each simulation switches on and off
    cameras  fixed points of view for films
    terrain  takes the place of the floor
    floor    a ground plane at height zero; None: where a base or an object is free

    Two geoms can touch if the `contype` of one and the `conaffinity` of the other share a bit. Ground and objects have
    bit 0 in both masks, contact geoms of robots in `contype` only (light collisions): objects, ground and robots touch
    each other, and no robot touches itself. With several robots, `contype` of each has a bit of its own, which is in
    the `conaffinity` of the others: robots touch each other.

    A scene of one robot in its own place is exactly that robot's model (`robot.model.build_spec`). Further robots are
    attached to it under their prefixes; solver options are those of the first robot.

    A scene without robots describes surroundings; `with_robot` puts a robot into them.
    """

    robots: tuple[Mounted, ...] = ()
    objects: tuple[Object, ...] = ()
    links: tuple[SceneLink, ...] = ()
    cameras: tuple[Camera, ...] = ()
    terrain: Terrain | None = None
    floor: bool | None = None

    def __post_init__(self) -> None:
        for kind, names in (
            ("robot prefix", [mounted.prefix for mounted in self.robots]),
            ("object", [thing.name for thing in self.objects]),
            ("link", [link.name for link in self.links]),
            ("camera", [camera.name for camera in self.cameras]),
        ):
            twice = sorted({name for name in names if names.count(name) > 1})
            if twice:
                raise TrueupError(f"a scene needs different names, found {kind} {twice[0]!r} twice")
        if not all(mounted.prefix for mounted in self.robots[1:]):
            raise TrueupError("only the first robot of a scene may go without a prefix")

    @classmethod
    def of(cls, what: Robot | Scene) -> Scene:
        """A scene as it is; a robot alone."""
        return what if isinstance(what, Scene) else cls(robots=(Mounted(robot=what),))

    def with_robot(self, robot: Robot) -> Scene:
        """The scene with this robot in the place of its first one."""
        first = replace(self.robots[0], robot=robot) if self.robots else Mounted(robot=robot)
        return replace(self, robots=(first, *self.robots[1:]))

    @cached_property
    def robot(self) -> Robot:
        """All robots as one: joints, feet and contact geoms of all, by their names in the scene.

        Base, IMU, end effector and control rate are those of the first robot, the physics rate is that of the fastest.
        """
        if not self.robots:
            raise TrueupError("this scene has no robot: put one in with `scene.with_robot(robot)`")
        first = self.robots[0]
        if len(self.robots) == 1 and not first.prefix:
            return first.robot
        specs = [(mounted.prefix, mounted.robot.spec) for mounted in self.robots]
        spec = first.robot.spec
        steps = math.ceil(max(each.physics_hz for _, each in specs) / spec.control_hz - 1e-9)
        together = msgspec.structs.replace(
            spec,
            name="-".join(f"{prefix}{each.name}" for prefix, each in specs)[:64],
            physics_hz=steps * spec.control_hz,
            base=msgspec.structs.replace(spec.base, body=first.prefix + spec.base.body),
            imu=None if spec.imu is None else first.prefix + spec.imu,
            end_effector=None if spec.end_effector is None else first.prefix + spec.end_effector,
            feet=tuple(prefix + name for prefix, each in specs for name in each.feet),
            contact_geoms=tuple(prefix + name for prefix, each in specs for name in each.contact_geoms),
            joints=tuple(
                msgspec.structs.replace(joint, name=prefix + joint.name)
                for prefix, each in specs
                for joint in each.joints
            ),
            options={},
        )
        return replace(first.robot, spec=together, options={})

    @property
    def joints(self) -> tuple[slice, ...]:
        """Columns of each robot among the joints of the scene."""
        ends = np.cumsum([0, *(mounted.robot.spec.njoint for mounted in self.robots)]).tolist()
        return tuple(slice(low, high) for low, high in pairwise(ends))

    @property
    def delay_s(self) -> FloatArray:
        """Command delay of every joint of the scene, (njoint,) seconds."""
        specs = [mounted.robot.spec for mounted in self.robots]
        return np.repeat([spec.delay_s for spec in specs], [spec.njoint for spec in specs])

    def build(self, cfg: ModelCfg | None = None) -> mujoco.MjSpec:
        """Return the editable engine model, without actuators; `cfg` overrules bases and floor of the scene."""
        spec = self._build_robots(cfg or ModelCfg())
        if self.terrain is not None:
            self.terrain.add_to(spec)
        things: tuple[Object | SceneLink | Camera, ...] = (*self.objects, *self.links, *self.cameras)
        for thing in things:
            thing.add_to(spec)
        return spec

    def compile(self, cfg: ModelCfg | None = None) -> mujoco.MjModel:
        """Return the engine model without actuators."""
        return compile_spec(self.build(cfg), self.robot)

    def _build_robots(self, cfg: ModelCfg) -> mujoco.MjSpec:
        root = mujoco.MjSpec()
        is_free = any(thing.free for thing in self.objects)
        for k, mounted in enumerate(self.robots):
            base = base_mode(mounted.robot, cfg.base or mounted.base)
            is_free = is_free or base == "free"
            spec = build_spec(mounted.robot, replace(cfg, base=base, floor=False))
            if spec.compiler.settotalmass > 0 and (self.objects or len(self.robots) > 1):
                raise TrueupError("settotalmass would change every mass: write masses", file=mounted.robot.model_path)
            if cfg.collisions == "light" and len(self.robots) > 1:
                _touch_other_robots(spec, mounted.robot, k, len(self.robots))
            if k == 0 and not mounted.prefix:
                root = spec
                _move(root, mounted)
                continue
            if k == 0:
                root.option = spec.option
            spec.option = root.option
            frame = root.worldbody.add_frame(pos=mounted.pos, quat=mounted.quat)
            root.attach(spec, prefix=mounted.prefix, frame=frame)
        if next((choice for choice in (cfg.floor, self.floor) if choice is not None), is_free):
            add_floor(root)
        return root


def _move(spec: mujoco.MjSpec, mounted: Mounted) -> None:
    """Put everything in a robot's model into the frame of its mount."""
    if not any(mounted.pos) and mounted.quat == IDENTITY:
        return
    world = spec.worldbody
    inside = (*world.bodies, *world.geoms, *world.sites, *world.cameras, *world.lights, *world.frames)
    inside = tuple(element for element in inside if element.frame is None)
    frame = world.add_frame(pos=mounted.pos, quat=mounted.quat)
    for element in inside:
        element.set_frame(frame)


def _touch_other_robots(spec: mujoco.MjSpec, robot: Robot, k: int, count: int) -> None:
    """Give contact geoms of robot `k` a bit that the other robots look for."""
    others = sum(2 << other for other in range(count) if other != k)
    for name in robot.spec.contact_geoms:
        geom = spec.geom(name)
        geom.contype, geom.conaffinity = 1 | 2 << k, others
