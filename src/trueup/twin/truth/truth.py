"""The truth of one twin: every hidden number, per joint and body, in SI units.

The truth goes into the physics and into the sealed file, nowhere else.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import msgspec

from trueup.core.arrays import FloatArray
from trueup.twin.truth.preset import SensorSection


class Nominal(NamedTuple):
    """What the robot's model says, and what a draw is relative to: per joint, then per body."""

    armature: FloatArray
    damping: FloatArray
    friction: FloatArray
    bodies: tuple[str, ...]
    mass: float  # of the whole robot


class JointTruth(msgspec.Struct, frozen=True):
    """Per joint; `torque_scale` is torque given over torque reported."""

    armature: FloatArray
    damping: FloatArray
    friction: FloatArray
    encoder_bias: FloatArray
    torque_scale: FloatArray


class FrictionTruth(msgspec.Struct, frozen=True):
    """Per joint, N m and rad; the Coulomb part is `JointTruth.friction`. Bristle: N m/rad and N m s/rad."""

    kind: Literal["stribeck", "lugre"]
    stiction: FloatArray
    stribeck_vel: FloatArray
    stribeck_power: FloatArray
    load: FloatArray
    load_rest: FloatArray
    bristle_stiffness: FloatArray
    bristle_damping: FloatArray  # damping ratio until the plant is built, then N m s/rad


class TransmissionTruth(msgspec.Struct, frozen=True):
    """Per joint: stiffness N m/rad, hardening N m/rad^3, damping N m s/rad (see FrictionTruth), hysteresis N m, rad."""

    stiffness: FloatArray
    hardening: FloatArray
    damping: FloatArray
    hysteresis: FloatArray
    hysteresis_rad: FloatArray
    backlash: FloatArray


class MotorTruth(msgspec.Struct, frozen=True):
    """Per joint: torque limit N m, no-load speed and knee rad/s."""

    torque_limit: FloatArray
    no_load_speed: FloatArray
    knee_speed: FloatArray


class SupplyTruth(msgspec.Struct, frozen=True):
    """Open-circuit voltage V, resistance Ohm, copper loss per joint W/(N m)^2."""

    voltage: float
    resistance: float
    copper: FloatArray


class HeatTruth(msgspec.Struct, frozen=True):
    """Per joint: rise deg C per (N m)^2 in the long run, time constant s; and the derating."""

    ambient: float
    rise: FloatArray
    time_constant: FloatArray
    derate_from: float
    derate_to: float
    derate_floor: float


class BodyTruth(msgspec.Struct, frozen=True):
    """Per body: mass scale, inertia scale beyond it, centre-of-mass offset (nbody, 3) in m."""

    names: tuple[str, ...]
    mass_scale: FloatArray
    inertia_scale: FloatArray
    com_offset: FloatArray


class PayloadTruth(msgspec.Struct, frozen=True):
    """kg, and m from the base frame or the tool."""

    mass: float
    offset: FloatArray


class GroundTruth(msgspec.Struct, frozen=True):
    """Sliding friction, softness s, damping ratio."""

    friction: float
    timeconst: float
    dampratio: float


class Truth(msgspec.Struct, frozen=True):
    """Everything hidden of one twin."""

    robot: str
    preset: str
    seed: int
    joint_names: tuple[str, ...]
    joint: JointTruth
    delay_s: float
    jitter_s: float
    sensors: SensorSection
    gyro_bias: FloatArray
    acc_bias: FloatArray
    friction: FrictionTruth | None = None
    transmission: TransmissionTruth | None = None
    motor: MotorTruth | None = None
    supply: SupplyTruth | None = None
    heat: HeatTruth | None = None
    body: BodyTruth | None = None
    payload: PayloadTruth | None = None
    ground: GroundTruth | None = None
    notes: list[str] = msgspec.field(default_factory=list)  # draws lowered to what the integrator carries; losses


def truth_json(truth: Truth) -> bytes:
    """Return the truth as JSON."""
    return msgspec.json.encode(truth, enc_hook=lambda array: array.tolist())
