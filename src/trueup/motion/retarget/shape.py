"""Shape: a robot's own key points, and where they should be so that it moves as the source does.

Everything is scaled by the length of the legs; arms, shoulders and trunk keep the source's directions with the robot's
lengths, so that a short arm points where a long one pointed.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass, replace

import numpy as np

from trueup.core.arrays import FloatArray
from trueup.core.errors import TrueupError
from trueup.motion.bodies import BodyTree
from trueup.motion.retarget.points import NEEDED, SIDES, KeyPoints
from trueup.motion.rotations import about_axis, multiply, rotate, yaw_of

# bodies of a robot by role; the first that exists
_BODIES = {
    "hip": ("hip_roll", "hip_yaw", "hip"),
    "knee": ("knee", "shin", "calf"),
    "ankle": ("ankle_roll", "ankle", "foot"),
    "shoulder": ("shoulder_roll", "shoulder_pitch", "shoulder"),
    "elbow": ("elbow", "forearm"),
    "wrist": ("wrist_yaw", "wrist", "hand", "forearm"),
}
_STANDING = 0.98  # of the leg's length: knees that are all but straight cannot be controlled


@dataclass(frozen=True)
class Shape:
    """Bodies of a robot at its key points, and its lengths in m.

    bodies   body of each of NEEDED; `pelvis`, `torso`: bodies whose rotation is given
    hips     middle of the hips in the pelvis's frame, (3,)
    sole_m   height of the ankle's origin over the ground when the foot is flat
    """

    tree: BodyTree
    bodies: dict[str, str]
    pelvis: str
    torso: str
    rest: dict[str, FloatArray]
    hips: FloatArray
    sole_m: float

    def length(self, *roles: str) -> float:
        """Along a chain of roles, mean of both sides."""
        steps = itertools.pairwise(roles)
        return sum(
            float(np.mean([np.linalg.norm(self.rest[f"{s}_{a}"] - self.rest[f"{s}_{b}"]) for s in SIDES]))
            for a, b in steps
        )


def robot_shape(tree: BodyTree) -> Shape:
    """Key points of a humanoid by the names of its bodies."""
    spec = tree.robot.spec
    found = {}
    for role in NEEDED:
        side, limb = role.split("_")
        words = (f"{side}.*{word}" for word in _BODIES[limb])
        body = next((name for word in words for name in tree.names if re.search(word, name.lower())), None)
        if body is None:
            raise TrueupError(f"robot {spec.name!r} has no body at its {role.replace('_', ' ')}: it is no humanoid")
        found[role] = body
    torso = next((name for name in tree.names if re.search("torso|chest", name.lower())), None)
    if torso is None or len(tree.feet) != 2:
        raise TrueupError(f"robot {spec.name!r} needs a torso and two feet to be given a person's motion")
    stand = (np.array([[0.0, 0.0, spec.base.stand_height]]), np.array([[1.0, 0, 0, 0]]), spec.default_pose[None])
    placed = tree.place(*stand)
    rest = {role: np.asarray(placed.pos[0, tree.index(body)], float) for role, body in found.items()}
    sole = float(rest["left_ankle"][2] - tree.lowest(placed)[0, 0])
    hips = 0.5 * (rest["left_hip"] + rest["right_hip"]) - np.asarray(placed.pos[0, 0], float)
    return Shape(tree, found, tree.names[0], torso, rest, hips, sole)


@dataclass(frozen=True, kw_only=True)
class BodyTargets:
    """Where a robot's parts should be in every row: `pos` by role (T, 3) and `quat` of pelvis, torso and both feet.

    source  the key points scaled to the robot, on its ground: what the interaction mesh keeps
    """

    pos: dict[str, FloatArray]
    quat: dict[str, FloatArray]
    source: KeyPoints


def targets(points: KeyPoints, shape: Shape) -> BodyTargets:
    """Targets of every row, before contacts are held."""
    scaled = _scaled(points, shape)
    across, up = scaled.of("left_hip") - scaled.of("right_hip"), scaled.of("chest") - scaled.of("pelvis")
    quat = {"pelvis": _frame(across, up), "torso": _frame(scaled.of("left_shoulder") - scaled.of("right_shoulder"), up)}
    rest, hips = shape.rest, scaled.of("pelvis")
    pos = {"pelvis": hips - rotate(quat["pelvis"], np.tile(shape.hips, (len(points), 1)))}
    middle = {key: 0.5 * (rest[f"left_{key}"] + rest[f"right_{key}"]) for key in ("hip", "shoulder")}
    half = 0.5 * np.linalg.norm(rest["left_shoulder"] - rest["right_shoulder"])
    pos["chest"] = hips + float(np.linalg.norm(middle["shoulder"] - middle["hip"])) * _unit(up)
    for side in SIDES:
        pos[f"{side}_ankle"] = scaled.of(f"{side}_ankle").copy()
        pos[f"{side}_knee"] = scaled.of(f"{side}_knee").copy()
        sideways = rotate(quat["torso"], np.tile([0.0, half if side == "left" else -half, 0.0], (len(points), 1)))
        at = pos["chest"] + sideways
        pos[f"{side}_shoulder"] = at
        for upper, lower in (("shoulder", "elbow"), ("elbow", "wrist")):
            way = _unit(scaled.of(f"{side}_{lower}") - scaled.of(f"{side}_{upper}"))
            at = at + shape.length(upper, lower) * way
            pos[f"{side}_{lower}"] = at
        quat[f"{side}_ankle"] = _foot(scaled, side, quat["pelvis"])
    return BodyTargets(pos=pos, quat=quat, source=scaled)


def _scaled(points: KeyPoints, shape: Shape) -> KeyPoints:
    """Points and things times leg over leg; the lowest ankles stand as high as the robot's."""
    legs = [
        np.linalg.norm(points.of(f"{s}_{a}") - points.of(f"{s}_{b}"), axis=1)
        for s in SIDES
        for a, b in (("hip", "knee"), ("knee", "ankle"))
    ]
    scale = _STANDING * shape.length("hip", "knee", "ankle") / (0.5 * float(np.median(np.sum(legs, axis=0))))
    ankles = np.minimum(points.of("left_ankle")[:, 2], points.of("right_ankle")[:, 2])
    lift = np.array([0.0, 0.0, shape.sole_m - scale * float(np.quantile(ankles, 0.05))])
    things = tuple(replace(one, size=scale * one.size, pos=scale * one.pos) for one in points.things)
    return replace(points, pos=scale * points.pos + lift, things=things)


