"""Tables by parameter name: how a fit scales each, sets of names, and what to record so that the data show it."""

from __future__ import annotations

from dataclasses import dataclass

from trueup.core.own_code import is_own_code
from trueup.models.friction import LAWS, friction_law
from trueup.models.friction_law import Coefficient
from trueup.world.fitted.fit_parameter import Mode, Scale
from trueup.world.parameters.table import add_friction_law


@dataclass(frozen=True, kw_only=True)
class ScaleRule:
    """Scaling of a parameter: bounds, offset of the logarithm, prior mean (None: nominal) and width.

    name       parameter of the simulation, where it is not the rule's own
    shared     one value for all joints
    of_torque  bounds and width are in units of the joint's torque limit
    around     bounds are relative to the mean
    """

    low: float
    high: float
    scale: Scale
    width: float
    offset: float = 0.0
    mean: float | None = None
    mode: Mode = "set"
    shared: bool = False
    name: str = ""
    of_torque: bool = False
    around: bool = False


def _factor(low: float, high: float, width: float) -> ScaleRule:
    """A factor on the nominal or logged value."""
    return ScaleRule(low=low, high=high, scale="log", width=width, mean=1.0, mode="times")


def _friction(term: Coefficient) -> ScaleRule:
    return ScaleRule(
        low=term.bounds[0], high=term.bounds[1], scale="log", width=term.width, offset=term.offset, mean=term.mean
    )


# Bounds of PACE (arXiv 2509.06342) where it has them; widths are usual errors of nominal values.
RULES: dict[str, ScaleRule] = {
    "armature": ScaleRule(low=1e-4, high=0.2, scale="log", width=1.0),
    "damping": ScaleRule(low=0.0, high=7.0, scale="log", width=1.2, offset=0.02),
    "friction": ScaleRule(low=0.0, high=2.0, scale="log", width=1.2, offset=0.02),
    "encoder_bias": ScaleRule(low=-0.1, high=0.1, scale="linear", width=0.05, mean=0.0),
    "delay": ScaleRule(low=0.0, high=0.04, scale="linear", width=0.01, mean=0.01, shared=True),
    "stiffness": ScaleRule(low=0.0, high=50.0, scale="log", width=1.2, offset=0.1),
    "torque_offset": ScaleRule(low=-0.1, high=0.1, scale="linear", width=0.015, mean=0.0, of_torque=True),
    "stop_low": ScaleRule(low=-0.5, high=0.5, scale="linear", width=0.1, around=True),
    "stop_high": ScaleRule(low=-0.5, high=0.5, scale="linear", width=0.1, around=True),
    "stop_stiffness": ScaleRule(low=2.0, high=3e3, scale="log", width=1.0, mean=60.0),
    "stop_damping": ScaleRule(low=0.0, high=100.0, scale="log", width=1.2, offset=0.02, mean=0.5),
    "kp": _factor(0.3, 3.0, 0.3),
    "kd": _factor(0.1, 10.0, 0.5),
    # position servos of hobby class: the gain that a model file carries may be right, or a hundred times the servo's
    "servo_kp": ScaleRule(low=0.002, high=10.0, scale="log", width=1.5, mean=0.2, mode="times", name="kp"),
    "servo_kd": ScaleRule(low=0.002, high=10.0, scale="log", width=1.5, mean=0.4, mode="times", name="kd"),
    "torque_limit": _factor(0.2, 2.0, 0.3),
    "stall_torque": _factor(0.2, 4.0, 0.4),
    "no_load_speed": _factor(0.2, 4.0, 0.4),
    **{f"friction_{name}": _friction(term) for law in LAWS.values() for name, term in law.coefficients.items()},
    "mass_scale": ScaleRule(low=0.5, high=2.0, scale="log", width=0.15, mean=1.0),
    "com_offset": ScaleRule(low=-0.06, high=0.06, scale="linear", width=0.02, mean=0.0),
    "inertia_shape": ScaleRule(low=-1.0, high=1.0, scale="linear", width=0.15, mean=0.0),
    "tilt": ScaleRule(low=-0.3, high=0.3, scale="linear", width=0.05, mean=0.0),
    "mount_stiffness": _factor(1e-2, 40.0, 1.5),  # stiffer is faster than the steps of the physics
    "mount_damping": _factor(1e-2, 100.0, 1.5),
    "contact_friction": ScaleRule(low=0.05, high=3.0, scale="log", width=0.5),
    "contact_timeconst": ScaleRule(low=0.002, high=0.2, scale="log", width=0.7),
    "contact_dampratio": ScaleRule(low=0.05, high=3.0, scale="log", width=0.7),
}
PACE = ("armature", "damping", "friction", "encoder_bias", "delay")
MASSES = ("mass_scale", "com_offset", "inertia_shape")
FULL = (*PACE, "kp", "kd", "torque_limit", "no_load_speed", *MASSES)
CONTACT = ("contact_friction", "contact_timeconst", "contact_dampratio")
STOPS = ("stop_low", "stop_high", "stop_stiffness", "stop_damping")
HUNG = (*PACE, "torque_offset", "tilt", *STOPS, "mount_stiffness", "mount_damping")
SERVO = (*PACE, "servo_kp", "servo_kd", "torque_limit")


