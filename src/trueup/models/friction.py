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

from dataclasses import dataclass
from functools import partial

import numpy as np

from trueup.core.arrays import FloatArray
from trueup.core.errors import TrueupError, did_you_mean
from trueup.models.friction_law import Coefficient, FrictionBudget, FrictionCoefficients, FrictionLaw
from trueup.models.values import Values


@dataclass(frozen=True, kw_only=True, eq=False)
class FrictionParams(FrictionCoefficients):
    """Coefficients of M1 to M6 (`COEFFICIENTS` says what each is); a model reads those of its law, not the rest."""

    divisors = ("dqs", "alpha")  # an exponent above 0 keeps s = 1 at rest
    kcs: Values = 0.0
    dqs: Values = 0.2
    alpha: Values = 1.35
    kl: Values = 0.0
    kls: Values = 0.0
    km: Values = 0.0
    ke: Values = 0.0
    kms: Values = 0.0
    kes: Values = 0.0
    kmq: Values = 0.0
    keq: Values = 0.0


def friction_law(name: str) -> FrictionLaw:
    """The law of this name."""
    if name not in LAWS:
        raise TrueupError(f"there is no friction model {name!r}{did_you_mean(str(name), LAWS)}")
    return LAWS[name]


def _budget(model: str, params: FrictionParams, dq: Values, tau_m: Values, tau_e: Values) -> FrictionBudget:
    dry = params.kc + _load_part(model, params, tau_m, tau_e)
    if model not in ("M1", "M3"):
        dry = dry + stribeck(params, dq) * _rest_part(model, params, tau_m, tau_e)
    viscous, dry, *_ = np.broadcast_arrays(params.kv, dry, dq, tau_m, tau_e)
    return FrictionBudget(viscous=viscous, dry=dry)


def stribeck(params: FrictionParams, dq: Values) -> FloatArray:
    """Return s = exp(-|dq/dqs|^alpha): the share of the rest friction that is left at velocity `dq`."""
    return np.exp(-(np.abs(dq / params.dqs) ** params.alpha))


def _load_part(model: str, params: FrictionParams, tau_m: Values, tau_e: Values) -> Values:
    """Return the dry friction that the load adds at any speed."""
    if model in ("M3", "M4"):
        return params.kl * np.abs(tau_m - tau_e)
    if model in ("M5", "M6"):
        return np.abs(params.km * tau_m - params.ke * tau_e)
    return 0.0


def _rest_part(model: str, params: FrictionParams, tau_m: Values, tau_e: Values) -> Values:
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


_SLOW, _LOADED = "a ladder of slow speeds", "the same motion with a second load (a known mass)"
_HELD = "holds and slow starts with a second load"
_LOWERING = "the load driving the motor: lowering a heavy mass"
_LIFTING = "the motor driving the load: lifting a heavy mass"


def _share(doc: str, shows: str, mean: float = 0.05, unit: str = "1") -> Coefficient:
    """A share of a torque, zero included."""
    return Coefficient(unit, doc, shows, bounds=(0.0, 1.0), mean=mean)


COEFFICIENTS: dict[str, Coefficient] = {
    "kcs": Coefficient(
        "N m", "Stribeck: extra dry friction at rest", "very slow motion with stops: triangle waves below 0.1 Hz"
    ),
    "dqs": Coefficient("rad/s", "Stribeck velocity", _SLOW, (0.01, 5.0), mean=0.2, width=0.8, offset=0.0, low=1e-6),
    "alpha": Coefficient("1", "Stribeck curvature", _SLOW, (0.3, 4.0), mean=1.35, width=0.3, offset=0.0, low=1e-6),
    "kl": _share("dry friction per load through the gears", _LOADED),
    "kls": _share("the same, extra at rest", _HELD),
    "km": _share("dry friction per motor torque", _LOADED),
    "ke": _share("dry friction per external torque", _LOADED),
    "kms": _share("per motor torque, extra at rest", _HELD),
    "kes": _share("per external torque, extra at rest", _HELD),
    "kmq": _share("quadratic, when the load drives the motor", _LOWERING, 0.02, "1/(N m)"),
    "keq": _share("quadratic, when the motor drives the load", _LIFTING, 0.02, "1/(N m)"),
}
_STRIBECK, _DIRECTIONAL = ("kcs", "dqs", "alpha"), ("km", "ke", "kms", "kes")
_READS: dict[str, tuple[str, ...]] = {
    "M1": (),
    "M2": _STRIBECK,
    "M3": ("kl",),
    "M4": (*_STRIBECK, "kl", "kls"),
    "M5": (*_STRIBECK, *_DIRECTIONAL),
    "M6": (*_STRIBECK, *_DIRECTIONAL, "kmq", "keq"),
}
# by name, simplest first; `world.parameters.table.add_friction_law` adds one of your own
LAWS: dict[str, FrictionLaw] = {
    model: FrictionLaw(model, FrictionParams, partial(_budget, model), {name: COEFFICIENTS[name] for name in reads})
    for model, reads in _READS.items()
}