def _foot(points: KeyPoints, side: str, pelvis: FloatArray) -> FloatArray:
    """Heading and pitch of a foot: flat where the toe is as high over the ankle as it mostly is when low."""
    if f"{side}_toe" not in points.names:
        zero = np.zeros(len(points))
        return _heading(np.stack([np.cos(yaw_of(pelvis)), np.sin(yaw_of(pelvis)), zero], axis=1))
    way = points.of(f"{side}_toe") - points.of(f"{side}_ankle")
    pitch = -np.arctan2(way[:, 2], np.linalg.norm(way[:, :2], axis=1))
    height = points.of(f"{side}_ankle")[:, 2]
    flat = float(np.median(pitch[height <= np.quantile(height, 0.3)]))
    return multiply(_heading(way), about_axis(np.array([0.0, 1.0, 0.0]), np.clip(pitch - flat, -0.8, 0.8)))


def _heading(way: FloatArray) -> FloatArray:
    return about_axis(np.array([0.0, 0.0, 1.0]), np.arctan2(way[:, 1], way[:, 0]))


def _frame(across: FloatArray, up: FloatArray) -> FloatArray:
    """Rotation whose y axis is `across` and whose z axis is near `up`, (T, 4)."""
    y = _unit(across)
    x = _unit(np.cross(y, up))
    return matrix_quat(np.stack([x, y, np.cross(x, y)], axis=2))


def matrix_quat(matrix: FloatArray) -> FloatArray:
    """Quaternions w x y z (..., 4) of rotation matrices (..., 3, 3)."""
    from scipy.spatial.transform import Rotation

    flat = Rotation.from_matrix(matrix.reshape(-1, 3, 3)).as_quat()[:, [3, 0, 1, 2]]
    return flat.reshape(*matrix.shape[:-2], 4)


def _unit(vectors: FloatArray) -> FloatArray:
    out: FloatArray = vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-9)
    return out
