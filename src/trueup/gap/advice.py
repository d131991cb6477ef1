"""Advice from a diagnosis: the command that fixes each cause, and the request for the next fit."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from trueup.gap.causes.hypotheses import EXCITATION
from trueup.gap.decide import Ranked
from trueup.gap.result import Cause
from trueup.world.fitted.refit import RefitRequest, Suspect

# remedies of causes that no fit can remove; words follow the command as a comment of the shell
_BY_HAND = {
    "joint order": "trueup wiggle {robot} --driver DRIVER  # which motor answers to which name",
    "sign": "trueup wiggle {robot} --driver DRIVER  # which way each motor turns",
    "wrong rate": "trueup data check {logs} --robot {robot}  # the clock of the log",
    "heat": "trueup record {robot} --driver DRIVER --out cold.mcap  # after the motors have cooled",
    "state estimate": "trueup record {robot} --driver DRIVER --out still.mcap  # after the IMU was calibrated at rest",
    "ground friction": "trueup symptoms {logs} --robot {robot} --out {out}/symptoms  # a task with less friction",
    "normaliser": "trueup export RUN --out policy.bundle  # the network with its normaliser inside",
    "policy rate": "trueup deploy BUNDLE --driver DRIVER --rung shadow  # shows the loop's real rate",
    "loop delay": "trueup deploy BUNDLE --driver DRIVER --rung shadow  # shows the loop's timing",
}
_NO_FIT = frozenset(_BY_HAND) - {"ground friction"}
_OF_POLICY = ("normaliser", "policy rate", "loop delay")
_SPREAD = 2.0  # a refit may go this far beyond the size that was found


def command_for(cause: str, robot: str, logs: Sequence[str], out: str, base: str = "fixed") -> str:
    """The command that fixes a cause; causes only suggested by a log from the ground are fitted to one from the air.

    logs  files, and what reads them (--mapping NAME)
    """
    names = shlex.join(logs) or "LOG"
    by_hand = _BY_HAND.get(cause)
    if by_hand is not None:
        return by_hand.format(robot=robot, logs=names, out=out)
    if cause == "payload" and base == "free":
        first = f"trueup record {robot} --driver DRIVER --excitation squat --out squat.mcap"
        return f"trueup calibrate load squat.mcap --robot {robot} --fit FIT --out {out}/load  # first: {first}"
    fit = f"--robot {robot} --refit {out}/refit.json --out {out}/refit"
    if base == "free":
        return f"trueup calibrate air.mcap {fit}  # first: trueup record {robot} --driver DRIVER --out air.mcap"
    return f"trueup calibrate {names} {fit}"


def excitation_for(causes: Sequence[str]) -> str:
    """Excitation that distinguishes causes."""
    return "; ".join(dict.fromkeys(EXCITATION[name] for name in causes if name in EXCITATION))


def as_cause(one: Ranked, robot: str, logs: Sequence[str], out: str, base: str, rivals: Sequence[str]) -> Cause:
    """A ranked cause as data."""
    tested = one.tested
    where = f" of {', '.join(tested.joints)}" if tested.joints else ""
    size = f"{tested.size:.3g} {tested.unit}{where}"
    held = "control steps" if tested.cause in _OF_POLICY else "windows"
    explained = f"explains {one.explained:.0%} of the mismatch of held-out {held}"
    return Cause(
        name=tested.cause,
        joints=tested.joints,
        size=tested.size,
        unit=tested.unit,
        explained=one.explained,
        interval=one.interval,
        confidence=one.confidence,
        tied=one.tied,
        evidence=f"{tested.evidence or size}: {explained}",
        command=command_for(tested.cause, robot, logs, out, base),
        excitation=excitation_for([tested.cause, *rivals]) if one.tied or rivals else "",
    )


def refit_request(
    ranked: Sequence[Ranked], robot: str, base: str, logs: Sequence[str], hashes: Sequence[str], trunk: str
) -> RefitRequest | None:
    """Parameters of the first cause and of those tied with it; None: no fit could remove the cause."""
    asked = [one.tested for one in ranked if (one is ranked[0] or one.tied) and one.tested.fits]
    asked = [one for one in asked if one.cause not in _NO_FIT]
    if not asked or ranked[0].tested.cause in _NO_FIT:
        return None
    names = tuple(dict.fromkeys(name for one in asked for name in one.fits))
    of_body = any(name in ("mass_scale", "com_offset") for name in names)
    return RefitRequest(
        robot=robot,
        base=base,
        params=tuple(dict.fromkeys(("pace", *names))),
        bodies=(trunk,) if of_body else (),
        suspects=tuple(_suspect(name, one.joints, one.size, one.unit) for one in asked for name in one.fits),
        logs=tuple(logs),
        hashes=tuple(hashes),
        excitation=excitation_for([one.cause for one in asked]),
    )


def _suspect(name: str, of: tuple[str, ...], size: float, unit: str) -> Suspect:
    ends = (size / _SPREAD, size * _SPREAD)
    return Suspect(name=name, of=of, low=min(ends), high=max(ends), unit=unit)
