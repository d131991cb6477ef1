"""Adds the models that given parameters need in a simulation: a motor's envelope, a stand, a friction law."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from trueup.core.errors import TrueupError
from trueup.models.friction import LAWS
from trueup.world.config import SimCfg
from trueup.world.fitted.fit_parameter import NEEDS_MOUNT

NEEDS_MOTOR = frozenset({"stall_torque", "no_load_speed"})


def able_to_set(cfg: SimCfg, names: Sequence[str]) -> SimCfg:
    """Add the models that these parameters act on: a motor's envelope, a stand, a friction law."""
    if NEEDS_MOTOR & set(names):
        cfg = replace(cfg, actuator=replace(cfg.actuator, kind="dcmotor"))
    if NEEDS_MOUNT & set(names) and cfg.model.base != "free":
        cfg = replace(cfg, model=replace(cfg.model, base="mount"))
    return replace(cfg, friction=friction_model(names) or cfg.friction)


def friction_model(names: Sequence[str]) -> str | None:
    """The simplest friction law that has all coefficients among `names`; None: the engine's own is enough."""
    wanted = {name.removeprefix("friction_") for name in names if name.startswith("friction_")}
    if not wanted:
        return None
    for name, law in LAWS.items():
        if wanted <= set(law.coefficients):
            return name
    raise TrueupError(f"no friction law has all of {', '.join(sorted(wanted))}: fit the coefficients of one law")
