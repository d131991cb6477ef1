"""Retarget: from key points to a motion that a robot can follow, and how good it is before and after."""

from __future__ import annotations

from dataclasses import dataclass
from time import process_time

import numpy as np
from numpy.typing import NDArray

from trueup.core.arrays import FloatArray
from trueup.core.errors import TrueupError
from trueup.motion.bodies import BodyMotion, BodyTree, complete
from trueup.motion.check import check_motion
from trueup.motion.motion import Motion
from trueup.motion.retarget.points import KeyPoints
from trueup.motion.retarget.shape import BodyTargets, Shape, robot_shape, targets
from trueup.motion.retarget.solve import Ik, IkCfg
from trueup.motion.retarget.stance import hold_feet
from trueup.motion.rotations import conjugate, rotate
from trueup.robot.load import Robot

_TOUCH_M = 0.06  # from a hand to the surface of a thing that it touches


@dataclass(frozen=True, kw_only=True)
class RetargetCfg:
    """What is kept to: `hold` feet on contact, limits, `collisions` avoided; `mesh` None: where there are things."""

    hold: bool = True
    limits: bool = True
    collisions: bool = True
    mesh: bool | None = None
    steps: int = 2


@dataclass(frozen=True, kw_only=True)
class Quality:
    """Of a retargeted motion, SI units.

    skate_m_s     mean speed of soles while the source's feet stand
    penetration_m, stance_tilt_rad, beyond_limits_rad, speed_use   as `trueup motion check` measures them
    collision_m   deepest that the robot is in itself or in a thing; `colliding` share of rows
    touch_m       mean change of a hand's distance to what it touches in the source; None: it touches nothing
    """

    skate_m_s: float
    penetration_m: float
    stance_tilt_rad: float
    beyond_limits_rad: float
    speed_use: float
    collision_m: float
    colliding: float
    touch_m: float | None = None


@dataclass(frozen=True, kw_only=True)
class Retargeted:
    """The motion, its quality, that of plain inverse kinematics of the same points, and rows a second of one core."""

    motion: Motion
    before: Quality
    after: Quality
    rows_per_s: float


def retarget(points: KeyPoints, robot: Robot, cfg: RetargetCfg | None = None) -> Retargeted:
    """Give a robot the motion of key points."""
    cfg = cfg or RetargetCfg()
    if len(points) < 2 or not np.isfinite(points.pos).all():
        raise TrueupError("key points need two rows or more of finite numbers")
    tree = BodyTree(robot)
    shape = robot_shape(tree)
    start = process_time()
    raw = targets(points, shape)
    held, stands = hold_feet(raw, shape)
    wanted = held if cfg.hold else raw
    mesh = bool(points.things) if cfg.mesh is None else cfg.mesh
    ik = IkCfg(steps=cfg.steps, limits=cfg.limits, collisions=cfg.collisions, mesh=mesh)
    motion, after = _solved(wanted, shape, ik, stands)
    spent = process_time() - start
    _, before = _solved(raw, shape, IkCfg(steps=cfg.steps, limits=False, collisions=False), stands)
    return Retargeted(motion=motion, before=before, after=after, rows_per_s=len(points) / spent)


def _solved(wanted: BodyTargets, shape: Shape, cfg: IkCfg, stands: NDArray[np.bool_]) -> tuple[Motion, Quality]:
    source, robot = wanted.source, shape.tree.robot
    solver = Ik(shape, source.things, source.rate_hz, cfg)
    root_pos, root_quat, joints = solver.solve(wanted)
    motion = Motion(
        rate_hz=source.rate_hz,
        root_pos=root_pos,
        root_quat=root_quat,
        joint_names=robot.spec.joint_names,
        joint_pos=joints,
        source=f"retargeted:{source.source}",
    )
    whole = complete(motion, robot, shape.tree)
    figures = check_motion(whole, robot, shape.tree).figures
    soles = shape.tree.points(BodyMotion(whole.body_pos, whole.body_quat)).mean(axis=2)
    slide = np.linalg.norm(np.diff(soles[..., :2], axis=0), axis=-1)[stands[1:] & stands[:-1]] * source.rate_hz
    depth = solver.colliding(root_pos, root_quat, joints)
    quality = Quality(
        skate_m_s=float(slide.mean()) if slide.size else 0.0,
        **{name: figures[name] for name in ("penetration_m", "stance_tilt_rad", "beyond_limits_rad", "speed_use")},
        collision_m=float(depth.max()),
        colliding=float((depth > 1e-3).mean()),
        touch_m=_touch(whole, wanted, shape),
    )
    return whole, quality


def _touch(motion: Motion, wanted: BodyTargets, shape: Shape) -> float | None:
    """How much further (or nearer) hands are from the things that the source's hands touch."""
    gaps = []
    for one in wanted.source.things:
        for side in ("left", "right"):
            name = f"{side}_wrist"
            body = motion.body_names.index(shape.bodies[name])
            before = _distance(wanted.source.of(name), one.size, one.pos, one.quat)
            now = _distance(motion.body_pos[:, body], one.size, one.pos, one.quat)
            gaps.append(np.abs(now - before)[before < _TOUCH_M])
    found = np.concatenate(gaps) if gaps else np.zeros(0)
    return float(found.mean()) if len(found) else None


def _distance(at: FloatArray, size: FloatArray, pos: FloatArray, quat: FloatArray) -> FloatArray:
    """Signed distance (T,) of points from the surface of a box."""
    over = np.abs(rotate(conjugate(quat), at - pos)) - size
    outside = np.linalg.norm(np.maximum(over, 0.0), axis=1)
    out: FloatArray = outside + np.minimum(over.max(axis=1), 0.0)
    return out
