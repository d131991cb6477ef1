"""Deploy: one rung of the ladder from the bundle to the record, refusing before anything moves.

Checks of files come first (`asked`), then those of the driver and of the first states. Nothing is
sent before all of them pass.
"""

from __future__ import annotations

import contextlib
import logging
import time
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from trueup.core.errors import TrueupError
from trueup.core.files import make_folder
from trueup.core.verb_package import Shown
from trueup.deploy.asked import Asked, Say, check_files
from trueup.deploy.control.controller import Controller, bundle_target_reach
from trueup.deploy.control.monitors import MonitorCfg
from trueup.deploy.ladder.judge import judge_replay, judge_run, judge_shadow
from trueup.deploy.ladder.records import BASES, RUNGS, RungAnswer, RungRecord, held, write_record
from trueup.deploy.ladder.replay import LogReplay, golden_difference, replay_log
from trueup.deploy.ladder.shadow import Shadowed, listening_driver, shadow
from trueup.deploy.preflight import Disagreement, check_driver, check_states, refuse
from trueup.deploy.session.controls import open_controls
from trueup.deploy.session.live import LivePage
from trueup.deploy.session.outcome import RunOutcome
from trueup.deploy.session.recording import FILE, RowsHeader, RowWriter, column_widths
from trueup.deploy.session.session import DeploySession, DeploySessionCfg
from trueup.deploy.verbs import DeployVerb
from trueup.hardware.driver import RobotState
from trueup.hardware.guard.cfg import GuardCfg
from trueup.hardware.guard.driver import GuardDriver
from trueup.hardware.guard.trip import GuardSummary
from trueup.hardware.realtime import may_raise
from trueup.policy.observation import ObservationSpec
from trueup.robot.spec import RobotSpec

_log = logging.getLogger(__name__)
# rate of commands to the robot, for drivers whose rate can be set
_COMMAND_HZ = {"unitree": 500.0, "ros2": 200.0, "feetech": 100.0, "dynamixel": 100.0}
_READY_S = 2.0  # longest wait until the guard reports the robot ready


@dataclass(frozen=True, kw_only=True)
class Deployed(Shown):
    """Result of one rung.

    record     as it was written to `path`; `record.passed` says whether the next rung may be climbed
    outcome    of the run; None for replay
    shadowed   of shadow; difference and log of replay
    guard      the motor guard's summary of the run
    startup    seconds from the start of the process to the first command, by part
    next_driver  what --driver takes on the next rung, "" where it is not known
    """

    record: RungRecord
    path: Path
    folder: Path | None = None
    outcome: RunOutcome | None = None
    shadowed: Shadowed | None = None
    difference: float | None = None
    log: LogReplay | None = None
    guard: GuardSummary | None = None
    startup: dict[str, float] = field(default_factory=dict)
    next_driver: str = ""

    @property
    def passed(self) -> bool:
        return self.record.passed

    @property
    def exit_code(self) -> int:
        """0: done and passed, 1: done and not passed, 3: stopped."""
        if self.outcome is not None and self.outcome.ended in ("tripped", "estop"):
            return 3
        return 0 if self.passed else 1


def deploy(verb: DeployVerb, say: Say = _log.info) -> Deployed:
    """Run one rung; a TrueupError says why it was refused. `say` gets lines for the operator."""
    asked = check_files(verb, say)
    if verb.rung == "replay":
        return _replay(asked)
    folder = make_folder(verb.out or _run_folder(asked.bundle.path, verb.rung))
    try:
        return _shadow(asked, folder, say) if verb.rung == "shadow" else _run(asked, folder, say)
    except TrueupError:
        if verb.out is None:
            with contextlib.suppress(OSError):  # there is something in it
                folder.rmdir()
        raise


def _run_folder(bundle: Path, rung: str) -> Path:
    stamp = datetime.now().strftime("%Y%m%d-%H%M%S")
    folder = bundle.with_name(f"{bundle.name}.deployed") / f"{rung}-{stamp}"
    number = 2
    while folder.exists():
        folder, number = folder.with_name(f"{rung}-{stamp}-{number}"), number + 1
    return folder


# --- rungs ---
def _replay(asked: Asked) -> Deployed:
    names = asked.robot.spec.joint_names
    difference = golden_difference(asked.bundle, names, asked.control)
    log = None if asked.verb.log is None else replay_log(asked.bundle, asked.verb.log, names, asked.goal)
    return _recorded(asked, judge_replay(difference, log), 0.0, None, difference=difference, log=log)