SETS: dict[str, tuple[str, ...]] = {
    "pace": PACE,
    "full": FULL,
    "servo": SERVO,
    "hung": HUNG,
    "contact": CONTACT,
    "masses": MASSES,
    # a law's kv and kc are PACE's damping and friction
    **{f"friction:{name}": (*PACE, *(f"friction_{term}" for term in law.coefficients)) for name, law in LAWS.items()},
}
# set by hand; axes that mirror
NEVER_TIED = frozenset({"encoder_bias", "torque_offset", "stop_low", "stop_high", "com_offset", "inertia_shape"})
# what to record so that the data show a parameter
SHOWS = {
    "armature": "fast motion: chirp or multisine up to 10 Hz, strong accelerations",
    "damping": "constant speeds, slow and fast: triangle waves at several rates",
    "friction": "slow reversals and steps with rests: triangle waves below 0.5 Hz",
    "encoder_bias": "slow motion over the whole range, so that gravity's torque tells the true angle",
    "delay": "sharp commands: steps, PRBS or a chirp up to 10 Hz",
    "stiffness": "slow motion over the whole range",
    "kp": "large slow motion against gravity, or a known load: only a known torque shows what the servo gives",
    "kd": "fast motion with a second gain kd",
    **dict.fromkeys(("torque_limit", "stall_torque"), "large steps that reach the torque limit"),
    "no_load_speed": "large fast swings that reach the speed limit",
    "mass_scale": "slow motion over the whole range (gravity) with known gains",
    "com_offset": "holds in many different poses",
    "inertia_shape": "fast turns about several axes: whole-limb swings up to the speed limit",
    "torque_offset": "slow approaches of the same poses from both sides",
    "stop_low": "slow pushes against the lower stop",
    "stop_high": "slow pushes against the upper stop",
    "stop_stiffness": "pushes of several strengths against the stop",
    "stop_damping": "fast arrivals at the stop",
    "tilt": "slow motion of all limbs over their whole range",
    "mount_stiffness": "swings of all limbs together, slow to fast",
    "mount_damping": "swings of all limbs together that stop at once",
    **{f"friction_{name}": term.shows for law in LAWS.values() for name, term in law.coefficients.items()},
    "contact_friction": "sliding contacts: pushes and turns on the ground",
    "contact_timeconst": "landings and drops",
    "contact_dampratio": "landings and drops from several heights",
}

# what to record to tell two parameters apart
SEPARATES = {
    frozenset({"armature", "delay"}): "a chirp up to the highest safe frequency: delay grows with f, inertia with f^2",
    frozenset({"armature", "mass_scale"}): "slow motion (gravity shows mass) beside fast motion (shows the sum)",
    frozenset({"damping", "friction"}): "triangle waves at a slow and a fast speed: only damping grows with speed",
    frozenset({"damping", "kd"}): "the same motion with a second kd",
    frozenset({"damping", "delay"}): "steps with rests beside a fast chirp",
    frozenset({"encoder_bias", "friction"}): "slow approaches of the same poses from both sides",
    frozenset({"encoder_bias", "kp"}): "holds in many poses with two gains",
    frozenset({"armature", "kp"}): "large slow motion against gravity, or a known load: swings show only their ratio",
    frozenset({"kp", "mass_scale"}): "the same motion with a known extra mass",
    frozenset({"com_offset", "encoder_bias"}): "holds in many poses over the whole range",
    frozenset({"friction", "kp"}): "steps of several sizes with rests between",
}


def friction_parameters(law: str) -> tuple[str, ...]:
    """Parameters that a fit of a friction law varies; the law by its name, or FILE.py:FUNCTION of your own."""
    found = add_friction_law(law) if is_own_code(law) else friction_law(law)
    new = {f"friction_{name}": term for name, term in found.coefficients.items()}
    RULES.update({name: _friction(term) for name, term in new.items()})
    SHOWS.update({name: term.shows for name, term in new.items()})
    return (*PACE, *new)
