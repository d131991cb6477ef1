"""Presets: which hidden effects a twin has and the ranges its parameters are drawn from, as TOML.

A value is a number or [low, high]; from a range every joint (or body) draws its own value, so motors are unequal. A
section that is left out switches its effect off. Scales and shares are relative to the robot's own spec and model, so
that one preset fits a desktop arm and a quadruped.
"""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import ClassVar, Literal

import msgspec

from trueup.core.errors import TrueupError, did_you_mean
from trueup.core.toml import parse_toml, read_toml

PRESETS = Path(__file__).parent / "presets"
SCHEMA = 1
Range = float | tuple[float, float]
Limits = dict[str, tuple[float, float]]


def bounds(value: Range) -> tuple[float, float]:
    """Return (low, high) of a value or range."""
    return value if isinstance(value, tuple) else (value, value)


class _Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of every section: unknown keys are refused, every number stays within LIMITS."""

    LIMITS: ClassVar[Limits] = {}

    def __post_init__(self) -> None:
        for name, (least, most) in self.LIMITS.items():
            low, high = bounds(getattr(self, name))
            if not (math.isfinite(low) and math.isfinite(high) and low <= high):
                raise ValueError(f"{name} = [low, high] needs finite low <= high, found [{low}, {high}]")
            if low < least or high > most:
                raise ValueError(f"{name} must lie within {least:g} and {most:g}, found [{low:g}, {high:g}]")


class JointSection(_Section, frozen=True, kw_only=True):
    """Joint dynamics that differ from the model: truth = scale x model + add; and the encoder's offset."""

    armature_scale: Range = 1.0
    armature_add: Range = 0.0  # kg m^2
    damping_scale: Range = 1.0
    damping_add: Range = 0.0  # N m s/rad
    friction_scale: Range = 1.0
    friction_add: Range = 0.0  # N m
    encoder_bias: Range = 0.0  # rad, measured minus true
    torque_scale: Range = 1.0  # torque given / torque reported

    LIMITS: ClassVar[Limits] = {
        "armature_scale": (0.05, 20.0),
        "armature_add": (0.0, 1.0),
        "damping_scale": (0.0, 20.0),
        "damping_add": (0.0, 50.0),
        "friction_scale": (0.0, 20.0),
        "friction_add": (0.0, 50.0),
        "encoder_bias": (-0.5, 0.5),
        "torque_scale": (0.2, 2.0),
    }


class FrictionSection(_Section, frozen=True, kw_only=True):
    """Dry friction beyond Coulomb: "stribeck" is M4 of `models.friction`, "lugre" has a bristle that bends first."""

    kind: Literal["stribeck", "lugre"]
    stiction: Range = 0.0  # extra at rest, of the Coulomb friction
    stribeck_vel: Range = 0.2  # rad/s
    stribeck_power: Range = 1.35
    load: Range = 0.0  # N m of friction per N m through the gears (stribeck)
    load_rest: Range = 0.0  # the same, extra at rest (stribeck)
    bristle: Range = 0.002  # rad of bending at which Coulomb friction is reached (lugre)
    bristle_damping: Range = 0.5  # damping ratio of the bristle (lugre)

    LIMITS: ClassVar[Limits] = {
        "stiction": (0.0, 10.0),
        "stribeck_vel": (0.001, 100.0),
        "stribeck_power": (0.2, 4.0),
        "load": (0.0, 0.8),
        "load_rest": (0.0, 0.8),
        "bristle": (1e-6, 0.5),
        "bristle_damping": (0.0, 1.0),
    }


class TransmissionSection(_Section, frozen=True, kw_only=True):
    """A gear between motor and link: a spring that stiffens, with hysteresis and play. Encoder on the motor's side."""

    windup: Range = 0.02  # rad at the joint's torque limit, without the stiffening part
    hardening: Range = 0.0  # extra torque at that wind-up from the cubic part, of the torque limit
    damping: Range = 0.1  # damping ratio of motor against link
    hysteresis: Range = 0.0  # torque of the hysteretic part, of the torque limit
    hysteresis_rad: Range = 0.003  # deflection in which it turns round
    backlash: Range = 0.0  # play, rad, end to end

    LIMITS: ClassVar[Limits] = {
        "windup": (1e-4, 1.0),
        "hardening": (0.0, 10.0),
        "damping": (0.0, 1.0),
        "hysteresis": (0.0, 0.5),
        "hysteresis_rad": (1e-5, 0.5),
        "backlash": (0.0, 0.3),
    }


class MotorSection(_Section, frozen=True, kw_only=True):
    """Torque-speed curve: flat up to the knee, then falling to zero at no-load speed; braking torque stays."""

    torque_limit: Range = 1.0  # of the spec's
    no_load_speed: Range = 1.0  # of the spec's velocity limit
    knee: Range = 0.0  # share of the no-load speed up to which full torque is there

    LIMITS: ClassVar[Limits] = {"torque_limit": (0.05, 2.0), "no_load_speed": (0.05, 10.0), "knee": (0.0, 0.95)}


class SupplySection(_Section, frozen=True, kw_only=True):
    """Battery behind a resistance: what the motors draw lowers the voltage and with it the no-load speed."""

    voltage: float = 24.0
    sag: Range = 0.0  # share of the voltage lost when the motors draw their rated power (sum of torque x speed limits)

    LIMITS: ClassVar[Limits] = {"voltage": (1.0, 1000.0), "sag": (0.0, 0.9)}


