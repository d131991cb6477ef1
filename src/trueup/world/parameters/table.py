"""The catalogue of parameters by name: scope, unit, axes, smallest value. How they are written: `params`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

Scope = Literal["joint", "body", "robot", "object"]
_SHAPE_AXES = ("log xx", "log yy", "log zz", "xy", "xz", "yz")
MOUNT_AXES = ("x", "y", "z", "roll", "pitch", "yaw")


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """One name: per joint, per body, per object or for the whole robot; names of its components if it is a vector."""

    scope: Scope
    unit: str
    axes: tuple[str, ...] = ()
    low: float = -np.inf
    doc: str = ""

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.axes),) if self.axes else ()


def _joint(unit: str, doc: str, low: float = 0.0) -> Parameter:
    return Parameter(scope="joint", unit=unit, low=low, doc=doc)


def _other(scope: Scope, unit: str, doc: str, *axes: str, low: float = -np.inf) -> Parameter:
    return Parameter(scope=scope, unit=unit, axes=axes, low=low, doc=doc)


# Coefficients of `models.friction` beyond kv ("damping") and kc ("friction"); they need SimCfg(friction="M2") or more.
GEAR_FRICTION: dict[str, Parameter] = {
    "friction_kcs": _joint("N m", "Stribeck: extra dry friction at rest"),
    "friction_dqs": _joint("rad/s", "Stribeck velocity", 1e-6),
    "friction_alpha": _joint("1", "Stribeck curvature", 1e-6),
    "friction_kl": _joint("1", "dry friction per load through the gears"),
    "friction_kls": _joint("1", "the same, extra at rest"),
    "friction_km": _joint("1", "dry friction per motor torque"),
    "friction_ke": _joint("1", "dry friction per external torque"),
    "friction_kms": _joint("1", "per motor torque, extra at rest"),
    "friction_kes": _joint("1", "per external torque, extra at rest"),
    "friction_kmq": _joint("1/(N m)", "quadratic, when the load drives the motor"),
    "friction_keq": _joint("1/(N m)", "quadratic, when the motor drives the load"),
}

PARAMETERS: dict[str, Parameter] = {
    "armature": _joint("kg m^2", "reflected rotor inertia"),
    "damping": _joint("N m s/rad", "viscous friction"),
    "friction": _joint("N m", "dry (Coulomb) friction"),
    "stiffness": _joint("N m/rad", "spring towards the default pose"),
    "torque_offset": _joint("N m", "constant torque; with friction: dry friction that differs by direction", -np.inf),
    "stop_low": _joint("rad", "true position at which the lower stop is met", -np.inf),
    "stop_high": _joint("rad", "true position at which the upper stop is met", -np.inf),
    "stop_stiffness": _joint("N m/rad", "of both stops, at the nominal inertia", 1e-3),
    "stop_damping": _joint("N m s/rad", "of both stops, at the nominal inertia"),
    "kp": _joint("N m/rad", "servo position gain"),
    "kd": _joint("N m s/rad", "servo velocity gain"),
    "torque_limit": _joint("N m", "largest servo torque"),
    "stall_torque": _joint("N m", "envelope at rest (dcmotor)", 1e-9),
    "no_load_speed": _joint("rad/s", "speed at which torque vanishes (dcmotor)", 1e-9),
    "delay": _joint("s", "from command to torque"),
    "encoder_bias": _joint("rad", "measured minus true position", -np.inf),
    **GEAR_FRICTION,
    "mass_scale": _other("body", "1", "times nominal mass and inertia", low=1e-6),
    "com_offset": _other("body", "m", "centre of mass minus nominal, body frame", "x", "y", "z"),
    "inertia": _other("body", "kg m^2", "at the centre of mass, body frame", "xx", "yy", "zz", "xy", "xz", "yz"),
    "inertia_shape": _other(
        "body", "1", "log-Cholesky factor of the inertia against nominal: any value is physical", *_SHAPE_AXES
    ),
    "contact_friction": _other("robot", "1", "sliding friction of every contact geom of robots and ground", low=0.0),
    "contact_timeconst": _other("robot", "s", "softness of contacts: larger is softer", low=1e-4),
    "contact_dampratio": _other("robot", "1", "below 1 contacts bounce", low=1e-3),
    "gravity": _other("robot", "m/s^2", "gravity vector, world frame", "x", "y", "z"),
    "tilt": _other("robot", "rad", "of a held base (or of the ground) against gravity", "roll", "pitch"),
    "mount_stiffness": _other("robot", "N/m, N m/rad", "of the stand that holds the base", *MOUNT_AXES, low=1e-9),
    "mount_damping": _other("robot", "N s/m, N m s/rad", "of the stand that holds the base", *MOUNT_AXES, low=0.0),
    "object_mass": _other("object", "kg", "mass of an object; its inertia follows", low=1e-6),
    "object_friction": _other("object", "1", "sliding friction of an object's contacts", low=0.0),
}  # fmt: skip
