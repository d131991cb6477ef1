"""Servo and physics rate for another robot: the same sag and damping ratio, within what motors and engine bear.

kp    ~ m g l: under its own weight the robot sags by the same angles. At most twice as much of the weakest motor's limit
      for each radian as in the reference: beyond that the torque is cut off in every stride.
kd    the same damping ratio (kd + d) / (2 sqrt(kp I)), d the joints' own damping and I the inertia that they move.
rate  the engine takes the servo's spring explicitly: sqrt(kp / I) dt <= 0.4 at the lightest joint. The rate rises in
      whole multiples of the control rate up to 500 Hz or the reference's, then kp falls.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from trueup.tasks.similar.figures import Figures
from trueup.tasks.similar.laws import TORQUE, Laws, rounded
from trueup.tasks.task import Task

_MOTOR_SHARE = 2.0
_RAD_PER_STEP = 0.4
_FASTEST_HZ = 500.0
_LEAST_KD = 0.1  # of the whole damping: the servo's own share is never less


@dataclass(frozen=True, kw_only=True)
class ScaledServo:
    """Gains for every joint, physics rate, and what held them back (empty: nothing)."""

    kp: float
    kd: float
    torque: float | None
    physics_hz: float
    reference_kp: float
    reference_kd: float
    damping_ratio: float
    bound: str


def scale_servo(task: Task, laws: Laws) -> ScaledServo:
    """Scale the servo of a task."""
    ref, robot, servo = laws.reference, laws.robot, task.servo
    kp0 = ref.kp if servo.kp is None else float(servo.kp)
    kd0 = ref.kd if servo.kd is None else float(servo.kd)
    torque0 = ref.torque if servo.torque is None else float(servo.torque)
    kp, bound = kp0 * laws.ratio(TORQUE), ""
    strongest = _MOTOR_SHARE * kp0 / torque0 * robot.torque
    if kp > strongest:
        kp, bound = strongest, f"weak motors: {kp:.3g} would keep the sag"
    rate = _physics_hz(task, robot, kp)
    stiffest = robot.lightest * (_RAD_PER_STEP * rate) ** 2
    if kp > stiffest:
        bound = f"light joints: {kp:.3g} would keep the sag but not stay stable at {rate:g} Hz"
        kp = stiffest
    ratio = (kd0 + ref.damping) / (2.0 * math.sqrt(kp0 * ref.inertia))
    whole = ratio * 2.0 * math.sqrt(kp * robot.inertia)
    return ScaledServo(
        kp=rounded(kp),
        kd=rounded(max(whole - robot.damping, _LEAST_KD * whole)),
        torque=None
        if servo.torque is None
        else rounded(min(servo.torque * laws.ratio(TORQUE), robot.torque)),
        physics_hz=rate,
        reference_kp=kp0,
        reference_kd=kd0,
        damping_ratio=ratio,
        bound=bound,
    )


def _physics_hz(task: Task, robot: Figures, kp: float) -> float:
    control, physics = task.rates.control_hz, task.rates.physics_hz
    needed = math.sqrt(kp / robot.lightest) / _RAD_PER_STEP
    steps = max(round(physics / control), math.ceil(needed / control))
    most = max(round(physics / control), math.floor(_FASTEST_HZ / control))
    return control * min(steps, most)
