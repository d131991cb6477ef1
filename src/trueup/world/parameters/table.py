"""The catalogue of parameters by name: scope, unit, axes, smallest value. How they are written: `params`."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Literal

import numpy as np

from trueup.core.errors import TrueupError, did_you_mean
from trueup.core.own_code import own_function
from trueup.models.friction import LAWS
from trueup.models.friction_law import FrictionLaw

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


def _friction(law: FrictionLaw) -> dict[str, Parameter]:
    return {f"friction_{name}": _joint(term.unit, term.doc, term.low) for name, term in law.coefficients.items()}


# Coefficients of friction laws beyond kv ("damping") and kc ("friction"); they need SimCfg(friction=LAW).
GEAR_FRICTION: dict[str, Parameter] = {name: one for law in LAWS.values() for name, one in _friction(law).items()}

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


def parameter(name: str) -> Parameter:
    """The parameter of this name."""
    if name not in PARAMETERS:
        raise TrueupError(f"no parameter {name!r}{did_you_mean(name, PARAMETERS)}")
    return PARAMETERS[name]


def add_friction_law(law: FrictionLaw | str) -> FrictionLaw:
    """Make a friction law of your own known by its name: to `SimCfg(friction=...)`, to fits and to what they wrote.

    law  a FrictionLaw, or FILE.py:FUNCTION that returns one
    """
    found = own_function(law)() if isinstance(law, str) else law
    if not isinstance(found, FrictionLaw):
        raise TrueupError(f"{law} must return a trueup.models.friction_law.FrictionLaw, found {type(found).__name__}")
    taken = {name: other.name for other in LAWS.values() if other.name != found.name for name in other.coefficients}
    if found.name in _BUILT_IN or not found.coefficients:
        raise TrueupError(f"friction law {found.name!r} needs a name and at least one coefficient of its own")
    if odd := [name for name in found.coefficients if not hasattr(found.params, name)]:
        raise TrueupError(f"friction law {found.name!r}: {found.params.__name__} has no coefficient {odd[0]!r}")
    if clash := [name for name in found.coefficients if name in taken]:
        raise TrueupError(
            f"friction law {found.name!r}: coefficient {clash[0]!r} is one of {taken[clash[0]]!r} already; a fit knows "
            "laws by their coefficients, so choose another name"
        )
    LAWS[found.name] = found
    added = _friction(found)
    GEAR_FRICTION.update(added)
    PARAMETERS.update(added)
    return found


_BUILT_IN = frozenset(LAWS)
# At import, because files that were fitted with these laws are checked against the table above as they are read.
for _law in filter(None, os.environ.get("TRUEUP_FRICTION", "").split(",")):
    add_friction_law(_law)
