"""`trueup record ROBOT`: excite a robot (or its twin) and log what it does."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from trueup.core.outputs import OutFile
from trueup.robot.excitation.waves import Kind

if TYPE_CHECKING:
    from rich.console import Console

    from trueup.calibrate.active.plan import ActivePlan
    from trueup.record.session import SessionCfg
    from trueup.robot.load import Robot
    from trueup.robot.spec import RobotSpec
    from trueup.world.fitted.calibration import Calibration


@dataclass(frozen=True, kw_only=True)
class RecordVerb:
    """Excite a robot or its twin and record it.

    In: a robot, a driver and an excitation. Out: an MCAP log that `trueup data check` and every later stage read. The
    plan is rehearsed in the model first (limits, self-collision) and made smaller until it passes; the robot is damped
    on any violation and on Ctrl-C, and nothing recorded is lost.
    """

    robot: tyro.conf.Positional[str]
    """Built-in name, or your robot's folder or spec."""
    driver: str | None = None
    """twin:PRESET[?seed=7] starts a twin; twin@HOST:PORT talks to a running one; FILE.py:FUNCTION is your own. Default:
    the twin that the calibration --for was recorded from; without --for twin:mild."""
    excitation: Kind | Literal["active"] = "multisine"
    """Shape of the motion; active: sought for what the calibration --for could not tell."""
    for_: Annotated[Path | None, tyro.conf.arg(name="for")] = None
    """A calibration (its folder or params.json) whose weak parameters an active motion shall show."""
    seconds: float = 20.0
    """Length of the motion (active: at most); the ways there and back come on top."""
    out: OutFile | None = None
    """Log to write (.mcap); required unless --dry-run."""
    rate: float | None = None
    """Commands and log rows per second (default: 200, more for servos so stiff that targets would have to crawl)."""
    joints: tuple[str, ...] = field(default=())
    """Joints that move (default: all)."""
    one_by_one: bool = False
    """Move one joint after another instead of all at once."""
    amplitude: float = 0.4
    """Largest distance from the default pose (rad)."""
    seed: int = 0
    """Of the excitation."""
    lockstep: bool = False
    """Run a twin as fast as it can instead of in real time."""
    dry_run: bool = False
    """Plan and rehearse only; nothing moves."""
    page: OutFile | None = None
    """Write a page with the plan (--dry-run) or with the log and its check."""
    overwrite: bool = False
    """Replace an existing log."""


def run(verb: RecordVerb) -> int:
    """Plan, rehearse, record, check."""
    from rich.console import Console

    from trueup.core.errors import TrueupError
    from trueup.data.check.check import check_log
    from trueup.record.session import plan_session, refuse_to_overwrite, run_session
    from trueup.report.calibration.active import print_active
    from trueup.report.log import print_report, write_log_page
    from trueup.report.progress import progress_bar
    from trueup.report.record import print_rehearsal, print_result, write_plan_page
    from trueup.robot.load import load_robot
    from trueup.robot.reference import log_reference
    from trueup.world.fitted.calibration import read_calibration

    if verb.out is None and not verb.dry_run:
        raise TrueupError("--out LOG.mcap says where the recording goes (or --dry-run to look at the plan only)")
    console = Console()
    robot = load_robot(verb.robot)
    fit = None if verb.for_ is None else read_calibration(verb.for_)
    cfg = _session(verb, _driver(verb, fit, console), robot.spec)
    if not verb.dry_run:
        refuse_to_overwrite(cfg)
    active = _active(verb, robot, fit, cfg, console) if verb.excitation == "active" else None
    if active is not None:
        rehearsal = active.rehearsal
        print_active(active, console)
    else:
        with console.status("rehearsing the plan in the model"):
            rehearsal = plan_session(robot, cfg)
    print_rehearsal(robot, rehearsal, console)
    if verb.dry_run:
        if verb.page is not None:
            console.print(f"page   {write_plan_page(robot, rehearsal, verb.page, active)}")
        return 0
    with progress_bar("recording", console) as progress:
        session = run_session(robot, cfg, rehearsal, progress=progress)
    assert verb.out is not None
    print_result(session.result, verb.out, console)
    report = check_log(session.log, log_reference(robot.spec))
    print_report(session.log, report)
    if verb.page is not None:
        console.print(f"page   {write_log_page(session.log, report, verb.page, title=verb.out.name)}")
    if session.result.ended == "interrupted":
        return 130
    return 0 if session.result.ended == "done" and report.usable else 1


def _driver(verb: RecordVerb, fit: Calibration | None, console: Console) -> str:
    """The driver that was asked for, or the twin that the calibration was recorded from."""
    from trueup.calibrate.active.plan import driver_for
    from trueup.record.session import SessionCfg

    if fit is None or verb.dry_run:
        return verb.driver or SessionCfg.driver
    driver, remark = driver_for(fit, verb.driver)
    if remark:
        console.print(remark, soft_wrap=True, highlight=False)
    return driver


def _active(
    verb: RecordVerb, robot: Robot, fit: Calibration | None, session: SessionCfg, console: Console
) -> ActivePlan:
    """Seek the motion that shows what an earlier calibration could not tell."""
    from trueup.calibrate.active.plan import ActiveCfg, plan_active
    from trueup.core.errors import TrueupError
    from trueup.report.progress import progress_bar

    if fit is None:
        raise TrueupError("an active excitation needs --for DIR, the calibration whose weak parameters it shall show")
    if verb.joints or verb.one_by_one:
        raise TrueupError("an active excitation chooses its joints itself: leave out --joints and --one-by-one")
    cfg = ActiveCfg(
        seconds=verb.seconds, rate_hz=session.excitation.rate_hz, seed=verb.seed, limits=session.excitation.limits
    )
    with progress_bar("seeking a motion", console) as progress:
        return plan_active(robot, fit, cfg, progress=progress)


def _session(verb: RecordVerb, driver: str, spec: RobotSpec) -> SessionCfg:
    from trueup.record.session import SessionCfg
    from trueup.robot.excitation.excitation import ExcitationCfg
    from trueup.robot.excitation.limits import LimitCfg, sensible_rate_hz

    limits = LimitCfg(amplitude_rad=verb.amplitude)
    excitation = ExcitationCfg(
        kind="multisine" if verb.excitation == "active" else verb.excitation,
        seconds=verb.seconds,
        rate_hz=sensible_rate_hz(spec, limits) if verb.rate is None else verb.rate,
        seed=verb.seed,
        order="one_by_one" if verb.one_by_one else "together",
        joints=verb.joints,
        limits=limits,
    )
    return SessionCfg(
        driver=driver, lockstep=verb.lockstep, out=verb.out, overwrite=verb.overwrite, excitation=excitation
    )
