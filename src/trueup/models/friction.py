"""Friction of a geared servo as a budget: models M1 to M6 of "Extended friction models" (arXiv 2410.08650).

In one step dt friction may stop the joint, but can give no more than its budget tau_fm:

    tau_stop = -(J/dt dq + tau_m + tau_e),    tau_f = clip(tau_stop, -tau_fm, tau_fm)

    M1  kv|dq| + kc
    M2  M1 + s kcs                                         s = exp(-|dq/dqs|^alpha), 1 at rest, 0 when moving
    M3  M1 + kl L                                          L = |tau_m - tau_e|, the load through the gears
    M4  M1 + kl L + s (kcs + kls L)
    M5  M1 + |km tau_m - ke tau_e| + s (kcs + |kms tau_m - kes tau_e|)
    M6  M5 + s Q,  Q = keq tau_e^2 when the motor is the stronger, else kmq tau_m^2; only if the two oppose

tau_m is the torque of the motor and tau_e the torque of everything else but friction (gravity, contact,
Coriolis), both positive along +q. The authors' documentation leaves out the condition that the two oppose;
their code has it. For torques exactly equal and opposite that code drops Q; here the "else" applies.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal, NamedTuple

import numpy as np

from trueup.core.arrays import FloatArray
from trueup.core.errors import TrueupError, did_you_mean
from trueup.models.values import Values, require_positive

FrictionModel = Literal["M1", "M2", "M3", "M4", "M5", "M6"]

_STRIBECK = ("kcs", "dqs", "alpha")
_DIRECTIONAL = ("kv", "kc", *_STRIBECK, "km", "ke", "kms", "kes")

# which coefficients each model reads: what a fit of that model may move
COEFFICIENTS: dict[FrictionModel, tuple[str, ...]] = {
    "M1": ("kv", "kc"),
    "M2": ("kv", "kc", *_STRIBECK),
    "M3": ("kv", "kc", "kl"),
    "M4": ("kv", "kc", *_STRIBECK, "kl", "kls"),
    "M5": _DIRECTIONAL,
    "M6": (*_DIRECTIONAL, "kmq", "keq"),
}


@dataclass(frozen=True, kw_only=True, eq=False)
class FrictionParams:
    """Coefficients of M1 to M6; a model reads those that COEFFICIENTS names for it and ignores the rest.

    Floats, or arrays that broadcast against the joint velocities.
    """

    kv: Values = 0.0  # viscous, N m s/rad
    kc: Values = 0.0  # Coulomb, N m
    kcs: Values = 0.0  # Stribeck: extra at rest, N m
    dqs: Values = 0.2  # Stribeck velocity, rad/s
    alpha: Values = 1.35  # Stribeck curvature
    kl: Values = 0.0  # load, N m per N m
    kls: Values = 0.0  # load, extra at rest
    km: Values = 0.0  # motor side of the load
    ke: Values = 0.0  # external side of the load
    kms: Values = 0.0  # motor side, extra at rest
    kes: Values = 0.0  # external side, extra at rest
    kmq: Values = 0.0  # quadratic when the load drives the motor, 1/(N m)
    keq: Values = 0.0  # quadratic when the motor drives the load, 1/(N m)

    def __post_init__(self) -> None:
        for entry in fields(self):
            positive = entry.name in ("dqs", "alpha")  # a divisor, and an exponent that keeps s = 1 at rest
            require_positive(entry.name, getattr(self, entry.name), or_zero=not positive)


class FrictionBudget(NamedTuple):
    """The most that friction can give, split as an engine takes it: a damping coefficient and a dry torque.

    viscous  N m s/rad (a MuJoCo `dof_damping`)
    dry      N m (a MuJoCo `dof_frictionloss`)
    """

    viscous: FloatArray
    dry: FloatArray

    def torque(self, dq: Values) -> FloatArray:
        """Return tau_fm = viscous |dq| + dry, N m."""
        return self.viscous * np.abs(dq) + self.dry


def friction_budget(
    model: FrictionModel, params: FrictionParams, dq: Values, tau_m: Values, tau_e: Values
) -> FrictionBudget:
    """Return the budget of `model` at velocity `dq` under motor torque `tau_m` and other torque `tau_e`.

    Both parts have the broadcast shape of the velocities, torques and coefficients; views, to be read.
    """
    if model not in COEFFICIENTS:
        raise TrueupError(f"there is no friction model {model!r}{did_you_mean(str(model), COEFFICIENTS)}")
    dry = params.kc + _load_part(model, params, tau_m, tau_e)
    if model not in ("M1", "M3"):
        dry = dry + stribeck(params, dq) * _rest_part(model, params, tau_m, tau_e)
    viscous, dry, *_ = np.broadcast_arrays(params.kv, dry, dq, tau_m, tau_e)
    return FrictionBudget(viscous=viscous, dry=dry)


def stribeck(params: FrictionParams, dq: Values) -> FloatArray:
    """Return s = exp(-|dq/dqs|^alpha): the share of the rest friction that is left at velocity `dq`."""
    return np.exp(-(np.abs(dq / params.dqs) ** params.alpha))


def _load_part(model: FrictionModel, params: FrictionParams, tau_m: Values, tau_e: Values) -> Values:
    """Return the dry friction that the load adds at any speed."""
    if model in ("M3", "M4"):
        return params.kl * np.abs(tau_m - tau_e)
    if model in ("M5", "M6"):
        return np.abs(params.km * tau_m - params.ke * tau_e)
    return 0.0


def _rest_part(model: FrictionModel, params: FrictionParams, tau_m: Values, tau_e: Values) -> Values:
    """Return the dry friction that fades as the joint starts to move."""
    if model == "M2":
        return params.kcs
    if model == "M4":
        return params.kcs + params.kls * np.abs(tau_m - tau_e)
    rest = params.kcs + np.abs(params.kms * tau_m - params.kes * tau_e)
    return rest + _quadratic_part(params, tau_m, tau_e) if model == "M6" else rest


def _quadratic_part(params: FrictionParams, tau_m: Values, tau_e: Values) -> FloatArray:
    """Return Q: the square of the weaker torque, when motor and load oppose each other."""
    motor_is_stronger = np.abs(tau_m) > np.abs(tau_e)
    weaker = np.where(motor_is_stronger, params.keq * np.square(tau_e), params.kmq * np.square(tau_m))
    return np.where(np.sign(tau_m) != np.sign(tau_e), weaker, 0.0)
