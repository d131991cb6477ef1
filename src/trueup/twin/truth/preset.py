"""Presets: which hidden effects a twin has and the ranges its parameters are drawn from, as TOML.

A value is a number or [low, high]; from a range every joint (or body) draws its own value, so motors are unequal. A
section that is left out switches its effect off. Scales and shares are relative to the robot's own spec and model, so
that one preset fits a desktop arm and a quadruped. `Annotated` has the least and the most that a value may be.
"""

from __future__ import annotations

import math
import re
from functools import cache
from pathlib import Path
from typing import Annotated, Literal, get_origin, get_type_hints

import msgspec

from trueup.core.documents import read_toml
from trueup.core.errors import TrueupError, did_you_mean

PRESETS = Path(__file__).parent / "presets"
SCHEMA = 1
Range = float | tuple[float, float]


def bounds(value: Range) -> tuple[float, float]:
    """Return (low, high) of a value or range."""
    return value if isinstance(value, tuple) else (value, value)


@cache
def _limits(section: type) -> dict[str, tuple[float, float]]:
    """Least and most of every number of a section."""
    hints = get_type_hints(section, include_extras=True)
    return {name: hint.__metadata__[0] for name, hint in hints.items() if get_origin(hint) is Annotated}


class Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of every section: unknown keys are refused, every number stays within its limits."""

    def __post_init__(self) -> None:
        for name, (least, most) in _limits(type(self)).items():
            low, high = bounds(getattr(self, name))
            if not (math.isfinite(low) and math.isfinite(high) and low <= high):
                raise ValueError(f"{name} = [low, high] needs finite low <= high, found [{low}, {high}]")
            if low < least or high > most:
                raise ValueError(f"{name} must lie within {least:g} and {most:g}, found [{low:g}, {high:g}]")


class JointSection(Section, frozen=True, kw_only=True):
    """Joint dynamics that differ from the model: truth = scale x model + add; and the encoder's offset."""

    armature_scale: Annotated[Range, (0.05, 20.0)] = 1.0
    armature_add: Annotated[Range, (0.0, 1.0)] = 0.0  # kg m^2
    damping_scale: Annotated[Range, (0.0, 20.0)] = 1.0
    damping_add: Annotated[Range, (0.0, 50.0)] = 0.0  # N m s/rad
    friction_scale: Annotated[Range, (0.0, 20.0)] = 1.0
    friction_add: Annotated[Range, (0.0, 50.0)] = 0.0  # N m
    friction_share: Annotated[Range, (0.0, 0.5)] = 0.0  # further dry friction, of the torque limit
    encoder_bias: Annotated[Range, (-0.5, 0.5)] = 0.0  # rad, measured minus true
    torque_scale: Annotated[Range, (0.2, 2.0)] = 1.0  # torque given / torque reported


class WeakSection(Section, frozen=True, kw_only=True):
    """Joints that give less than they are asked for: those whose name has one of the words; robots may have none."""

    joints: tuple[str, ...]
    torque_scale: Annotated[Range, (0.2, 1.0)] = 1.0  # times that of [joint]


class FrictionSection(Section, frozen=True, kw_only=True):
    """Dry friction beyond Coulomb: "stribeck" is M4 of `models.friction`, "lugre" has a bristle that bends first."""

    kind: Literal["stribeck", "lugre"]
    stiction: Annotated[Range, (0.0, 10.0)] = 0.0  # extra at rest, of the Coulomb friction
    stribeck_vel: Annotated[Range, (0.001, 100.0)] = 0.2  # rad/s
    stribeck_power: Annotated[Range, (0.2, 4.0)] = 1.35
    load: Annotated[Range, (0.0, 0.8)] = 0.0  # N m of friction per N m through the gears (stribeck)
    load_rest: Annotated[Range, (0.0, 0.8)] = 0.0  # the same, extra at rest (stribeck)
    bristle: Annotated[Range, (1e-6, 0.5)] = 0.002  # rad of bending at which Coulomb friction is reached (lugre)
    bristle_damping: Annotated[Range, (0.0, 1.0)] = 0.5  # damping ratio of the bristle (lugre)


class TransmissionSection(Section, frozen=True, kw_only=True):
    """A gear between motor and link: a spring that stiffens, with hysteresis and play. Encoder on the motor's side."""

    windup: Annotated[Range, (1e-4, 1.0)] = 0.02  # rad at the joint's torque limit, without the stiffening part
    hardening: Annotated[Range, (0.0, 10.0)] = 0.0  # extra torque at that wind-up, of the torque limit
    damping: Annotated[Range, (0.0, 1.0)] = 0.1  # damping ratio of motor against link
    hysteresis: Annotated[Range, (0.0, 0.5)] = 0.0  # torque of the hysteretic part, of the torque limit
    hysteresis_rad: Annotated[Range, (1e-5, 0.5)] = 0.003  # deflection in which it turns round
    backlash: Annotated[Range, (0.0, 0.3)] = 0.0  # play, rad, end to end


class MotorSection(Section, frozen=True, kw_only=True):
    """Torque-speed curve: flat up to the knee, then falling to zero at no-load speed; braking torque stays."""

    torque_limit: Annotated[Range, (0.05, 2.0)] = 1.0  # of the spec's
    no_load_speed: Annotated[Range, (0.05, 10.0)] = 1.0  # of the spec's velocity limit
    knee: Annotated[Range, (0.0, 0.95)] = 0.0  # share of the no-load speed up to which full torque is there


