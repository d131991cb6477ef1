"""A whole robot as URDF, written from its compiled model: links, inertias, joints, primitive collision shapes.

A link's frame is where its joint is, turned as the body. The file has no <visual>: some readers want a graphics card
for it. What URDF cannot hold (rotor inertia, servo gains, shapes that are not primitive) is declared as a loss.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import mujoco
import numpy as np

from trueup.core.arrays import FloatArray
from trueup.core.errors import TrueupError
from trueup.core.files import write_atomic
from trueup.policy.chain import matrices
from trueup.robot.foreign.safe_xml import XmlNode, write_xml
from trueup.robot.load import Robot
from trueup.robot.model import ModelCfg, compile_model
from trueup.world.parameters.inertia import compose

_TYPE, _JOINT = mujoco.mjtGeom, mujoco.mjtJoint
_INERTIA = ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")
WORLD = "world"


@dataclass(frozen=True, kw_only=True)
class UrdfExport:
    """The file written, and what it cannot hold."""

    file: Path
    losses: tuple[str, ...]


def export_urdf(robot: Robot, out: str | Path) -> UrdfExport:
    """Write DIR/NAME.urdf."""
    folder = Path(out)
    if folder.exists() and any(folder.iterdir()):
        raise TrueupError("exists and is not empty; choose another folder", file=folder)
    text, losses = to_urdf(robot)
    file = write_atomic(folder / f"{robot.spec.name}.urdf", text)
    return UrdfExport(file=file, losses=losses)


def to_urdf(robot: Robot) -> tuple[str, tuple[str, ...]]:
    """The text of a robot's URDF, and what is lost in it."""
    writer = _Writer(robot, compile_model(robot, ModelCfg(collisions="full", floor=False)))
    return '<?xml version="1.0"?>\n' + write_xml(writer.tree)[0] + "\n", tuple(writer.losses)


