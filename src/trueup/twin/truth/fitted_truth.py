"""A twin of a calibrated robot: hidden numbers drawn from a fit's posterior, once for each seed.

Fitted values replace the preset's draws; the preset's other effects (gears, heat, noise) stay.
Parameters that a twin cannot have are named in a warning and in the truth's notes.
"""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
from msgspec.structs import replace

from trueup.core.errors import TrueupError
from trueup.robot.spec import RobotSpec
from trueup.twin.truth.truth import BodyTruth, FrictionTruth, GroundTruth, MotorTruth, Nominal, Truth
from trueup.world.fitted.calibration import SimParams
from trueup.world.fitted.fit_parameter import FitParameter, belongs_to_stand

_log = logging.getLogger(__name__)
_STREAM = 3  # beside those of jitter and noise
_PLACE = {  # of a fitted parameter in the truth: part and field
    "armature": ("joint", "armature"),
    "damping": ("joint", "damping"),
    "friction": ("joint", "friction"),
    "encoder_bias": ("joint", "encoder_bias"),
    "friction_kcs": ("friction", "stiction"),
    "friction_dqs": ("friction", "stribeck_vel"),
    "friction_alpha": ("friction", "stribeck_power"),
    "friction_kl": ("friction", "load"),
    "friction_kls": ("friction", "load_rest"),
    "torque_limit": ("motor", "torque_limit"),
    "no_load_speed": ("motor", "no_load_speed"),
    "mass_scale": ("body", "mass_scale"),
    "com_offset": ("body", "com_offset"),
    "contact_friction": ("ground", "friction"),
    "contact_timeconst": ("ground", "timeconst"),
    "contact_dampratio": ("ground", "dampratio"),
}


def with_fit(truth: Truth, params: SimParams, spec: RobotSpec, nominal: Nominal, seed: int) -> Truth:
    """The truth with one draw from the posterior in it."""
    if params.joint_names != spec.joint_names:
        raise TrueupError(f"this calibration is of {params.robot!r} with other joints than {spec.name!r}")
    values = params.sample(np.random.default_rng([seed % 2**64, _STREAM]), 1)[0].tolist()
    notes: dict[str, None] = dict.fromkeys(truth.notes)
    for parameter, value in zip(params.parameters, values, strict=True):
        if belongs_to_stand(parameter, params.parameters) or parameter.name == "tilt":
            continue
        if parameter.name == "delay":
            truth = replace(truth, delay_s=value)
        elif parameter.name in _PLACE:
            truth = _put(truth, parameter, value, spec, nominal)
        else:
            notes[f"of the fit, without a place in a twin: {parameter.name}"] = None
    for note in notes:
        _log.warning(note)
    return replace(truth, notes=list(notes))


def _put(truth: Truth, parameter: FitParameter, value: float, spec: RobotSpec, nominal: Nominal) -> Truth:
    """Write one number of the fit; limits of motors are fitted as factors on the spec's."""
    part, field = _PLACE[parameter.name]
    old = getattr(truth, part)
    if old is None or (part == "friction" and old.kind != "stribeck"):
        old = _without_effect(part, spec, nominal)
    new: Any = value
    if part != "ground":
        own = {"torque_limit": spec.torque_limit, "no_load_speed": spec.velocity_limit}.get(parameter.name, 1.0)
        here = np.isin(nominal.bodies if part == "body" else spec.joint_names, parameter.of)
        axis = np.arange(3) == parameter.axis
        mask = here[:, None] & axis if parameter.name == "com_offset" else here
        new = np.where(mask, value * own, getattr(old, field))
    changed = {field: new}
    if field == "no_load_speed":  # a knee that the preset drew keeps its share
        changed["knee_speed"] = old.knee_speed / old.no_load_speed * new
    return replace(truth, **{part: replace(old, **changed)})


def _without_effect(part: str, spec: RobotSpec, nominal: Nominal) -> Any:
    """A part of the truth that leaves the robot as its model has it."""
    none, ones, n = np.zeros(spec.njoint), np.ones(spec.njoint), len(nominal.bodies)
    if part == "friction":
        stribeck = {"stribeck_vel": 0.2 * ones, "stribeck_power": 1.35 * ones, "stiction": none}
        bristle = {"bristle_stiffness": ones, "bristle_damping": none}
        return FrictionTruth(kind="stribeck", load=none, load_rest=none, **stribeck, **bristle)
    if part == "motor":
        return MotorTruth(torque_limit=spec.torque_limit, no_load_speed=spec.velocity_limit, knee_speed=none)
    if part == "body":
        return BodyTruth(
            names=nominal.bodies, mass_scale=np.ones(n), inertia_scale=np.ones(n), com_offset=np.zeros((n, 3))
        )
    return GroundTruth(friction=1.0, timeconst=0.02, dampratio=1.0)
