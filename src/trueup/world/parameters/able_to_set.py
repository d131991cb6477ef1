"""Which models a simulation needs so that given parameters act: a motor's envelope, a stand, a friction model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from trueup.models.friction import COEFFICIENTS, FrictionModel
from trueup.world.config import SimCfg
from trueup.world.fitted.fit_parameter import NEEDS_MOUNT

NEEDS_MOTOR = frozenset({"stall_torque", "no_load_speed"})


def able_to_set(cfg: SimCfg, names: Sequence[str]) -> SimCfg:
    """A simulation that has what these parameters act on: a motor's envelope, a stand, a friction model."""
    if NEEDS_MOTOR & set(names):
        cfg = replace(cfg, actuator=replace(cfg.actuator, kind="dcmotor"))
    if NEEDS_MOUNT & set(names) and cfg.model.base != "free":
        cfg = replace(cfg, model=replace(cfg.model, base="mount"))
    return replace(cfg, friction=friction_model(names) or cfg.friction)


def friction_model(names: Sequence[str]) -> FrictionModel | None:
    """The simplest friction model that has all coefficients among `names`; None: the engine's own is enough."""
    wanted = {name.removeprefix("friction_") for name in names if name.startswith("friction_")}
    for model, coefficients in COEFFICIENTS.items():
        if wanted <= set(coefficients):
            return model if wanted else None
    return "M6" if wanted else None