class _Writer:
    """Builds the tree; `losses` are gathered on the way."""

    def __init__(self, robot: Robot, model: mujoco.MjModel) -> None:
        self.robot, self.model, self.losses = robot, model, list[str]()
        self.tree = self._node("robot", name=robot.spec.name)
        self._limits = {joint.name: joint for joint in robot.spec.joints}
        tops = np.flatnonzero(model.body_parentid[1:] == 0) + 1
        free = [k for k in tops if model.body_jntnum[k] and model.jnt_type[model.body_jntadr[k]] == _JOINT.mjJNT_FREE]
        is_root = len(tops) == 1 and (bool(free) or not model.body_jntnum[tops[0]])
        if free and not is_root:
            raise TrueupError("a URDF is one tree: this model has bodies beside its floating base")
        if not is_root:
            self.tree.children.append(self._node("link", name=WORLD))
        for body in range(1, model.nbody):
            self.tree.children.append(self._link(body))
            if not (is_root and body == tops[0]):
                self.tree.children.append(self._joint(body))
        self._declare()

    def _declare(self) -> None:
        model = self.model
        if model.dof_armature.any():
            self.losses.append(f"armature: URDF has no rotor inertia (largest {model.dof_armature.max():.3g} kg m^2)")
        self.losses.append("kp, kd, delay: URDF has no servo")
        if model.neq or model.ntendon:
            self.losses.append(f"{model.neq} equality constraints, {model.ntendon} tendons: URDF has none")

    # --- links ---
    def _link(self, body: int) -> XmlNode:
        model, origin = self.model, self._origin(body)
        link = self._node("link", name=self._name(body))
        if model.body_mass[body] > 0.0:
            six = compose(model.body_inertia[body], model.body_iquat[body])
            moments = {key: repr(float(value)) for key, value in zip(_INERTIA, six, strict=True)}
            parts = [
                self._node("origin", xyz=_words(model.body_ipos[body] - origin), rpy="0 0 0"),
                self._node("mass", value=repr(float(model.body_mass[body]))),
                self._node("inertia", **moments),
            ]
            link.children.append(self._node("inertial", *parts))
        for geom in np.flatnonzero(model.geom_bodyid == body).tolist():
            if model.geom_contype[geom] or model.geom_conaffinity[geom]:
                link.children += self._shapes(geom, origin)
        return link

    def _shapes(self, geom: int, origin: FloatArray) -> Iterable[XmlNode]:
        """Collision shapes of a geom; a capsule is a cylinder and two balls, which every reader knows."""
        model, size = self.model, self.model.geom_size[geom]
        turn, at = _matrix(model.geom_quat[geom]), model.geom_pos[geom] - origin
        kind, name = model.geom_type[geom], model.geom(geom).name or f"geom{geom}"
        ball = self._node("sphere", radius=repr(float(size[0])))
        rod = self._node("cylinder", radius=repr(float(size[0])), length=repr(float(2.0 * size[1])))
        if kind == _TYPE.mjGEOM_SPHERE:
            return [self._shape(name, ball, at, turn)]
        if kind == _TYPE.mjGEOM_BOX:
            return [self._shape(name, self._node("box", size=_words(2.0 * size)), at, turn)]
        if kind == _TYPE.mjGEOM_CYLINDER:
            return [self._shape(name, rod, at, turn)]
        if kind == _TYPE.mjGEOM_CAPSULE:
            ends = [at + sign * size[1] * turn[:, 2] for sign in (-1.0, 1.0)]
            balls = [self._shape(f"{name}_end{k}", ball, end, turn) for k, end in enumerate(ends)]
            return [self._shape(name, rod, at, turn), *balls]
        self.losses.append(f"shape {name!r}: only boxes, balls, cylinders and capsules are written")
        return []

    def _shape(self, name: str, form: XmlNode, at: FloatArray, turn: FloatArray) -> XmlNode:
        place = self._node("origin", xyz=_words(at), rpy=_words(_rpy(turn)))
        return self._node("collision", place, self._node("geometry", form), name=name)

    # --- joints ---
    def _joint(self, body: int) -> XmlNode:
        model, parent = self.model, int(self.model.body_parentid[body])
        count, name = int(model.body_jntnum[body]), f"{self._name(body)}_fixed"
        turn = _matrix(model.body_quat[body])
        at = model.body_pos[body] + turn @ self._origin(body) - self._origin(parent)
        ends = [
            self._node("origin", xyz=_words(at), rpy=_words(_rpy(turn))),
            self._node("parent", link=self._name(parent)),
            self._node("child", link=self._name(body)),
        ]
        if not count:
            return self._node("joint", *ends, name=name, type="fixed")
        joint = int(model.body_jntadr[body])
        kind, name = model.jnt_type[joint], model.joint(joint).name
        if count > 1 or kind not in (int(_JOINT.mjJNT_HINGE), int(_JOINT.mjJNT_SLIDE)):
            raise TrueupError(f"URDF takes one hinge or slide for a link: body {self._name(body)!r} has other joints")
        return self._node("joint", *ends, *self._dynamics(joint), name=name, type=self._kind(joint))

    def _kind(self, joint: int) -> str:
        if self.model.jnt_type[joint] == _JOINT.mjJNT_SLIDE:
            return "prismatic"
        return "revolute" if self.model.jnt_limited[joint] else "continuous"

    def _dynamics(self, joint: int) -> list[XmlNode]:
        model, dof = self.model, int(self.model.jnt_dofadr[joint])
        name, zero = model.joint(joint).name, float(model.qpos0[model.jnt_qposadr[joint]])
        if zero:
            self.losses.append(f"joint {name!r}: its zero is moved by {zero:.6g} rad, where the model stands")
        own = self._limits.get(name)
        effort, velocity = (own.torque, own.velocity) if own else (0.0, 0.0)
        low, high = (model.jnt_range[joint] - zero).tolist()
        return [
            self._node("axis", xyz=_words(model.jnt_axis[joint])),
            self._node("limit", lower=repr(low), upper=repr(high), effort=repr(effort), velocity=repr(velocity)),
            self._node(
                "dynamics",
                damping=repr(float(model.dof_damping[dof])),
                friction=repr(float(model.dof_frictionloss[dof])),
            ),
        ]

    # --- helpers ---
    def _origin(self, body: int) -> FloatArray:
        """Where the link's frame is in the body's: at its joint."""
        if not body or not self.model.body_jntnum[body]:
            return np.zeros(3)
        joint = int(self.model.body_jntadr[body])
        free = self.model.jnt_type[joint] == _JOINT.mjJNT_FREE
        place: FloatArray = np.zeros(3) if free else self.model.jnt_pos[joint]
        return place

    def _name(self, body: int) -> str:
        return (self.model.body(body).name or f"body{body}") if body else WORLD

    def _node(self, tag: str, *children: XmlNode, **attrs: str) -> XmlNode:
        return XmlNode(tag, attrs, self.robot.model_path, 0, list(children))


def _words(values: FloatArray) -> str:
    return " ".join(repr(float(value) + 0.0) for value in values)


def _matrix(quat: FloatArray) -> FloatArray:
    return matrices(quat[None])[0]


def _rpy(turn: FloatArray) -> FloatArray:
    """Roll, pitch and yaw (fixed axes x, y, z) of a rotation matrix."""
    level = float(np.hypot(turn[0, 0], turn[1, 0]))
    pitch = np.arctan2(-turn[2, 0], level)
    if level < 1e-9:  # roll and yaw are one turn
        return np.array([np.arctan2(-turn[1, 2], turn[1, 1]), pitch, 0.0])
    return np.array([np.arctan2(turn[2, 1], turn[2, 2]), pitch, np.arctan2(turn[1, 0], turn[0, 0])])
