"""A compiled scene in PhysX 5 (SAPIEN): links, joints and shapes of every row, and the ground.

All rows share one PhysX scene, which is twice as fast as one each; robots of different rows do not touch. MuJoCo's
rule of contype and conaffinity is SAPIEN's of groups 0 and 1. Friction of a contact is the mean of two materials in
PhysX: the ground has none and a robot twice the coefficient, so that the mean is the coefficient itself.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import mujoco
import numpy as np

from trueup.core.arrays import FloatArray
from trueup.core.errors import TrueupError

_TYPE, _JOINT = mujoco.mjtGeom, mujoco.mjtJoint
_GROUND = (int(_TYPE.mjGEOM_PLANE), int(_TYPE.mjGEOM_HFIELD))
_ROUND = (int(_TYPE.mjGEOM_CAPSULE), int(_TYPE.mjGEOM_CYLINDER))
_X_TO_Z = np.array([np.sqrt(0.5), 0.0, -np.sqrt(0.5), 0.0])  # PhysX joints, capsules and cylinders lie along x
_SPACING_M = 3.0  # between rows on flat ground: fewer pairs to tell apart, and small numbers for single precision
_JOINT_KIND = {int(_JOINT.mjJNT_HINGE): "revolute_unwrapped", int(_JOINT.mjJNT_SLIDE): "prismatic"}
_FAST = 1e6  # speed limits that never act


@dataclass(frozen=True, kw_only=True)
class PhysxCfg:
    """Settings of PhysX.

    solver      "pgs" (projected Gauss-Seidel) or "tgs" (temporal, Isaac's default)
    position_iterations, velocity_iterations  of the solver in a physics step; None: 8 for a free base, where contacts
                come first, 64 for a fixed one, where stiff servos of a chain of light links must be solved together
    contact_offset  m, distance at which contacts are looked for
    """

    solver: Literal["pgs", "tgs"] = "pgs"
    position_iterations: int | None = None
    velocity_iterations: int = 1
    contact_offset: float = 0.01


class Row(NamedTuple):
    """One robot: its articulation, links by body id, shapes by geom id, joints by joint id, and its material."""

    articulation: Any
    links: dict[int, Any]
    shapes: dict[int, Any]
    joints: dict[int, Any]
    material: Any


def load_sapien() -> Any:
    """The package `sapien`, which is optional; it warns of a missing Vulkan, which physics does not need."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import sapien
            import sapien.physx
    except ImportError as error:
        raise TrueupError(
            f"the second engine needs the package 'sapien' ({error}); `pip install 'trueup[physx]'` brings it"
        ) from None
    return sapien


class PhysxScene:
    """N rows of a compiled model in one PhysX scene.

    places  (nsim, 3) where the world's origin of each row is in the common scene, m
    """

    def __init__(self, model: mujoco.MjModel, nsim: int, dt: float, cfg: PhysxCfg) -> None:
        _check(model)
        self.model, self._sapien = model, load_sapien()
        self._px = self._sapien.physx
        self._configure(cfg)
        self.system = self._px.PhysxCpuSystem()
        self.system.timestep = dt
        self.scene = self._sapien.Scene([self.system])
        ground = [geom for geom in np.flatnonzero(model.geom_bodyid == 0).tolist() if self._touches(geom)]
        # ground with a shape is one for all rows, which then stand in one place and do not touch each other
        self._is_shaped = _floating(model) and any(model.geom_type[geom] != _TYPE.mjGEOM_PLANE for geom in ground)
        self.places = np.zeros((nsim, 3)) if self._is_shaped else _grid(nsim)
        self._cfg = cfg
        self._add_ground()
        self.rows = [self._add_row(place) for place in self.places]

    def _configure(self, cfg: PhysxCfg) -> None:
        """Settings are global in SAPIEN: they hold for what is built next."""
        scene, body = self._px.PhysxSceneConfig(), self._px.PhysxBodyConfig()
        scene.gravity = self.model.opt.gravity
        scene.enable_tgs = cfg.solver == "tgs"
        scene.enable_enhanced_determinism = True
        body.sleep_threshold = 0.0
        body.solver_position_iterations = cfg.position_iterations or (8 if _floating(self.model) else 64)
        body.solver_velocity_iterations = cfg.velocity_iterations
        self._px.set_scene_config(scene)
        self._px.set_body_config(body)

    # --- ground ---
    def _add_ground(self) -> None:
        """Shapes of the world body: the ground once, what stands around a bolted robot in every row's place."""
        bare = self._px.PhysxMaterial(0.0, 0.0, 0.0)
        for geom in np.flatnonzero(self.model.geom_bodyid == 0).tolist():
            if not self._touches(geom):
                continue
            shared = self._is_shaped or self.model.geom_type[geom] in _GROUND
            for place in self.places[:1] if shared else self.places:
                body = self._px.PhysxRigidStaticComponent()
                body.attach(self._shape(geom, bare))
                entity = self._sapien.Entity()
                entity.add_component(body)
                entity.pose = self._sapien.Pose(np.zeros(3) if shared else place)
                self.scene.add_entity(entity)

    # --- robots ---
    def _add_row(self, place: FloatArray) -> Row:
        sapien, model = self._sapien, self.model
        material = self._px.PhysxMaterial(0.0, 0.0, 0.0)
        builder, floating = self.scene.create_articulation_builder(), _floating(model)
        links: dict[int, Any] = {}
        if not floating:
            links[0] = builder.create_link_builder()
            links[0].set_mass_and_inertia(1.0, sapien.Pose(), np.ones(3))
            links[0].set_name("0")
        for body in range(1, model.nbody):
            parent = links.get(int(model.body_parentid[body]))
            links[body] = link = builder.create_link_builder(parent)
            link.set_name(str(body))
            mass, moments = float(model.body_mass[body]), model.body_inertia[body]
            centre = sapien.Pose(model.body_ipos[body], model.body_iquat[body])
            light = mass <= 0.0  # a mere frame: PhysX needs some mass
            link.set_mass_and_inertia(1e-4 if light else mass, centre, np.full(3, 1e-7) if light else moments)
            if parent is not None:
                self._set_joint(link, body)
        builder.initial_pose = sapien.Pose(place)
        articulation = builder.build(fix_root_link=not floating)
        built = {int(link.name): link for link in articulation.links}
        shapes = self._add_shapes(built, material)
        joints = {int(model.body_jntadr[k]): link.joint for k, link in built.items() if k and link.joint.dof}
        for link in built.values():
            link.angular_damping = link.linear_damping = 0.0
            link.max_angular_velocity = link.max_linear_velocity = _FAST
        for joint, found in joints.items():
            found.set_armature(np.array([model.dof_armature[model.jnt_dofadr[joint]]], np.float32))
            found.max_velocity = _FAST
            found.set_friction(0.0)  # 0.05 unless told otherwise, and not a torque
        return Row(articulation, built, shapes, joints, material)

    def _set_joint(self, link: Any, body: int) -> None:
        """A hinge or slide about its axis, or a fixed link."""
        model, pose = self.model, self._sapien.Pose
        here = pose(model.body_pos[body], model.body_quat[body])
        if not model.body_jntnum[body]:
            link.set_joint_properties("fixed", [], here, pose())
            return
        joint = int(model.body_jntadr[body])
        turn = np.zeros(4)
        mujoco.mju_quatZ2Vec(turn, model.jnt_axis[joint])
        along = pose(model.jnt_pos[joint], _product(turn, _X_TO_Z))
        low, high = model.jnt_range[joint] - model.qpos0[model.jnt_qposadr[joint]]
        limits = (low, high) if model.jnt_limited[joint] else (-np.inf, np.inf)
        link.set_joint_name(model.joint(joint).name)
        link.set_joint_properties(_JOINT_KIND[int(model.jnt_type[joint])], [limits], here * along, along)

    def _add_shapes(self, links: Mapping[int, Any], material: Any) -> dict[int, Any]:
        shapes = {}
        for geom in range(self.model.ngeom):
            body = int(self.model.geom_bodyid[geom])
            if body and self._touches(geom):
                shapes[geom] = self._shape(geom, material)
                links[body].attach(shapes[geom])
        return shapes

    # --- shapes ---
    def _touches(self, geom: int) -> bool:
        return bool(self.model.geom_contype[geom] or self.model.geom_conaffinity[geom])

    def _shape(self, geom: int, material: Any) -> Any:
        model, px = self.model, self._px
        size, kind = model.geom_size[geom].astype(np.float32), model.geom_type[geom]
        pos, quat = model.geom_pos[geom], model.geom_quat[geom]
        if kind == _TYPE.mjGEOM_SPHERE:
            shape = px.PhysxCollisionShapeSphere(size[0], material)
        elif kind == _TYPE.mjGEOM_BOX:
            shape = px.PhysxCollisionShapeBox(size, material)
        elif kind in _ROUND:
            name = "Capsule" if kind == _TYPE.mjGEOM_CAPSULE else "Cylinder"
            shape = getattr(px, f"PhysxCollisionShape{name}")(size[0], size[1], material)
            quat = _product(quat, _X_TO_Z)
        elif kind == _TYPE.mjGEOM_PLANE:
            shape = px.PhysxCollisionShapePlane(material)
            quat = _product(quat, _X_TO_Z)
        elif kind == _TYPE.mjGEOM_HFIELD:
            shape = px.PhysxCollisionShapeTriangleMesh(*field_mesh(model, geom), np.ones(3), material)
        else:
            points = hull_points(model, geom)
            shape = px.PhysxCollisionShapeConvexMesh(points, np.ones(3), material)
        shape.local_pose = self._sapien.Pose(pos, quat)
        shape.set_collision_groups([int(model.geom_contype[geom]), int(model.geom_conaffinity[geom]), 0, 0])
        shape.contact_offset = self._cfg.contact_offset
        return shape


def field_mesh(model: mujoco.MjModel, geom: int) -> tuple[FloatArray, FloatArray]:
    """Vertices (n, 3) and triangles (m, 3) of a height field, in the frame of its geom; faces look up."""
    field = int(model.geom_dataid[geom])
    nrow, ncol = int(model.hfield_nrow[field]), int(model.hfield_ncol[field])
    half_x, half_y, top, _ = model.hfield_size[field]
    heights = model.hfield_data[model.hfield_adr[field] :][: nrow * ncol].reshape(nrow, ncol)
    y, x = np.meshgrid(np.linspace(-half_y, half_y, nrow), np.linspace(-half_x, half_x, ncol), indexing="ij")
    vertices = np.stack([x, y, top * heights], axis=-1).reshape(-1, 3)
    corner = (np.arange(nrow - 1)[:, None] * ncol + np.arange(ncol - 1)).ravel()
    right, up, both = corner + 1, corner + ncol, corner + ncol + 1
    triangles = np.concatenate([np.stack([corner, right, up], 1), np.stack([right, both, up], 1)])
    return vertices.astype(np.float32), triangles.astype(np.uint32)


def hull_points(model: mujoco.MjModel, geom: int) -> FloatArray:
    """Points (n, 3) whose hull is the shape: MuJoCo too takes the hull of a mesh; an ellipsoid is sampled."""
    if model.geom_type[geom] == _TYPE.mjGEOM_MESH:
        mesh = int(model.geom_dataid[geom])
        vertices = model.mesh_vert[model.mesh_vertadr[mesh] :][: model.mesh_vertnum[mesh]]
        return np.ascontiguousarray(vertices, np.float32)
    if model.geom_type[geom] == _TYPE.mjGEOM_ELLIPSOID:
        turn, up = np.meshgrid(np.linspace(0, 2 * np.pi, 12, endpoint=False), np.linspace(-1, 1, 9))
        ring = np.sqrt(1 - up**2)
        ball = np.stack([ring * np.cos(turn), ring * np.sin(turn), up], axis=-1).reshape(-1, 3)
        return (ball * model.geom_size[geom]).astype(np.float32)
    raise TrueupError(f"the second engine has no shape for geom {model.geom(geom).name or geom!r}")


def _check(model: mujoco.MjModel) -> None:
    """Refuse what this engine is not given: further trees, ball joints, several joints in a body, constraints."""
    for what, count in (
        ("equality constraints", model.neq),
        ("tendons", model.ntendon),
        ("contact pairs", model.npair),
    ):
        if count:
            raise TrueupError(f"the second engine knows no {what}: this model has {count}")
    for joint in range(model.njnt):
        body, kind = int(model.jnt_bodyid[joint]), model.jnt_type[joint]
        name = f"joint {model.joint(joint).name!r}"
        if kind == _JOINT.mjJNT_BALL or model.body_jntnum[body] > 1:
            raise TrueupError(f"the second engine takes one hinge or slide in a body, not {name}")
        if kind == _JOINT.mjJNT_FREE and body != 1:
            raise TrueupError(f"the second engine takes one robot and no free objects; {name} moves another body")
    if _floating(model) and int(np.sum(model.body_parentid[1:] == 0)) > 1:
        raise TrueupError("the second engine takes one robot alone: this model has bodies beside its floating base")


def _floating(model: mujoco.MjModel) -> bool:
    return bool(model.njnt and model.jnt_type[0] == _JOINT.mjJNT_FREE)


def _product(left: FloatArray, other: FloatArray) -> FloatArray:
    out = np.zeros(4)
    mujoco.mju_mulQuat(out, left, other)
    return out


def _grid(nsim: int) -> FloatArray:
    """Places of rows in a square about the origin."""
    side = int(np.ceil(np.sqrt(nsim)))
    x, y = np.divmod(np.arange(nsim), side)
    middle = 0.5 * (side - 1)
    return _SPACING_M * np.stack([x - middle, y - middle, np.zeros(nsim)], axis=1)
