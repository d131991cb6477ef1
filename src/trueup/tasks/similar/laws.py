"""Laws of dynamic similarity under one gravity: lengths ~ l, masses ~ m, times ~ sqrt(l / g).

A unit kg^a m^b s^c then scales by m^a l^b t^c. A robot that moves alike at its own scale pays alike if the weight of a
cost scales by the inverse of the cost's unit. Angles, shares and contacts have no unit and keep their numbers. What the
hardware sets (delays, encoder noise, control rate) and, unless asked for, what users think in (commands in m/s) is not
scaled.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

from trueup.tasks.similar.figures import RobotFigures

Speeds = Literal["same", "froude"]


class Unit(NamedTuple):
    """kg^a m^b s^c, and how its law reads."""

    kg: int
    m: int
    s: int
    law: str


NONE = Unit(0, 0, 0, "")
MASS = Unit(1, 0, 0, "m")
LENGTH = Unit(0, 1, 0, "l")
TIME = Unit(0, 0, 1, "sqrt(l/g)")
SPEED = Unit(0, 1, -1, "sqrt(g l)")
RATE = Unit(0, 0, -1, "sqrt(g/l)")
FORCE = Unit(1, 1, -2, "m g")
TORQUE = Unit(1, 2, -2, "m g l")
DAMPING = Unit(1, 2, -1, "m g l sqrt(l/g)")
INERTIA = Unit(1, 2, 0, "m l^2")
POWER = Unit(1, 2, -3, "m g sqrt(g l)")

# What the numbers of reward objects are measured in, by how their names end; asked speeds follow `Speeds`.
SUFFIXES = {
    "_rad_s": RATE,
    "_m_s": SPEED,
    "_rad": NONE,
    "_m": LENGTH,
    "_s": TIME,
    "_hz": RATE,
    "_nm": TORQUE,
    "_newton": FORCE,
    "_n": FORCE,
    "_w": POWER,
    "_kg": MASS,
}

# What reward terms return, by their names in `tasks.terms.rewards`.
_PLAIN = (
    *("track_velocity", "track_turn", "track_velocity_closely", "track_turn_closely", "tilt", "pose", "stand_still"),
    *("action_rate", "joint_limits", "swing_height", "trot", "stand_quiet", "collision", "fall"),
)
TERMS = {
    **dict.fromkeys(_PLAIN, NONE),
    "height": Unit(0, 2, 0, "l^2"),
    "bounce": Unit(0, 2, -2, "g l"),
    "wobble": Unit(0, 0, -2, "g/l"),
    "energy": POWER,
    "torque": Unit(2, 4, -4, "(m g l)^2"),
    "joint_speed": Unit(0, 0, -2, "g/l"),
    "air_time": TIME,
    "slip": Unit(0, 2, -2, "g l"),
    "clearance": Unit(0, 3, -1, "l^2 sqrt(g l)"),
}

# Randomised parameters that are set or added rather than scaled.
PARAMETERS = {
    "payload": MASS,
    "com_offset": LENGTH,
    "kp": TORQUE,
    "kd": DAMPING,
    "damping": DAMPING,
    "friction": TORQUE,
    "torque_limit": TORQUE,
    "armature": INERTIA,
}


@dataclass(frozen=True)
class Laws:
    """From the figures of a reference robot to those of another."""

    reference: RobotFigures
    robot: RobotFigures
    speeds: Speeds = "same"

    def ratio(self, unit: Unit) -> float:
        """By how much a number of this unit grows."""
        mass, length = self.robot.mass / self.reference.mass, self.robot.leg / self.reference.leg
        time = self.robot.time / self.reference.time
        return float(mass**unit.kg * length**unit.m * time**unit.s)

    def asked(self, unit: Unit) -> float:
        """The same for speeds that are asked for."""
        return self.ratio(unit) if self.speeds == "froude" else 1.0


def unit_of(name: str) -> Unit:
    """The unit in the end of a parameter's name: `target_m` is a length; no unit: none."""
    return next((unit for suffix, unit in SUFFIXES.items() if name.endswith(suffix)), NONE)


def rounded(value: float, digits: int = 3) -> float:
    """A few significant digits: a scaled number should not look measured."""
    return float(f"{value:.{digits}g}")