def _shadow(asked: Asked, folder: Path, say: Say) -> Deployed:
    verb, passport = asked.verb, asked.bundle.passport
    assert verb.driver is not None
    controller = Controller(asked.bundle, asked.robot.spec.joint_names, asked.control)
    driver = listening_driver(verb.driver, asked.robot, controller.control_hz)
    can_listen = hasattr(driver, "observe")
    with ExitStack() as stack:
        stack.callback(driver.close)
        driver.connect()
        say("listening" if can_listen else "reading: this driver cannot tell what somebody else commands")
        states = [driver.read(), driver.read()]
        findings = check_driver(passport, asked.robot, driver)
        findings += check_states(passport, asked.robot, states, moved=can_listen)
        allowed = (*asked.allowed, *refuse(findings, verb.allow))
        writer = _writer(asked, folder, has_imu=states[-1].imu_quat is not None)
        stack.callback(writer.close)
        found = shadow(controller, driver, asked.robot, asked.goal, asked.seconds or asked.rung.seconds, writer)
    judged = judge_shadow(found, writer.close())
    return _recorded(asked, judged, found.outcome.seconds, folder, allowed, outcome=found.outcome, shadowed=found)


def _run(asked: Asked, folder: Path, say: Say) -> Deployed:
    verb, robot = asked.verb, asked.robot
    with ExitStack() as stack:
        controls = open_controls(verb.gamepad, keys=verb.keys)
        for one in controls:
            stack.callback(one.close)
        driver, controller = _connect(asked, folder)
        stack.callback(driver.close)
        states = _first_states(driver)
        asked.startup.mark("states")
        findings = check_driver(controller.passport, robot, driver) + check_states(controller.passport, robot, states)
        allowed = (*asked.allowed, *refuse(findings, verb.allow))
        writer = _writer(asked, folder, has_imu=states[-1].imu_quat is not None)
        stack.callback(writer.close)
        live = LivePage(robot, driver) if verb.live else None
        if live is not None:
            stack.callback(live.close)
            say(f"live page   trueup deploy page {live.address}   token {live.token}")
        cfg = _session_cfg(asked)
        if driver.realtime and not may_raise():
            say(
                "note   no right to real-time priority: other work on this computer can stop the robot (docs/guards.md)"
            )
        length = "until it is ended" if cfg.seconds is None else f"for {cfg.seconds:g} s"
        say(f"{verb.rung}   {asked.rung.about}; the policy runs {length}")
        session = DeploySession(controller, driver, asked.goal, cfg, controls=controls, writer=writer, live=live)
        outcome = session.run()
        asked.startup.mark_at("first command", session.first_tick_s)
    summary = driver.summary
    tap = dict(summary.tap) if summary is not None else {}
    judged = judge_run(verb.rung, outcome, writer.close(), floating=robot.spec.base.floating, tap=tap)
    return _recorded(asked, judged, outcome.seconds, folder, allowed, outcome=outcome, guard=summary)


def _session_cfg(asked: Asked) -> DeploySessionCfg:
    """Session config of a rung. A fifth of the gains holds no pose: hanging, the ramp's end is not checked."""
    monitors, hangs = MonitorCfg(trip=asked.rung.trips), asked.verb.rung == "hang"
    cfg = DeploySessionCfg(seconds=asked.seconds, on_exit=asked.verb.on_exit, monitors=monitors)
    return replace(cfg, reach_rad=np.inf, ramp_gain=1.0) if hangs else cfg


def _connect(asked: Asked, folder: Path) -> tuple[GuardDriver, Controller]:
    """Build the controller, then start the guard, which connects the robot."""
    verb, rung, robot = asked.verb, asked.rung, asked.robot
    assert verb.driver is not None
    controller = Controller(asked.bundle, robot.spec.joint_names, asked.control)
    asked.startup.mark("controller")
    guard = replace(
        verb.guard,
        torque_fraction=rung.torque if verb.torque is None else verb.torque,
        gain_factor=rung.gain,
        max_step_rad=float(min(controller.target_step.max(), 1e3)),
        command_margin_rad=_command_margin(controller, robot.spec),
    )
    hz = _COMMAND_HZ.get(verb.driver.partition(":")[0])
    driver = GuardDriver(verb.driver, robot, guard, out=folder, command_hz=hz, control_hz=controller.control_hz)
    driver.connect()
    asked.startup.mark("guard")
    return driver, controller


