"""From a preset and a seed to the truth of one twin.

Every number hangs on (seed, name of the parameter, joint) alone: switching one effect on or off leaves all other draws
as they were, so two twins can be compared effect by effect.
"""

from __future__ import annotations

import msgspec
import numpy as np

from trueup.core.arrays import FloatArray
from trueup.core.rows import RowRandom
from trueup.robot.spec import RobotSpec
from trueup.twin.truth import preset as sections
from trueup.twin.truth import truth as truths
from trueup.twin.truth.truth import Nominal, Truth

STALL_SHARE = 0.3  # electrical power of a stalled motor at its torque limit, of torque limit x velocity limit


class TruthDraw:
    """Draws values of ranges by name for one seed."""

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def __call__(self, name: str, value: sections.Range, n: int) -> FloatArray:
        """Return n values within the range."""
        low, high = sections.bounds(value)
        unit = RowRandom(self._seed, f"twin {name}", n).uniform(1)[:, 0]
        return low + (high - low) * unit

    def one(self, name: str, value: sections.Range) -> float:
        """Return one value within the range."""
        return float(self(name, value, 1)[0])

    def all(self, section: sections.Section, n: int) -> dict[str, FloatArray]:
        """Return n values of every number of a section, by name."""
        values = msgspec.structs.asdict(section)
        return {name: self(name, value, n) for name, value in values.items() if not isinstance(value, str)}


def draw_truth(preset: sections.Preset, spec: RobotSpec, nominal: Nominal, seed: int, label: str) -> Truth:
    """Draw every value that the preset gives as a range."""
    draw, delay = TruthDraw(seed), preset.delay
    joint = _joint(draw, preset, spec, nominal)
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
        friction=_friction(draw, preset.friction, joint.friction) if preset.friction else None,
        transmission=_transmission(draw, preset.transmission, spec.torque_limit) if preset.transmission else None,
        motor=_motor(draw, preset.motor, spec) if preset.motor else None,
        supply=_supply(draw, preset.supply, spec) if preset.supply else None,
        heat=_heat(draw, preset.heat, spec.torque_limit) if preset.heat else None,
        body=_body(draw, preset.body, nominal.bodies) if preset.body else None,
        payload=_payload(draw, preset.payload, nominal.mass) if preset.payload else None,
        ground=_ground(draw, preset.ground) if preset.ground else None,
    )


def _joint(draw: TruthDraw, preset: sections.Preset, spec: RobotSpec, nominal: Nominal) -> truths.JointTruth:
    drawn = draw.all(preset.joint, len(nominal.armature))
    for name in ("armature", "damping", "friction"):
        drawn[name] = drawn.pop(f"{name}_scale") * getattr(nominal, name) + drawn.pop(f"{name}_add")
    drawn["friction"] += drawn.pop("friction_share") * spec.torque_limit
    if preset.weak is not None:
        words = preset.weak.joints
        is_weak = [any(word in name for word in words) for name in spec.joint_names]
        scale = draw("weak_torque_scale", preset.weak.torque_scale, spec.njoint)
        drawn["torque_scale"] *= np.where(is_weak, scale, 1.0)
    return truths.JointTruth(**drawn)


def _friction(draw: TruthDraw, section: sections.FrictionSection, coulomb: FloatArray) -> truths.FrictionTruth:
    drawn = draw.all(section, len(coulomb))
    stiction, stiffness = coulomb * drawn.pop("stiction"), coulomb / drawn.pop("bristle")
    return truths.FrictionTruth(kind=section.kind, stiction=stiction, bristle_stiffness=stiffness, **drawn)


def _transmission(
    draw: TruthDraw, section: sections.TransmissionSection, limit: FloatArray
) -> truths.TransmissionTruth:
    drawn = draw.all(section, len(limit))
    windup = drawn.pop("windup")
    drawn["hardening"] = drawn["hardening"] * limit / windup**3
    drawn["hysteresis"] *= limit
    drawn["damping"] = draw("transmission_damping", section.damping, len(limit))
    return truths.TransmissionTruth(stiffness=limit / windup, **drawn)


def _motor(draw: TruthDraw, section: sections.MotorSection, spec: RobotSpec) -> truths.MotorTruth:
    drawn = draw.all(section, spec.njoint)
    speed = drawn["no_load_speed"] * spec.velocity_limit
    limit = drawn["torque_limit"] * spec.torque_limit
    return truths.MotorTruth(torque_limit=limit, no_load_speed=speed, knee_speed=drawn["knee"] * speed)


def _supply(draw: TruthDraw, section: sections.SupplySection, spec: RobotSpec) -> truths.SupplyTruth:
    rated_power = float(np.sum(spec.torque_limit * spec.velocity_limit))
    # at rated power P the current is about P/V: sag V = R P/V
    resistance = draw.one("sag", section.sag) * section.voltage**2 / rated_power
    copper = STALL_SHARE * spec.velocity_limit / spec.torque_limit
    return truths.SupplyTruth(voltage=section.voltage, resistance=resistance, copper=copper)


def _heat(draw: TruthDraw, section: sections.HeatSection, limit: FloatArray) -> truths.HeatTruth:
    drawn = draw.all(section, len(limit))
    values = msgspec.structs.asdict(section)
    values |= {"rise": drawn["rise"] / limit**2, "time_constant": drawn["time_constant"]}
    return truths.HeatTruth(**values)


def _body(draw: TruthDraw, section: sections.BodySection, names: tuple[str, ...]) -> truths.BodyTruth:
    drawn = draw.all(section, len(names))
    drawn["com_offset"] = draw("com_offset", section.com_offset, 3 * len(names)).reshape(-1, 3)
    return truths.BodyTruth(names=names, **drawn)


def _payload(draw: TruthDraw, section: sections.PayloadSection, robot_mass: float) -> truths.PayloadTruth:
    mass = draw.one("payload_mass", section.mass) * robot_mass
    return truths.PayloadTruth(mass=mass, offset=draw("payload_offset", section.offset, 3))


def _ground(draw: TruthDraw, section: sections.GroundSection) -> truths.GroundTruth:
    values = msgspec.structs.asdict(section)
    return truths.GroundTruth(**{name: draw.one(f"ground_{name}", value) for name, value in values.items()})