class HeatSection(_Section, frozen=True, kw_only=True):
    """One thermal mass per motor; above `derate_from` the torque limit falls, at `derate_to` to `derate_floor`."""

    ambient: float = 25.0  # deg C
    rise: Range = 300.0  # deg C above ambient when torque stays at the limit for ever
    time_constant: Range = 120.0  # s
    derate_from: float = 70.0  # deg C
    derate_to: float = 100.0  # deg C
    derate_floor: float = 0.2  # share of the torque limit

    LIMITS: ClassVar[Limits] = {
        "ambient": (-60.0, 80.0),
        "rise": (0.0, 5000.0),
        "time_constant": (0.05, 1e5),
        "derate_from": (-60.0, 500.0),
        "derate_to": (-60.0, 500.0),
        "derate_floor": (0.0, 1.0),
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.derate_to <= self.derate_from:
            raise ValueError("derate_to must be above derate_from")


class DelaySection(_Section, frozen=True, kw_only=True):
    """From command to torque: one delay for the robot, plus a fresh jitter for every command."""

    seconds: Range = 0.0
    jitter: Range = 0.0  # s, each command waits longer by a uniform share of this

    LIMITS: ClassVar[Limits] = {"seconds": (0.0, 0.2), "jitter": (0.0, 0.1)}


class BodySection(_Section, frozen=True, kw_only=True):
    """Masses, centres of mass and inertias that differ from the model, drawn per body."""

    mass_scale: Range = 1.0  # inertia follows
    inertia_scale: Range = 1.0  # beyond that of the mass
    com_offset: Range = 0.0  # m, per axis

    LIMITS: ClassVar[Limits] = {"mass_scale": (0.1, 10.0), "inertia_scale": (0.1, 10.0), "com_offset": (-0.1, 0.1)}


class PayloadSection(_Section, frozen=True, kw_only=True):
    """A mass that the model does not know, on the base of a floating robot or at the end effector of an arm."""

    mass: Range = 0.1  # of the robot's mass
    offset: Range = 0.0  # m, per axis, from the body's frame (base) or the tool

    LIMITS: ClassVar[Limits] = {"mass": (0.0, 2.0), "offset": (-0.5, 0.5)}


class GroundSection(_Section, frozen=True, kw_only=True):
    """What a free robot stands on."""

    friction: Range = 1.0
    timeconst: Range = 0.02  # s, larger is softer
    dampratio: Range = 1.0

    LIMITS: ClassVar[Limits] = {"friction": (0.01, 3.0), "timeconst": (0.004, 0.5), "dampratio": (0.05, 5.0)}


class SensorSection(_Section, frozen=True, kw_only=True):
    """Noise (standard deviations) and resolution of what the robot reports. The servo itself reads without noise."""

    position_noise: float = 0.0  # rad
    velocity_noise: float = 0.0  # rad/s
    torque_noise: float = 0.0  # of the torque limit
    encoder_counts: float = 0.0  # per turn; 0: no quantisation
    velocity_step: float = 0.0  # rad/s; 0: no quantisation
    gyro_noise: float = 0.0  # rad/s
    gyro_bias: Range = 0.0  # rad/s, per axis
    acc_noise: float = 0.0  # m/s^2
    acc_bias: Range = 0.0  # m/s^2, per axis

    LIMITS: ClassVar[Limits] = {
        "position_noise": (0.0, 0.5),
        "velocity_noise": (0.0, 10.0),
        "torque_noise": (0.0, 1.0),
        "encoder_counts": (0.0, 1e9),
        "velocity_step": (0.0, 10.0),
        "gyro_noise": (0.0, 10.0),
        "gyro_bias": (-10.0, 10.0),
        "acc_noise": (0.0, 50.0),
        "acc_bias": (-50.0, 50.0),
    }


class Preset(_Section, frozen=True, kw_only=True):
    """A kind of twin."""

    schema: int
    description: str = ""
    physics_hz: float = 1000.0  # at least; raised to a whole multiple of the command rate
    joint: JointSection = JointSection()
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

    LIMITS: ClassVar[Limits] = {"physics_hz": (200.0, 4000.0)}

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.schema != SCHEMA:
            raise ValueError(f"schema {self.schema} is not known to this version (it reads schema {SCHEMA})")
        if self.supply is not None and self.motor is None:
            raise ValueError("[supply] acts through the torque-speed curve: add [motor]")


def preset_names() -> tuple[str, ...]:
    """Names of the presets that ship."""
    return tuple(sorted(file.stem for file in PRESETS.glob("*.toml")))


def preset_file(reference: str | Path) -> Path:
    """Return the file of a shipped preset by name, or of one's own by path."""
    text = str(reference)
    if text in preset_names():
        return PRESETS / f"{text}.toml"
    if text.endswith(".toml") or "/" in text:
        return Path(text)
    raise TrueupError(f"no twin preset {text!r}{did_you_mean(text, preset_names())}; or give a path to a .toml file")


def preset_label(reference: str | Path) -> str:
    """Return a short name for file names and reports."""
    return re.sub(r"[^A-Za-z0-9_.-]", "_", Path(reference).stem)[:64] or "preset"


def read_preset(reference: str | Path) -> Preset:
    """Read and check a preset; every failure names the file and the key."""
    absent = f"no such preset file (shipped: {', '.join(preset_names())})"
    return read_toml(preset_file(reference), Preset, "preset", absent)


def parse_preset(text: str, file: str | Path = "preset") -> Preset:
    """Check a preset given as TOML text."""
    return parse_toml(text, Preset, file)