class SupplySection(Section, frozen=True, kw_only=True):
    """Battery behind a resistance: what the motors draw lowers the voltage and with it the no-load speed."""

    voltage: Annotated[float, (1.0, 1000.0)] = 24.0
    sag: Annotated[Range, (0.0, 0.9)] = 0.0  # share of the voltage lost at rated power: sum of torque x speed limits


class HeatSection(Section, frozen=True, kw_only=True):
    """One thermal mass per motor; above `derate_from` the torque limit falls, at `derate_to` to `derate_floor`."""

    ambient: Annotated[float, (-60.0, 80.0)] = 25.0  # deg C
    rise: Annotated[Range, (0.0, 5000.0)] = 300.0  # deg C above ambient when torque stays at the limit for ever
    time_constant: Annotated[Range, (0.05, 1e5)] = 120.0  # s
    derate_from: Annotated[float, (-60.0, 500.0)] = 70.0  # deg C
    derate_to: Annotated[float, (-60.0, 500.0)] = 100.0  # deg C
    derate_floor: Annotated[float, (0.0, 1.0)] = 0.2  # share of the torque limit

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.derate_to <= self.derate_from:
            raise ValueError("derate_to must be above derate_from")


class DelaySection(Section, frozen=True, kw_only=True):
    """From command to torque: one delay for the robot, plus a fresh jitter for every command."""

    seconds: Annotated[Range, (0.0, 0.2)] = 0.0
    jitter: Annotated[Range, (0.0, 0.1)] = 0.0  # s, each command waits longer by a uniform share of this


class BodySection(Section, frozen=True, kw_only=True):
    """Masses, centres of mass and inertias that differ from the model, drawn per body."""

    mass_scale: Annotated[Range, (0.1, 10.0)] = 1.0  # inertia follows
    inertia_scale: Annotated[Range, (0.1, 10.0)] = 1.0  # beyond that of the mass
    com_offset: Annotated[Range, (-0.1, 0.1)] = 0.0  # m, per axis


class PayloadSection(Section, frozen=True, kw_only=True):
    """A mass that the model does not know, on the base of a floating robot or at the end effector of an arm."""

    mass: Annotated[Range, (0.0, 2.0)] = 0.1  # of the robot's mass
    offset: Annotated[Range, (-0.5, 0.5)] = 0.0  # m, per axis, from the body's frame (base) or the tool


class GroundSection(Section, frozen=True, kw_only=True):
    """Ground under a free robot."""

    friction: Annotated[Range, (0.01, 3.0)] = 1.0
    timeconst: Annotated[Range, (0.004, 0.5)] = 0.02  # s, larger is softer
    dampratio: Annotated[Range, (0.05, 5.0)] = 1.0


class SensorSection(Section, frozen=True, kw_only=True):
    """Noise (standard deviations) and resolution of what the robot reports. The servo itself reads without noise."""

    position_noise: Annotated[float, (0.0, 0.5)] = 0.0  # rad
    velocity_noise: Annotated[float, (0.0, 10.0)] = 0.0  # rad/s
    torque_noise: Annotated[float, (0.0, 1.0)] = 0.0  # of the torque limit
    encoder_counts: Annotated[float, (0.0, 1e9)] = 0.0  # per turn; 0: no quantisation
    velocity_step: Annotated[float, (0.0, 10.0)] = 0.0  # rad/s; 0: no quantisation
    gyro_noise: Annotated[float, (0.0, 10.0)] = 0.0  # rad/s
    gyro_bias: Annotated[Range, (-10.0, 10.0)] = 0.0  # rad/s, per axis
    acc_noise: Annotated[float, (0.0, 50.0)] = 0.0  # m/s^2
    acc_bias: Annotated[Range, (-50.0, 50.0)] = 0.0  # m/s^2, per axis


class Preset(Section, frozen=True, kw_only=True):
    """A kind of twin."""

    schema: int
    description: str = ""
    physics_hz: Annotated[float, (200.0, 4000.0)] = 1000.0  # at least; raised to a whole multiple of the command rate
    joint: JointSection = JointSection()
    weak: WeakSection | None = None
    friction: FrictionSection | None = None
    transmission: TransmissionSection | None = None
    motor: MotorSection | None = None
    supply: SupplySection | None = None
    heat: HeatSection | None = None
    delay: DelaySection | None = None
    body: BodySection | None = None
    payload: PayloadSection | None = None
    ground: GroundSection | None = None
    sensors: SensorSection = SensorSection()

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.schema != SCHEMA:
            raise ValueError(f"schema {self.schema} is not known to this version (it reads schema {SCHEMA})")
        if self.supply is not None and self.motor is None:
            raise ValueError("[supply] acts through the torque-speed curve: add [motor]")


def preset_names() -> tuple[str, ...]:
    """Names of the presets that ship."""
    return tuple(sorted(file.stem for file in PRESETS.glob("*.toml")))


def preset_label(reference: str | Path) -> str:
    """Return a short name for file names and reports."""
    return re.sub(r"[^A-Za-z0-9_.-]", "_", Path(reference).stem)[:64] or "preset"


def read_preset(reference: str | Path) -> Preset:
    """Read and check a shipped preset by name, or one's own by path; every failure names the file and the key."""
    text, shipped = str(reference), preset_names()
    if text in shipped:
        text = str(PRESETS / f"{text}.toml")
    elif not (text.endswith(".toml") or "/" in text):
        raise TrueupError(f"no twin preset {text!r}{did_you_mean(text, shipped)}; or give a path to a .toml file")
    return read_toml(text, Preset, "preset", f"no such preset file (shipped: {', '.join(shipped)})")
