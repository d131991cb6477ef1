"""Servo and physics rate for another robot: the same sag and damping ratio, within what motors and engine bear.

kp    ~ m g l, or more where the robot would sag further under its own weight than the reference, as a share of its
      height, simulated (`settle`): legs that are bent more, a centre of mass off the middle. At most four times as much
      of a motor's limit for each radian as in the reference: beyond that the torque is cut off in every stride.
kd    the same damping ratio (kd + d) / (2 sqrt(kp I)), d the joints' own damping and I the inertia that they move.
rate  the engine takes the servo's spring explicitly: sqrt(kp / I) dt <= 0.4 at the lightest joint. The rate rises in
      whole multiples of the control rate up to 500 Hz or the reference's, then kp falls.

Where the joints of the reference have different gains, joints of a kind (knee, thigh, hip) are taken together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from trueup.core.arrays import FloatArray
from trueup.robot.load import Robot
from trueup.tasks.build import with_servo
from trueup.tasks.similar.figures import RobotFigures
from trueup.tasks.similar.laws import TORQUE, Laws, rounded
from trueup.tasks.task import Rates, Servo
from trueup.world.batch import BatchSim, SimCfg

_MOTOR_SHARE = 4.0
_RAD_PER_STEP = 0.4
_FASTEST_HZ = 500.0
_LEAST_KD = 0.1  # of the whole damping: the servo's own share is never less
_TRIED = np.geomspace(1.0, 4.0, 17)  # times as stiff as ~ m g l
_SETTLE_S, _PHYSICS_HZ = 3.0, 1000.0
_SLACK = 0.01  # of the height
_UPRIGHT = 0.9  # cosine


class Gains(NamedTuple):
    """Of joints of one kind: what the reference has and what the robot gets."""

    reference_kp: float
    reference_kd: float
    kp: float
    kd: float
    ratio: float  # of damping
    damping: float  # the robot's own


class ScaledServo(NamedTuple):
    """Gains by kind of joint (one entry None: all joints), physics rate, and what held kp back (empty: nothing)."""

    gains: dict[int | None, Gains]
    physics_hz: float
    bound: str


class SettledServo(NamedTuple):
    """How much stiffer than ~ m g l, and the shares of their heights at which robot and reference then stand."""

    stiffer: float
    share: float
    reference: float


def scale_servo(rates: Rates, laws: Laws, stiffer: float = 1.0) -> ScaledServo:
    """Scale the reference's servo; `stiffer`: kp beyond ~ m g l, so that the robot sags alike."""
    ref, robot, grows = laws.reference, laws.robot, stiffer * laws.ratio(TORQUE)
    alike = len({(joint.kp, joint.kd) for joint in ref.joints.values()}) == 1
    kinds: Sequence[int | None] = [None] if alike else sorted({joint.kind for joint in ref.joints.values()})
    weakest = min(_of(robot, kind, "torque").min() / _of(ref, kind, "torque").min() for kind in kinds)
    share, bound = min(1.0, _MOTOR_SHARE * weakest / grows), ""
    if share < 1.0:
        bound = f"bounded by the motors: {share:.2f} of what would keep the sag"
    stiffest = max(_of(ref, kind, "kp").mean() for kind in kinds) * grows * share
    usual = round(rates.physics_hz / rates.control_hz)
    needed = math.sqrt(stiffest / robot.lightest) / _RAD_PER_STEP
    steps = min(max(usual, math.ceil(needed / rates.control_hz)), max(usual, int(_FASTEST_HZ // rates.control_hz)))
    rate = rates.control_hz * steps
    most = robot.lightest * (_RAD_PER_STEP * rate) ** 2
    if stiffest > most:
        share *= most / stiffest
        bound = f"bounded by light joints at {rate:g} Hz: {share:.2f} of what would keep the sag"
    return ScaledServo({kind: _gains(laws, kind, grows * share) for kind in kinds}, rate, bound)


def give_servo(scaled: ScaledServo, robot: Robot, figures: RobotFigures) -> Servo:
    """The servo of a robot: one number for all joints, or one for each where kinds or joints outside legs differ."""
    if None in scaled.gains and not figures.others:
        return Servo(kp=scaled.gains[None].kp, kd=scaled.gains[None].kd)
    deepest = max((kind for kind in scaled.gains if kind is not None), default=0)
    pairs = []
    for joint in robot.spec.joints:
        if joint.name in figures.others:  # they keep their own
            pairs.append((float(joint.kp), float(joint.kd)))
        else:
            kind = None if None in scaled.gains else min(figures.joints[joint.name].kind, deepest)
            pairs.append((scaled.gains[kind].kp, scaled.gains[kind].kd))
    kp, kd = zip(*pairs, strict=True)
    return Servo(kp=kp, kd=kd)


def settle(rates: Rates, reference: Robot, robot: Robot, laws: Laws) -> SettledServo:
    """Find the least stiffness at which a robot stands as the reference does, which has its task's servo."""
    wanted = float(settled_shares([reference])[0])
    servos = [give_servo(scale_servo(rates, laws, float(each)), robot, laws.robot) for each in _TRIED]
    shares = settled_shares([with_servo(robot, servo) for servo in servos])
    enough = np.flatnonzero(shares >= wanted - _SLACK)
    best = int(enough[0]) if len(enough) else int(np.argmax(shares))
    return SettledServo(float(_TRIED[best]), float(shares[best]), wanted)


def settled_shares(robots: Sequence[Robot]) -> FloatArray:
    """The share of its standing height that a robot keeps, with servo after servo; 0 if it falls."""
    spec = robots[0].spec
    sim = BatchSim(robots[0], SimCfg(nsim=len(robots), threads=1, control_hz=50.0, physics_hz=_PHYSICS_HZ))
    for name in ("kp", "kd", "torque_limit"):
        sim.params.set(name, np.stack([getattr(robot.spec, name) for robot in robots]))
    sim.reset()
    for _ in range(round(_SETTLE_S / sim.control_dt)):
        sim.step(spec.default_pose)
    upright = (sim.motion.of(None).gravity[:, 2] < -_UPRIGHT) & ~sim.diverged
    return np.where(upright, sim.qpos[:, sim.base_qpos + 2] / spec.base.stand_height, 0.0)


def _gains(laws: Laws, kind: int | None, grows: float) -> Gains:
    ref, robot = laws.reference, laws.robot
    kp0, kd0, damping0, damping = (
        float(_of(figures, kind, field).mean())
        for figures, field in ((ref, "kp"), (ref, "kd"), (ref, "damping"), (robot, "damping"))
    )
    inertia0, inertia = (float(np.exp(np.log(_of(figures, kind, "inertia")).mean())) for figures in (ref, robot))
    ratio = (kd0 + damping0) / (2.0 * math.sqrt(kp0 * inertia0))
    whole = ratio * 2.0 * math.sqrt(kp0 * grows * inertia)
    kd = rounded(max(whole - damping, _LEAST_KD * whole))
    return Gains(kp0, kd0, rounded(kp0 * grows), kd, ratio, damping)


def _of(figures: RobotFigures, kind: int | None, field: str) -> FloatArray:
    """A figure of the leg joints of one kind, or of all."""
    deepest = max(joint.kind for joint in figures.joints.values())
    joints = [joint for joint in figures.joints.values() if kind is None or joint.kind == min(kind, deepest)]
    return np.array([getattr(joint, field) for joint in joints])
