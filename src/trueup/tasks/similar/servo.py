"""Servo and physics rate for another robot: the same sag and damping ratio, within what motors and engine bear.

kp    ~ m g l, or more where the robot would sag further under its own weight than the reference (legs that are bent
      more, a centre of mass off the middle: `settle`). At most four times as much of a motor's limit for each radian as
      in the reference: beyond that the torque is cut off in every stride.
kd    the same damping ratio (kd + d) / (2 sqrt(kp I)), d the joints' own damping and I the inertia that they move.
rate  the engine takes the servo's spring explicitly: sqrt(kp / I) dt <= 0.4 at the lightest joint. The rate rises in
      whole multiples of the control rate up to 500 Hz or the reference's, then kp falls.

Where the reference has gains for each joint, joints of a kind (knee, thigh, hip) are taken together.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from trueup.robot.load import Robot
from trueup.tasks.similar.figures import Figures, JointFigures
from trueup.tasks.similar.laws import TORQUE, Laws, rounded
from trueup.tasks.task import Servo, Task

Numbers = float | tuple[float, ...] | None
_MOTOR_SHARE = 4.0
_RAD_PER_STEP = 0.4
_FASTEST_HZ = 500.0
_LEAST_KD = 0.1  # of the whole damping: the servo's own share is never less


@dataclass(frozen=True, kw_only=True)
class Gains:
    """Of joints of one kind: what the reference has and what the robot gets."""

    reference_kp: float
    reference_kd: float
    kp: float
    kd: float
    ratio: float  # of damping
    damping: float  # the robot's own


@dataclass(frozen=True, kw_only=True)
class ScaledServo:
    """Gains by kind of joint (one entry None: all joints), physics rate, and what held kp back (empty: nothing)."""

    gains: dict[int | None, Gains]
    physics_hz: float
    bound: str


def scale_servo(task: Task, laws: Laws, stiffer: float = 1.0) -> ScaledServo:
    """Scale the servo of a task; `stiffer`: kp beyond ~ m g l, so that the robot sags alike."""
    ref, robot, grows = laws.reference, laws.robot, stiffer * laws.ratio(TORQUE)
    kinds = kinds_of(task, ref)
    kp0 = {kind: _value(task.servo.kp, ref, kind, "kp") for kind in kinds}
    limit0 = {kind: _value(task.servo.torque, ref, kind, "torque") for kind in kinds}
    weak = {kind: _limit(robot, kind) / limit0[kind] * _MOTOR_SHARE / grows for kind in kinds}
    share, bound = min(1.0, *weak.values()), ""
    if share < 1.0:
        bound = f"bounded by the motors: {share:.2f} of what would keep the sag"
    stiffest = max(kp0.values()) * grows * share
    rate = _physics_hz(task, robot, stiffest)
    most = robot.lightest * (_RAD_PER_STEP * rate) ** 2
    if stiffest > most:
        share *= most / stiffest
        bound = f"bounded by light joints at {rate:g} Hz: {share:.2f} of what would keep the sag"
    gains = {kind: _gains(task, laws, kind, kp0[kind], kp0[kind] * grows * share) for kind in kinds}
    return ScaledServo(gains=gains, physics_hz=rate, bound=bound)


def kinds_of(task: Task, reference: Figures) -> list[int | None]:
    """Kinds of joints whose gains differ in the reference; [None] if none do."""
    if not any(isinstance(value, tuple) for value in (task.servo.kp, task.servo.kd)):
        return [None]
    return sorted({joint.kind for joint in reference.joints.values()})


def give_servo(scaled: ScaledServo, robot: Robot, figures: Figures) -> Servo:
    """The servo of a robot: one number for all joints, or one for each where kinds or joints outside legs differ."""
    kp, kd = (
        _spread({kind: getattr(each, name) for kind, each in scaled.gains.items()}, robot, figures, name)
        for name in ("kp", "kd")
    )
    return Servo(kp=kp, kd=kd)


def _spread(values: dict[int | None, float], robot: Robot, figures: Figures, name: str) -> Numbers:
    if list(values) == [None] and not figures.others:
        return values[None]
    deepest = max((kind for kind in values if kind is not None), default=0)
    out = []
    for joint in robot.spec.joints:
        if joint.name in figures.others:  # they keep their own
            out.append(float(getattr(joint, name)))
        else:
            out.append(values[None if None in values else min(figures.joints[joint.name].kind, deepest)])
    return tuple(out)


def _gains(task: Task, laws: Laws, kind: int | None, kp0: float, kp: float) -> Gains:
    ref, robot = laws.reference, laws.robot
    kd0 = _value(task.servo.kd, ref, kind, "kd")
    ratio = (kd0 + _mean(ref, kind, "damping")) / (2.0 * math.sqrt(kp0 * _mean(ref, kind, "inertia")))
    whole, own = ratio * 2.0 * math.sqrt(kp * _mean(robot, kind, "inertia")), _mean(robot, kind, "damping")
    return Gains(
        reference_kp=kp0,
        reference_kd=kd0,
        kp=rounded(kp),
        kd=rounded(max(whole - own, _LEAST_KD * whole)),
        ratio=ratio,
        damping=own,
    )


def _of_kind(figures: Figures, kind: int | None) -> list[JointFigures]:
    deepest = max(joint.kind for joint in figures.joints.values())
    return [joint for joint in figures.joints.values() if kind is None or joint.kind == min(kind, deepest)]


def _mean(figures: Figures, kind: int | None, field: str) -> float:
    """Geometric mean of inertias, arithmetic of everything else."""
    values = np.array([getattr(joint, field) for joint in _of_kind(figures, kind)])
    return float(np.exp(np.log(values).mean()) if field == "inertia" else values.mean())


def _limit(figures: Figures, kind: int | None) -> float:
    return min(joint.torque for joint in _of_kind(figures, kind))


def _value(value: Numbers, figures: Figures, kind: int | None, field: str) -> float:
    """A number of the reference's servo: its own, or the robot's where it has none."""
    if isinstance(value, tuple):
        names = list(figures.joints)
        mine = [value[k] for k, name in enumerate(names) if kind is None or figures.joints[name].kind == kind]
        return float(np.mean(mine))
    if value is not None:
        return float(value)
    return _limit(figures, kind) if field == "torque" else _mean(figures, kind, field)


def _physics_hz(task: Task, robot: Figures, kp: float) -> float:
    control, physics = task.rates.control_hz, task.rates.physics_hz
    needed = math.sqrt(kp / robot.lightest) / _RAD_PER_STEP
    steps = max(round(physics / control), math.ceil(needed / control))
    most = max(round(physics / control), math.floor(_FASTEST_HZ / control))
    return control * min(steps, most)
