"""Run a wiggle test on a driver: the programme, the watch over it, and damping at every exit."""

from __future__ import annotations

from trueup.core.errors import TrueupError
from trueup.deploy.session.undisturbed import undisturbed
from trueup.deploy.wiggle.analysis.conclude import Conclusion, conclude, outside_findings
from trueup.deploy.wiggle.analysis.finding import JointResult, WiggleResult, WiringFinding
from trueup.deploy.wiggle.analysis.limb_model import LimbModel, read_limbs
from trueup.deploy.wiggle.cfg import WiggleCfg
from trueup.deploy.wiggle.motion.moves import Moves
from trueup.deploy.wiggle.motion.program import wiggle_program
from trueup.hardware.driver import Command, Driver
from trueup.hardware.drivers.open import open_driver
from trueup.hardware.guard.driver import GuardDriver
from trueup.hardware.guard.trip import GuardTripped
from trueup.hardware.loop import run_loop
from trueup.hardware.watch import Watch, WatchCfg
from trueup.robot.load import Robot, load_robot

LONGEST_S = 600.0


class _WiggleRun:
    """One test while it runs; `tick` is called by the loop."""

    def __init__(self, robot: Robot, driver: Driver, moves: Moves, limbs: LimbModel | None) -> None:
        self._driver, self.moves = driver, moves
        cfg, spec = moves.cfg, robot.spec
        # targets are bounded to stay near the joint: lagging behind them is the test's own business
        watch = WatchCfg(tracking_rad=10.0, position_margin_rad=0.15, stale_s=0.1)
        self._watch = Watch(spec, watch, period_s=1.0 / cfg.rate_hz, start=moves.state.joint_pos)
        self._program = wiggle_program(moves, limbs)
        self._command: Command | None = next(self._program)
        self._start_s = moves.state.time_s
        self.fault = ""

    def tick(self, k: int) -> bool:
        """Send a command, take in the state that follows; False when the programme is over or must not go on."""
        if self._command is None:
            return False
        try:
            self._driver.write(self._command)
            state = self._driver.read()
        except GuardTripped as error:
            self.fault = str(error)
            return False
        self.fault = self._watch.check(state) or self.fault
        self.moves.state = state
        self.moves.trace.seconds = state.time_s - self._start_s
        if self.fault or self.moves.trace.seconds > LONGEST_S:
            self.fault = self.fault or f"not done after {LONGEST_S:g} s"
            return False
        try:
            self._command = self._program.send(state)
        except StopIteration:
            self._command = None
            return False
        return True


def run_wiggle(robot: Robot, driver: Driver, cfg: WiggleCfg | None = None, *, reference: str = "") -> WiggleResult:
    """Test a robot that is held in the air (an arm: with room all around). The driver is damped and closed after."""
    cfg, limbs = cfg or WiggleCfg(), read_limbs(robot)
    try:
        driver.connect()
        if driver.joint_names != robot.spec.joint_names:
            raise TrueupError(
                f"the driver's joints are {', '.join(driver.joint_names)}, not those of {robot.spec.name}"
            )
        first = driver.read()
        outside = outside_findings(robot.spec, first.joint_pos)
        if outside:
            return _untouched(robot, reference, outside)
        run = _WiggleRun(robot, driver, Moves(robot.spec, cfg, first), limbs)
        with undisturbed(realtime=driver.realtime):
            report = run_loop(driver, run.tick, rate_hz=cfg.rate_hz)
        if report.ended == "interrupted":
            run.fault = "stopped by the user"
    finally:
        driver.close()
    return _result(robot, reference, conclude(robot.spec, limbs, run.moves.trace, cfg), run)


def wiggle(
    robot: Robot | str,
    *,
    driver: str = "twin:mild",
    cfg: WiggleCfg | None = None,
    lockstep: bool | None = None,
    guard: bool = True,
) -> WiggleResult:
    """Find swapped joints, wrong signs, dead joints and encoder offsets by moving a robot that is held in the air.

    With `guard`, every command passes the motor guard, a process of its own that damps the robot should this one die.
    """
    loaded, cfg = load_robot(robot), cfg or WiggleCfg()
    opened: Driver
    if guard:
        opened = GuardDriver(driver, loaded, command_hz=cfg.rate_hz, control_hz=cfg.rate_hz, lockstep=lockstep)
    else:
        opened = open_driver(driver, loaded, command_hz=cfg.rate_hz, lockstep=lockstep)
    return run_wiggle(loaded, opened, cfg, reference=driver)


def _untouched(robot: Robot, reference: str, findings: list[WiringFinding]) -> WiggleResult:
    joints = tuple(JointResult(name=name) for name in robot.spec.joint_names)
    notes = ("nothing was moved",)
    return WiggleResult(robot=robot.spec.name, driver=reference, findings=tuple(findings), joints=joints, notes=notes)


def _result(robot: Robot, reference: str, found: Conclusion, run: _WiggleRun) -> WiggleResult:
    findings = list(found.findings)
    if run.fault and not findings:  # perhaps a joint went where it cannot be
        findings = outside_findings(robot.spec, run.moves.state.joint_pos)
    if run.fault:
        findings.append(WiringFinding(kind="aborted", joints=(), text=f"the test was given up: {run.fault}"))
    return WiggleResult(
        robot=robot.spec.name,
        driver=reference,
        findings=tuple(findings),
        joints=found.joints,
        unseen=() if run.fault else tuple(found.unseen),  # a part of the test shows a part only
        notes=tuple(found.notes),
        seconds=run.moves.trace.seconds,
    )