def _command_margin(controller: Controller, spec: RobotSpec) -> float:
    """How far outside the position limits a target may lie before the guard trips, rad: as far as in training.

    Targets outside are clipped to the limits in any case.
    """
    least, reach = GuardCfg().command_margin_rad, bundle_target_reach(controller.passport)
    if reach is None:
        return least
    low, high = (controller.order.to_robot(ends) for ends in reach)
    return max(least, float(np.maximum(spec.position_low - low, high - spec.position_high).max()) + 0.5)


def _first_states(driver: GuardDriver) -> list[RobotState]:
    """Two states of a robot that the guard reports ready; otherwise a TrueupError with the guard's reason."""
    states, until = [driver.read()], time.monotonic() + _READY_S
    while driver.poll().not_ready and time.monotonic() < until and driver.realtime:
        states.append(driver.read())
    reason = driver.poll().not_ready if driver.realtime else ""
    if reason:
        raise TrueupError(f"the motor guard is not ready: {reason}")
    return [states[0], driver.read()]


def _writer(asked: Asked, folder: Path, *, has_imu: bool) -> RowWriter:
    bundle, spec, names = asked.bundle, asked.bundle.passport.policy, asked.robot.spec.joint_names
    control, rung = asked.control, asked.rung
    header = RowsHeader(
        bundle=str(bundle.path.resolve()),
        bundle_hash=bundle.hash,
        robot=asked.robot.spec.name,
        joint_names=names,
        control_hz=spec.control_hz,
        has_imu=has_imu,
        settings={"smoothing": control.smoothing, "target_step": control.target_step, "engine": control.engine},
        columns=column_widths(
            len(names), spec.observation.ncommand, spec.observation.nactor, len(spec.action.controlled_joints)
        ),
        meta={
            "rung": asked.verb.rung,
            "driver": asked.verb.driver,
            "gain": rung.gain,
            "uncertified": asked.uncertified,
            "allowed": [str(one) for one in asked.allowed],
            "terms": _terms(spec.observation),
            "started": datetime.now(UTC).isoformat(timespec="seconds"),
        },
    )
    return RowWriter(folder / FILE, header)


def _terms(seen: ObservationSpec) -> list[tuple[str, int]]:
    """Names and widths of the observation's terms in order, kept in the recording."""
    ages = seen.ages or tuple(range(seen.history - 1, -1, -1))
    frame = [(term.signal, seen.width(term.signal), term.history or seen.history) for term in seen.terms]
    if seen.by_term:
        return [(name, width * sum(age < shown for age in ages)) for name, width, shown in frame]
    return [(f"{name}/{age}_ago" if age else name, width) for age in ages for name, width, _ in frame]


def _recorded(
    asked: Asked,
    judged: list[RungAnswer],
    seconds: float,
    folder: Path | None,
    allowed: tuple[Disagreement, ...] = (),
    **parts: object,
) -> Deployed:
    """Write the rung's record."""
    verb, climber = asked.verb, asked.climber
    record = RungRecord(
        rung=verb.rung,
        bundle=climber.bundle,
        name=climber.path.name,
        robot=climber.robot,
        model_sha256=climber.model_sha256,
        identity="" if verb.rung == "replay" else climber.identity,
        below=asked.below,
        started=datetime.now(UTC).isoformat(timespec="seconds"),
        seconds=seconds,
        judged=tuple(judged),
        uncertified=asked.uncertified,
        allowed=tuple(str(one) for one in allowed or asked.allowed),
        settings={
            "smoothing": verb.smoothing, "target_step": verb.target_step, "engine": verb.engine, "speed": verb.speed,
            "torque": verb.torque, "command": " ".join(verb.command), "on_exit": verb.on_exit,
        },
        folder="" if folder is None else str(folder),
    ).sealed()  # fmt: skip
    return Deployed(
        record=record,
        path=write_record(climber, record),
        folder=folder,
        startup=asked.startup.parts,
        next_driver=_next_driver(asked),
        **parts,  # type: ignore[arg-type]
    )


def _next_driver(asked: Asked) -> str:
    """The driver of this run; a twin is held as the next rung needs it."""
    rung, reference = asked.verb.rung, asked.verb.driver or ""
    following = RUNGS[min(RUNGS.index(rung) + 1, len(RUNGS) - 1)]
    return held(reference, BASES.get(following, "") if asked.robot.spec.base.floating else "")
