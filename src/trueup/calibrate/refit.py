"""Refit request of a diagnosis (refit.json of `trueup gap`): further parameters and bodies, wider bounds."""

from __future__ import annotations

from dataclasses import replace

from trueup.calibrate.config import CalibrateCfg
from trueup.core.errors import TrueupError
from trueup.robot.load import Robot
from trueup.world.fitted.refit import RefitRequest

# only a robot that stands shows them; `trueup calibrate load` weighs what it carries
_ON_GROUND = ("mass_scale", "com_offset", "contact_friction")
_ABSOLUTE = {"rad": ("encoder_bias",), "s": ("delay",)}  # suspects whose range is that of the parameter itself
_MARGIN = 1.25


def with_request(robot: Robot, cfg: CalibrateCfg, request: RefitRequest) -> tuple[CalibrateCfg, list[str]]:
    """The settings with the requested parameters, and notes on those used and not used."""
    if request.robot != robot.spec.name:
        raise TrueupError(f"the refit request is for {request.robot}, the fit for {robot.spec.name}")
    left = [name for name in request.params if name in _ON_GROUND and cfg.base == "fixed"]
    added = [name for name in request.params if name not in left and name != "pace"]
    names = tuple(dict.fromkeys((*cfg.params.split(","), *added)))
    bodies = cfg.bodies if left else tuple(dict.fromkeys((*cfg.bodies, *request.bodies)))
    reach = tuple(
        (suspect.name, _MARGIN * min(suspect.low, 0.0), _MARGIN * max(suspect.high, 0.0))
        for suspect in request.suspects
        if suspect.name in _ABSOLUTE.get(suspect.unit, ())
    )
    delays = [high for name, _, high in reach if name == "delay"]
    window = replace(cfg.window, max_delay_s=max(cfg.window.max_delay_s, *delays)) if delays else cfg.window
    suspects = ", ".join(dict.fromkeys(suspect.name for suspect in request.suspects))
    notes = [f"the diagnosis suspects {suspects}: fitted with {','.join(names)}"]
    if left:
        notes.append(
            f"{', '.join(left)} is not visible in the air: record squats on the ground (`trueup record ROBOT "
            "--excitation squat`), then `trueup calibrate load`"
        )
    return replace(cfg, params=",".join(names), bodies=bodies, reach=reach, window=window), notes
