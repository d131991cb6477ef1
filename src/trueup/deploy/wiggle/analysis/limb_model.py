"""Static model of a robot in NumPy: where its bodies are, and what torque holds each joint against gravity.

Reads bodies, joints and inertias from the robot's MJCF or URDF without an engine, so that a robot's own computer can do
it. Only what statics needs is read; a file that leaves masses to meshes or that uses includes gives no model (None).

    tau_j = - sum over bodies b that joint j carries of  m_b g . (a_j x (c_b - p_j))      (hinge; slide: m_b g . a_j)

with gravity g, the joint's axis a_j and anchor p_j, the body's centre of mass c_b, all in the base frame.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from trueup.core.arrays import FloatArray
from trueup.core.errors import TrueupError
from trueup.policy.chain import matrices
from trueup.robot.foreign.safe_xml import XmlNode, check_tree, parse_xml
from trueup.robot.load import Robot

_IDENTITY = np.eye(3)


@dataclass(frozen=True, kw_only=True)
class LimbBody:
    """One body: parent (-1: the base itself), place in it, its joint (-1: none) and its mass.

    joint  index in spec order; `axis` and `anchor` in the body's own frame; `is_slide`: moves along the axis
    """

    parent: int
    pos: FloatArray
    rot: FloatArray
    mass: float
    com: FloatArray
    joint: int = -1
    axis: FloatArray
    anchor: FloatArray
    is_slide: bool = False


@dataclass(frozen=True, kw_only=True)
class LimbModel:
    """Bodies in the order parent before child; `limbs[j]` numbers the branch of the base that joint j belongs to."""

    njoint: int
    links: tuple[LimbBody, ...]
    limbs: tuple[int, ...]
    base_from_imu: FloatArray

    def gravity_torque(self, joint_pos: FloatArray, gravity: FloatArray) -> FloatArray:
        """Torque (T, njoint) that holds the joints at `joint_pos` (T, njoint); `gravity` (3,) in the base frame."""
        rows = len(joint_pos)
        rots: list[FloatArray] = []
        poss: list[FloatArray] = []
        coms: list[FloatArray] = []
        axes, anchors = np.zeros((self.njoint, rows, 3)), np.zeros((self.njoint, rows, 3))
        for link in self.links:
            rot, pos = np.broadcast_to(_IDENTITY, (rows, 3, 3)), np.zeros((rows, 3))
            if link.parent >= 0:
                above = rots[link.parent]
                pos, rot = poss[link.parent] + above @ link.pos, above @ link.rot
            if link.joint >= 0:
                q = joint_pos[:, link.joint]
                axes[link.joint], anchor = rot @ link.axis, pos + rot @ link.anchor
                anchors[link.joint] = anchor
                if link.is_slide:
                    pos = pos + q[:, None] * axes[link.joint]
                else:
                    rot = rot @ _turn(link.axis, q)
                    pos = anchor - rot @ link.anchor
            rots.append(rot)
            poss.append(pos)
            coms.append(pos + rot @ link.com)
        return self._hold(coms, axes, anchors, gravity)

    def _hold(self, coms: list[FloatArray], axes: FloatArray, anchors: FloatArray, gravity: FloatArray) -> FloatArray:
        torque = np.zeros((len(coms[0]), self.njoint))
        for b, link in enumerate(self.links):
            above = b
            while above >= 0 and link.mass > 0.0:
                j = self.links[above].joint
                if j >= 0:
                    way = axes[j] if self.links[above].is_slide else np.cross(axes[j], coms[b] - anchors[j])
                    torque[:, j] -= link.mass * (way @ gravity)
                above = self.links[above].parent
        return torque


def read_limbs(robot: Robot) -> LimbModel | None:
    """The static model of a robot; None where its file does not say all that statics needs."""
    try:
        root = parse_xml(robot.model_path.read_bytes(), robot.model_path)
        check_tree(root)
    except OSError as error:
        raise TrueupError(f"cannot read the model: {error.strerror}", file=robot.model_path) from None
    reader = _Mjcf(robot, root) if root.tag == "mujoco" else None
    return None if reader is None else reader.model()


class _Mjcf:
    """Walks the bodies of an MJCF from the base body on."""

    def __init__(self, robot: Robot, root: XmlNode) -> None:
        self._robot, self._root = robot, root
        self._ids = {name: j for j, name in enumerate(robot.spec.joint_names)}
        compiler = root.find("compiler")
        attrs = {} if compiler is None else compiler.attrs
        self._degree = attrs.get("angle", "degree") != "radian"
        self._euler = attrs.get("eulerseq", "xyz")
        self._classes = _joint_classes(root)
        chosen = robot.options
        self._sets = {(o.body, o.sets): chosen[name] for name, o in robot.spec.options.items() if name in chosen}
        self._links: list[LimbBody] = []
        self._limbs = [0] * robot.spec.njoint
        self._whole, self._imu = True, _IDENTITY

    def model(self) -> LimbModel | None:
        """The model, if every body that a joint carries has its mass in the file."""
        world = self._root.find("worldbody")
        base = None if world is None else next((b for b in world.walk() if _is_body(b, self._robot)), None)
        if base is None or self._root.find("include") is not None:
            return None
        self._body(base, -1, -1, "", is_base=True)
        found = {link.joint for link in self._links}
        if not self._whole or not found.issuperset(range(self._robot.spec.njoint)):
            return None
        limbs = tuple(self._limbs)
        return LimbModel(
            njoint=len(limbs), links=tuple(self._links), limbs=limbs, base_from_imu=np.asarray(self._imu, np.float64)
        )

    def _body(self, node: XmlNode, parent: int, limb: int, inherited: str, *, is_base: bool = False) -> None:
        inherited = node.attrs.get("childclass", inherited)
        inertial, joints = node.find("inertial"), [] if is_base else node.find_all("joint")
        if node.find("freejoint") is not None and not is_base:
            return  # an object, not a part of the robot
        if any(child.tag in ("include", "frame", "replicate", "attach", "composite") for child in node.children):
            self._whole = False
        mass, com = 0.0, np.zeros(3)
        if inertial is not None:
            mass, com = float(inertial.attrs.get("mass", "0")), _numbers(inertial, "pos", "0 0 0")
        elif any(geom.attrs.get("contype") != "0" for geom in node.find_all("geom")):
            self._whole = False  # its mass comes from shapes
        pos, rot = _numbers(node, "pos", "0 0 0"), self._rotation(node)
        name = node.attrs.get("name", "")
        mass = self._sets.get((name, "mass"), mass)
        if (name, "distance") in self._sets:
            pos = pos * self._sets[name, "distance"] / max(float(np.linalg.norm(pos)), 1e-9)
        driven = [joint for joint in joints if joint.attrs.get("name") in self._ids]
        if len(driven) > 1:
            self._whole = False
        self._links.append(self._link(parent, pos, rot, mass, com, driven, inherited))
        here = len(self._links) - 1
        for joint in driven:
            self._limbs[self._ids[joint.attrs["name"]]] = limb
        for site in node.find_all("site"):
            if is_base and site.attrs.get("name") == self._robot.spec.imu:
                self._imu = self._rotation(site)
        for k, child in enumerate(node.find_all("body")):
            self._body(child, here, k if is_base else limb, inherited)

    def _link(
        self,
        parent: int,
        pos: FloatArray,
        rot: FloatArray,
        mass: float,
        com: FloatArray,
        driven: list[XmlNode],
        kind: str,
    ) -> LimbBody:
        axis, anchor, joint, is_slide = np.array([0.0, 0.0, 1.0]), np.zeros(3), -1, False
        if driven:
            attrs = self._classes.get(driven[0].attrs.get("class", kind), self._classes.get("", {})) | driven[0].attrs
            axis = np.array([float(x) for x in attrs.get("axis", "0 0 1").split()])
            anchor = np.array([float(x) for x in attrs.get("pos", "0 0 0").split()])
            joint, is_slide = self._ids[attrs["name"]], attrs.get("type", "hinge") == "slide"
        axis = axis / np.linalg.norm(axis)
        return LimbBody(
            parent=parent,
            pos=pos,
            rot=rot,
            mass=mass,
            com=com,
            joint=joint,
            axis=axis,
            anchor=anchor,
            is_slide=is_slide,
        )

    def _rotation(self, node: XmlNode) -> FloatArray:
        """Orientation of a body or site in its parent."""
        unit = math.pi / 180.0 if self._degree else 1.0
        if "quat" in node.attrs:
            return rotation(_numbers(node, "quat", ""))
        if "euler" in node.attrs:
            turn, angles = np.eye(3), _numbers(node, "euler", "") * unit
            for letter, angle in zip(self._euler, angles, strict=True):
                one = _turn(np.eye(3)["xyz".index(letter.lower())], np.array([angle]))[0]
                turn = turn @ one if letter.islower() else one @ turn
            return turn
        if "axisangle" in node.attrs:
            *axis, angle = _numbers(node, "axisangle", "")
            return _turn(np.array(axis) / np.linalg.norm(axis), np.array([angle * unit]))[0]
        if "xyaxes" in node.attrs or "zaxis" in node.attrs:
            self._whole = False
        return _IDENTITY


def _is_body(node: XmlNode, robot: Robot) -> bool:
    return node.tag == "body" and node.attrs.get("name") == robot.spec.base.body


def _joint_classes(root: XmlNode) -> dict[str, dict[str, str]]:
    """Attributes of joints by default class, what is inherited included; "" is the class of all."""
    classes: dict[str, dict[str, str]] = {}

    def walk(node: XmlNode, above: dict[str, str], top: bool) -> None:
        joint = node.find("joint")
        attrs = above | ({} if joint is None else joint.attrs)
        classes["" if top else node.attrs.get("class", "")] = attrs
        for child in node.find_all("default"):
            walk(child, attrs, False)

    for default in root.find_all("default"):
        walk(default, {}, True)
    return classes


def _numbers(node: XmlNode, key: str, default: str) -> FloatArray:
    try:
        return np.array([float(word) for word in node.attrs.get(key, default).split()])
    except ValueError:
        raise node.error(f"attribute {key} holds something that is no number") from None


def rotation(quat: FloatArray) -> FloatArray:
    """Matrix (3, 3) of a quaternion w x y z of any length."""
    return matrices(quat[None] / np.linalg.norm(quat))[0]


def _turn(axis: FloatArray, angle: FloatArray) -> FloatArray:
    """Matrices (T, 3, 3) of turns by `angle` (T,) about a unit axis."""
    x, y, z = axis
    cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    sin, cos = np.sin(angle)[:, None, None], np.cos(angle)[:, None, None]
    turns: FloatArray = _IDENTITY + sin * cross + (1.0 - cos) * (cross @ cross)
    return turns
