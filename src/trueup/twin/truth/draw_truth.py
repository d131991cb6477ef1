"""From a preset and a seed to the truth of one twin.

Every number hangs on (seed, name of the parameter, joint) alone: switching one effect on or off leaves all other draws
as they were, so two twins can be compared effect by effect.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trueup.core.rows import RowRandom
from trueup.robot.spec import RobotSpec
from trueup.twin.truth.preset import Preset, Range, bounds
from trueup.twin.truth.truth import (
    BodyTruth,
    FrictionTruth,
    GroundTruth,
    HeatTruth,
    JointTruth,
    MotorTruth,
    Nominal,
    PayloadTruth,
    SupplyTruth,
    TransmissionTruth,
    Truth,
)

FloatArray = NDArray[np.float64]
STALL_SHARE = 0.3  # electrical power of a stalled motor at its torque limit, of torque limit x velocity limit


class TruthDraw:
    """Draws values of ranges by name for one seed."""

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def __call__(self, name: str, value: Range, n: int) -> FloatArray:
        """Return n values within the range."""
        low, high = bounds(value)
        unit = RowRandom(self._seed, f"twin {name}", n).uniform(1)[:, 0]
        return low + (high - low) * unit

    def one(self, name: str, value: Range) -> float:
        """Return one value within the range."""
        return float(self(name, value, 1)[0])


def draw_truth(preset: Preset, spec: RobotSpec, nominal: Nominal, seed: int, label: str) -> Truth:
    """Draw everything that the preset leaves open."""
    draw = TruthDraw(seed)
    delay = preset.delay
    joint = _joint(draw, preset, nominal)
    return Truth(
        robot=spec.name,
        preset=label,
        seed=seed,
        joint_names=spec.joint_names,
        joint=joint,
        delay_s=draw.one("delay", delay.seconds) if delay else spec.delay_s,
        jitter_s=draw.one("jitter", delay.jitter) if delay else 0.0,
        sensors=preset.sensors,
        gyro_bias=draw("gyro_bias", preset.sensors.gyro_bias, 3),
        acc_bias=draw("acc_bias", preset.sensors.acc_bias, 3),
        friction=_friction(draw, preset, joint.friction),
        transmission=_transmission(draw, preset, spec),
        motor=_motor(draw, preset, spec),
        supply=_supply(draw, preset, spec),
        heat=_heat(draw, preset, spec),
        body=_body(draw, preset, nominal.bodies),
        payload=_payload(draw, preset, nominal.mass),
        ground=_ground(draw, preset),
    )


def _joint(draw: TruthDraw, preset: Preset, nominal: Nominal) -> JointTruth:
    section, n = preset.joint, len(nominal.armature)

    def moved(name: str, value: FloatArray) -> FloatArray:
        scale, add = getattr(section, f"{name}_scale"), getattr(section, f"{name}_add")
        return draw(f"{name}_scale", scale, n) * value + draw(f"{name}_add", add, n)

    return JointTruth(
        armature=moved("armature", nominal.armature),
        damping=moved("damping", nominal.damping),
        friction=moved("friction", nominal.friction),
        encoder_bias=draw("encoder_bias", section.encoder_bias, n),
        torque_scale=draw("torque_scale", section.torque_scale, n),
    )


def _friction(draw: TruthDraw, preset: Preset, coulomb: FloatArray) -> FrictionTruth | None:
    section, n = preset.friction, len(coulomb)
    if section is None:
        return None
    return FrictionTruth(
        kind=section.kind,
        stiction=coulomb * draw("stiction", section.stiction, n),
        stribeck_vel=draw("stribeck_vel", section.stribeck_vel, n),
        stribeck_power=draw("stribeck_power", section.stribeck_power, n),
        load=draw("load", section.load, n),
        load_rest=draw("load_rest", section.load_rest, n),
        bristle_stiffness=coulomb / draw("bristle", section.bristle, n),
        bristle_damping=draw("bristle_damping", section.bristle_damping, n),
    )


def _transmission(draw: TruthDraw, preset: Preset, spec: RobotSpec) -> TransmissionTruth | None:
    section, n, limit = preset.transmission, spec.njoint, spec.torque_limit
    if section is None:
        return None
    windup = draw("windup", section.windup, n)
    return TransmissionTruth(
        stiffness=limit / windup,
        hardening=draw("hardening", section.hardening, n) * limit / windup**3,
        damping=draw("transmission_damping", section.damping, n),
        hysteresis=draw("hysteresis", section.hysteresis, n) * limit,
        hysteresis_rad=draw("hysteresis_rad", section.hysteresis_rad, n),
        backlash=draw("backlash", section.backlash, n),
    )


def _motor(draw: TruthDraw, preset: Preset, spec: RobotSpec) -> MotorTruth | None:
    section, n = preset.motor, spec.njoint
    if section is None:
        return None
    speed = draw("no_load_speed", section.no_load_speed, n) * spec.velocity_limit
    return MotorTruth(
        torque_limit=draw("torque_limit", section.torque_limit, n) * spec.torque_limit,
        no_load_speed=speed,
        knee_speed=draw("knee", section.knee, n) * speed,
    )


def _supply(draw: TruthDraw, preset: Preset, spec: RobotSpec) -> SupplyTruth | None:
    section = preset.supply
    if section is None:
        return None
    rated_power = float(np.sum(spec.torque_limit * spec.velocity_limit))
    # at rated power P the current is about P/V: sag V = R P/V
    resistance = draw.one("sag", section.sag) * section.voltage**2 / rated_power
    copper = STALL_SHARE * spec.velocity_limit / spec.torque_limit
    return SupplyTruth(voltage=section.voltage, resistance=resistance, copper=copper)


def _heat(draw: TruthDraw, preset: Preset, spec: RobotSpec) -> HeatTruth | None:
    section, n = preset.heat, spec.njoint
    if section is None:
        return None
    return HeatTruth(
        ambient=section.ambient,
        rise=draw("rise", section.rise, n) / spec.torque_limit**2,
        time_constant=draw("time_constant", section.time_constant, n),
        derate_from=section.derate_from,
        derate_to=section.derate_to,
        derate_floor=section.derate_floor,
    )


def _body(draw: TruthDraw, preset: Preset, names: tuple[str, ...]) -> BodyTruth | None:
    section, n = preset.body, len(names)
    if section is None:
        return None
    return BodyTruth(
        names=names,
        mass_scale=draw("mass_scale", section.mass_scale, n),
        inertia_scale=draw("inertia_scale", section.inertia_scale, n),
        com_offset=draw("com_offset", section.com_offset, 3 * n).reshape(n, 3),
    )


def _payload(draw: TruthDraw, preset: Preset, robot_mass: float) -> PayloadTruth | None:
    section = preset.payload
    if section is None:
        return None
    mass = draw.one("payload_mass", section.mass) * robot_mass
    return PayloadTruth(mass=mass, offset=draw("payload_offset", section.offset, 3))


def _ground(draw: TruthDraw, preset: Preset) -> GroundTruth | None:
    section = preset.ground
    if section is None:
        return None
    return GroundTruth(
        friction=draw.one("ground_friction", section.friction),
        timeconst=draw.one("ground_timeconst", section.timeconst),
        dampratio=draw.one("ground_dampratio", section.dampratio),
    )
