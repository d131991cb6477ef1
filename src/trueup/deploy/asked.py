"""Checks of a requested run that need files alone, made before a robot is connected.

Order of refusals: bundle (hashes, golden sequences), passport against robot, certificate, ladder, command.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from trueup.core.errors import TrueupError
from trueup.deploy.control.controller import ControlCfg
from trueup.deploy.control.goal import AskedGoal
from trueup.deploy.ladder.records import BASES, RUNG_CFGS, Climber, RungCfg, held, require_below
from trueup.deploy.preflight import Disagreement, check_passport, refuse
from trueup.deploy.startup import Startup
from trueup.deploy.verbs import DeployVerb
from trueup.hardware.drivers.open import check_reference, twin_options
from trueup.policy.bundle.bundle import PolicyBundle, load_bundle
from trueup.policy.bundle.certificate import require_certificate
from trueup.robot.load import Robot, load_robot

_MOVES = ("hang", "ground", "full")
Say = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A requested run: bundle, rung, driver and options.

    below        hash of the record of the rung below
    uncertified  what is missing of a certificate, "" if nothing is
    allowed      findings about the files that --allow let pass
    """

    verb: DeployVerb
    bundle: PolicyBundle
    robot: Robot
    climber: Climber
    goal: AskedGoal
    below: str
    uncertified: str
    allowed: tuple[Disagreement, ...]
    control: ControlCfg
    startup: Startup

    @property
    def rung(self) -> RungCfg:
        return RUNG_CFGS[self.verb.rung]

    @property
    def seconds(self) -> float | None:
        """Time that the policy runs; None: until the operator ends it."""
        return self.rung.seconds if self.verb.seconds is None else (self.verb.seconds or None)


def check_files(verb: DeployVerb, say: Say) -> Asked:
    """Refuse a run that its files rule out; `say` gets a line for every finding that --allow let pass."""
    startup = Startup()
    bundle = load_bundle(verb.bundle)
    robot = load_robot(verb.robot or bundle.passport.robot.name)
    startup.mark("bundle")
    rung = RUNG_CFGS[verb.rung]
    if verb.driver is None and verb.rung != "replay":
        raise TrueupError(f"rung {verb.rung!r} needs a robot: --driver twin:mild?base=free, --driver unitree:eth0, ...")
    if verb.driver is not None:
        check_reference(verb.driver)
    if verb.driver is not None and robot.spec.base.floating:
        _check_hold(verb.driver, verb.rung)
    allowed = refuse(check_passport(bundle.passport, robot), verb.allow)
    for one in allowed:
        say(f"allowed   {one}")
    uncertified = _uncertified(verb, bundle, say)
    climber = Climber(
        path=bundle.path,
        bundle=bundle.hash,
        robot=robot.spec.name,
        model_sha256=robot.model_sha256,
        reference=verb.driver or "",
    )
    below = require_below(climber, verb.rung)
    goal = AskedGoal(bundle.passport.goal, rung.speed if verb.speed is None else verb.speed)
    goal.set(verb.command)
    control = ControlCfg(smoothing=verb.smoothing, target_step=verb.target_step, engine=verb.engine)
    startup.mark("checks")
    return Asked(
        verb=verb, bundle=bundle, robot=robot, climber=climber, goal=goal, below=below, uncertified=uncertified,
        allowed=allowed, control=control, startup=startup,
    )  # fmt: skip


def _check_hold(reference: str, rung: str) -> None:
    """Rung hang needs a twin with a fixed base, the walking rungs one with a free base."""
    wanted = BASES.get(rung)
    if wanted is not None and reference.startswith("twin:"):
        found = twin_options(reference.removeprefix("twin:")).base
        if found != wanted:
            where = "in the air" if wanted == "fixed" else "on the ground"
            told = f"rung {rung!r} needs the twin {where} (base={wanted}), {reference!r} has base={found}"
            raise TrueupError(f"{told}: --driver '{held(reference, wanted)}'", place="--driver")


def _uncertified(verb: DeployVerb, bundle: PolicyBundle, say: Say) -> str:
    """Refuse a run without a passed certificate; with --uncertified, return what is missing instead."""
    if verb.rung not in _MOVES:
        return ""
    try:
        require_certificate(bundle.path, bundle.hash)
    except TrueupError as error:
        if not verb.uncertified:
            raise TrueupError(f"{error}; --uncertified starts without one, and records it") from None
        say(f"UNCERTIFIED   {error}")
        return str(error)
    return ""
