"""A twin of a calibrated robot: hidden numbers drawn from a fit's posterior, once for each seed.

What was fitted takes the place of what the preset would draw; the preset's other effects (gears, heat, noise) stay.
What a twin has no place for is named in a warning and in the truth's notes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueup.core.errors import TrueupError
from trueup.robot.spec import RobotSpec
from trueup.twin.truth.truth import BodyTruth, FrictionTruth, GroundTruth, MotorTruth, Nominal, Truth
from trueup.world.fitted.calibration import SimParams
from trueup.world.fitted.fit_parameter import FitParameter, belongs_to_stand

FloatArray = NDArray[np.float64]
_log = logging.getLogger(__name__)
_STREAM = 3  # beside those of jitter and noise
_STRIBECK = {
    "friction_kcs": "stiction",
    "friction_dqs": "stribeck_vel",
    "friction_alpha": "stribeck_power",
    "friction_kl": "load",
    "friction_kls": "load_rest",
}
_MOTOR = {"torque_limit": "torque_limit", "no_load_speed": "no_load_speed"}
_GROUND = {"contact_friction": "friction", "contact_timeconst": "timeconst", "contact_dampratio": "dampratio"}
_JOINT = ("armature", "damping", "friction", "encoder_bias")


def with_fit(truth: Truth, params: SimParams, spec: RobotSpec, nominal: Nominal, seed: int) -> Truth:
    """The truth with one draw from the posterior in it."""
    if params.joint_names != spec.joint_names:
        raise TrueupError(f"this calibration is of {params.robot!r} with other joints than {spec.name!r}")
    values = params.sample(np.random.default_rng([seed % 2**64, _STREAM]), 1)[0].tolist()
    lost: dict[str, None] = {}
    for one, value in zip(params.parameters, values, strict=True):
        if belongs_to_stand(one, params.parameters) or one.name == "tilt":
            continue
        put = _place(one.name)
        if put is None:
            lost[one.name] = None
        else:
            truth = put(truth, one, value, spec, nominal)
    notes = [f"of the fit, without a place in a twin: {name}" for name in lost]
    for note in notes:
        _log.warning(note)
    return replace(truth, notes=[*truth.notes, *notes])


_Put = Callable[[Truth, FitParameter, float, RobotSpec, Nominal], Truth]


def _place(name: str) -> _Put | None:
    if name == "delay":
        return lambda truth, one, value, spec, nominal: replace(truth, delay_s=value)
    if name in _JOINT:
        return _joint
    if name in _STRIBECK:
        return _friction
    if name in _MOTOR:
        return _motor
    if name in ("mass_scale", "com_offset"):
        return _body
    return _ground if name in _GROUND else None


def _joint(truth: Truth, one: FitParameter, value: float, spec: RobotSpec, nominal: Nominal) -> Truth:
    new = _changed(getattr(truth.joint, one.name), spec.joint_names, one.of, value)
    return replace(truth, joint=replace(truth.joint, **{one.name: new}))


def _friction(truth: Truth, one: FitParameter, value: float, spec: RobotSpec, nominal: Nominal) -> Truth:
    n = spec.njoint
    zero, one_each = np.zeros(n), np.ones(n)
    old = truth.friction
    if old is None or old.kind != "stribeck":
        old = FrictionTruth(
            kind="stribeck",
            stiction=zero,
            stribeck_vel=0.2 * one_each,
            stribeck_power=1.35 * one_each,
            load=zero,
            load_rest=zero,
            bristle_stiffness=one_each,
            bristle_damping=zero,
        )
    field = _STRIBECK[one.name]
    new = _changed(getattr(old, field), spec.joint_names, one.of, value)
    changed: dict[str, Any] = {field: new}
    return replace(truth, friction=replace(old, **changed))


def _motor(truth: Truth, one: FitParameter, value: float, spec: RobotSpec, nominal: Nominal) -> Truth:
    """Factors on the spec's limits; a knee that the preset drew keeps its share of the no-load speed."""
    old = truth.motor or MotorTruth(
        torque_limit=spec.torque_limit.copy(),
        no_load_speed=spec.velocity_limit.copy(),
        knee_speed=np.zeros(spec.njoint),
    )
    own = spec.torque_limit if one.name == "torque_limit" else spec.velocity_limit
    share = old.knee_speed / old.no_load_speed
    new = replace(old, **{_MOTOR[one.name]: np.where(_mine(spec, one), value * own, getattr(old, one.name))})
    return replace(truth, motor=replace(new, knee_speed=share * new.no_load_speed))


def _body(truth: Truth, one: FitParameter, value: float, spec: RobotSpec, nominal: Nominal) -> Truth:
    n = len(nominal.bodies)
    old = truth.body or BodyTruth(
        names=nominal.bodies, mass_scale=np.ones(n), inertia_scale=np.ones(n), com_offset=np.zeros((n, 3))
    )
    if one.name == "mass_scale":
        return replace(truth, body=replace(old, mass_scale=_changed(old.mass_scale, old.names, one.of, value)))
    offset = old.com_offset.copy()
    axis = one.axis or 0
    offset[:, axis] = _changed(offset[:, axis], old.names, one.of, value)
    return replace(truth, body=replace(old, com_offset=offset))


def _ground(truth: Truth, one: FitParameter, value: float, spec: RobotSpec, nominal: Nominal) -> Truth:
    old = truth.ground or GroundTruth(friction=1.0, timeconst=0.02, dampratio=1.0)
    return replace(truth, ground=replace(old, **{_GROUND[one.name]: value}))


def _changed(values: FloatArray, names: tuple[str, ...], of: tuple[str, ...], value: float) -> FloatArray:
    return np.where([name in of for name in names], value, values)


def _mine(spec: RobotSpec, one: FitParameter) -> NDArray[np.bool_]:
    return np.array([name in one.of for name in spec.joint_names])
